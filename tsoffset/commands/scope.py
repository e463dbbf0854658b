"""Whether a command's options and the configuration's lists match anything. If not, the command
ends as bad usage before it does anything, and names similar groups or topics."""

import difflib
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.narrowing import expression, written_groups, written_topics
from tsoffset.flow.patterns import matches
from tsoffset.kafka import kafka_cluster
from tsoffset.model import Failed, FailureKind, GroupListings, Side, TopicDescription
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import abridge, plural

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings

_SHOWN = 3


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
    reasons = []
    empty = True
    for flow in selection.flows:
        settings = flow.source if side is Side.SOURCE else flow.target
        narrows_topics = side is Side.SOURCE and selection.narrowing.topics is not None
        try:
            title = f"connecting to {settings.alias}"
            with notices.progress(title), kafka_cluster(settings) as cluster:
                listings = cluster.groups()
                topics = tuple(cluster.topics()) if narrows_topics else None
        except ClusterUnreachable as error:
            sides = {one.name: (one.source, one.target) for one in selection.flows}
            return {name: error for name, both in sides.items() if settings in both}
        subject = f"Cluster {settings.alias}"
        why = _why_empty(selection, flow, subject, listings.groups, topics)
        if listings.failures or why is None:
            return {}
        reasons.append(why)
        empty = empty and not listings.groups
    sentence = " ".join(dict.fromkeys(reasons))
    if empty and not must_have_groups and not selection.narrowing.narrows:
        notices.warning("no_groups", sentence)
    elif reasons:
        raise UsageError(sentence)
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


def no_match(noun: str, wanted: str, names: Collection[str]) -> str:
    return f"No {noun} matches `{wanted}`.{did_you_mean(wanted, names)}"


def did_you_mean(wanted: str, names: Collection[str]) -> str:
    """A question with the most similar names, to follow a sentence; empty if there are none."""
    by_lower = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(wanted.lower(), by_lower, n=_SHOWN)
    close += [name for name in by_lower if wanted.lower() in name and name not in close]
    shown = " or ".join(f"`{by_lower[name]}`" for name in close[:_SHOWN])
    return f" Did you mean {shown}?" if shown else ""


def _why_empty(
    selection: "Selection",
    flow: "FlowSettings",
    subject: str,
    groups: Collection[str],
    topics: Collection[str] | None,
) -> str | None:
    """`topics` is None if the command does not narrow them."""
    from tsoffset.cycle.source_commits import renamings_of, selected_groups

    if not groups:
        return (
            f"{subject} shows this user no consumer groups: check its addresses, and that"
            " this user has DESCRIBE on its groups."
        )
    # As the configuration has it, without --groups and --topics.
    whole = selection.settings.flow(flow.name)
    selected, broken = selected_groups(flow, groups)
    if not (selected or broken):
        passing, _ = selected_groups(whole, groups)
        return _no_name("group", selection.narrowing.groups, subject, groups, passing, whole)
    if topics is None:
        return None
    renamings, failed = renamings_of(flow, topics)
    if failed or any(renamings.values()):
        return None
    of_whole, _ = renamings_of(whole, topics)
    passing = [topic for topic, renaming in of_whole.items() if renaming is not None]
    return _no_name("topic", selection.narrowing.topics, subject, topics, passing, whole)


def _no_name(
    noun: str,
    wanted: str | None,
    subject: str,
    every: Collection[str],
    passing: Sequence[str],
    flow: "FlowSettings",
) -> str:
    lists = f"`{noun}s` and `{noun}s.exclude` of flow {flow.name}"
    if wanted is not None:
        pattern = expression(f"--{noun}s", wanted)
        left_out = sorted(name for name in every if matches(pattern, name))
        if not left_out:
            return no_match(noun, wanted, passing)
        shown = " and ".join(f"`{name}`" for name in left_out[:_SHOWN])
        return f"No {noun} matches `{wanted}`: {lists} exclude {shown}."
    near = "".join(did_you_mean(entry, every) for entry in flow.lists.get(f"{noun}s", ()))
    return f"{subject} has {plural(len(every), noun)}, but {lists} select none of them.{near}"
