"""Whether a command's options and the configuration's lists match anything. If not, the command
ends as bad usage before it does anything, and names similar groups or topics."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.narrowing import written_groups, written_topics
from tsoffset.group_sync.no_match import why_nothing_matches
from tsoffset.kafka import kafka_cluster
from tsoffset.model import Failed, FailureKind, GroupListings, Side, TopicDescription
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import abridge

if TYPE_CHECKING:
    from tsoffset.cluster import Cluster
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import ClusterSettings, FlowSettings


def require_match(
    selection: "Selection",
    notices: Notices,
    side: Side = Side.SOURCE,
    *,
    must_have_groups: bool = False,
) -> dict[str, ClusterUnreachable]:
    """Raise UsageError if the selection matches no group on one side of any of its flows, or no
    topic on their sources. Clusters without any group are a warning, unless the command
    `must_have_groups` or has --groups or --topics.

    A cluster that cannot be reached, or does not list all groups, may have a match: the command
    reports that itself. Returns the error by the names of the flows of an unreachable cluster, so
    that the command does not wait for it again.
    """
    asked: list[ClusterSettings] = []

    @contextmanager
    def connect(settings: "ClusterSettings") -> "Iterator[Cluster]":
        asked.append(settings)
        with notices.progress(f"connecting to {settings.alias}"), kafka_cluster(settings) as found:
            yield found

    try:
        found = why_nothing_matches(selection, connect, side)
    except ClusterUnreachable as error:
        return {
            flow.name: error for flow in selection.flows if asked[-1] in (flow.source, flow.target)
        }
    if found is None:
        return {}
    sentence, has_groups = found
    if has_groups or must_have_groups or selection.narrowing.narrows:
        raise UsageError(sentence)
    notices.warning("no_groups", sentence)
    return {}


def warn_of_no_match(selection: "Selection", notices: Notices) -> None:
    """Warn if `--groups` or `--topics` match nothing yet: `run` goes on, since groups may still be
    created."""
    if not selection.narrowing.narrows:
        return
    try:
        require_match(selection, notices)
    except UsageError as error:
        notices.warning(
            "nothing_matches", f"{error} `tsoffset run` syncs nothing until a match exists."
        )


def warn_of_unseen_names(flow: "FlowSettings", notices: Notices) -> None:
    """Warn of groups and topics that the flow's lists name, but its source does not have, or does
    not show this user: their offsets have no row. The command itself reports a cluster that cannot
    be reached."""
    topics = written_topics(flow.topic_filter).names
    groups = written_groups(flow.group_filter).names
    with suppress(ClusterUnreachable), kafka_cluster(flow.source) as source:
        described = source.topics(topics) if topics else {}
        listed = source.groups() if groups else GroupListings({})
        unseen = {
            "topics": [name for name in topics if _is_unseen(described.get(name))],
            "groups": [name for name in groups if name not in listed.groups],
        }
        if listed.failures:
            unseen["groups"] = []
        for key, names in unseen.items():
            if names:
                notices.warning(
                    f"{key}_not_seen",
                    f"`{key}` of flow {flow.name} names {abridge(names)}, which cluster"
                    f" {flow.source.alias} does not have, or does not show this user. Their"
                    " offsets are not synced, and no verdict takes them into account: run"
                    " `tsoffset check`.",
                )


def _is_unseen(answer: TopicDescription | Failed | None) -> bool:
    return isinstance(answer, Failed) and (
        answer.missing or answer.kind is FailureKind.AUTHORIZATION
    )
