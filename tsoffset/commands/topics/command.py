"""`tsoffset topics` as the command line calls it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from rich.text import Text

from tsoffset.cluster import Cluster, all_failed
from tsoffset.commands.open_flow import Connect
from tsoffset.commands.topics.discovery import Found, Kind, found_topics, upstream_clusters
from tsoffset.commands.topics.heartbeats import newest_heartbeats
from tsoffset.config.selection import Selection
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.model import Failed, TopicDescription
from tsoffset.printable import printable
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.progress import progress
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import Column, table, wrapped

_TIMED = (Kind.UPSTREAM, Kind.HEARTBEATS)

# By cluster and topic.
_Emitted = dict[str, dict[str, int | Failed | None]]


def run_topics(
    selection: Selection, output: Output, notices: Notices, *, connect: Connect = KafkaCluster
) -> int:
    """Look at all clusters of the flows, print what was found, and return the exit status."""
    with progress("reading topics", wanted=notices.format is LogFormat.CONSOLE):
        found = discover(selection.flows, connect)
    output.show(Found, found, partial(_lines, found))
    if any(one.kind is Kind.FAILED and one.topic is None for one in found):
        return 3
    return int(any(one.reason is not None for one in found))


def discover(flows: Sequence[FlowSettings], connect: Connect) -> list[Found]:
    """What was found, cluster by cluster, in the order of the flows: the clusters upstream first.
    One that cannot be reached is FAILED."""
    clusters: dict[str, ClusterSettings] = {}
    for flow in flows:
        for settings in (flow.source, flow.target):
            clusters.setdefault(settings.alias, settings)
    with ExitStack() as stack:
        opened = {
            alias: stack.enter_context(connect(settings)) for alias, settings in clusters.items()
        }
        return [one for rows in _of_each(flows, opened).values() for one in rows]


def _of_each(flows: Sequence[FlowSettings], clusters: dict[str, Cluster]) -> dict[str, list[Found]]:
    """What was found, by cluster."""
    topics: dict[str, dict[str, int]] = {}
    found: dict[str, list[Found]] = {alias: [] for alias in clusters}
    for alias, cluster in clusters.items():
        try:
            topics[alias] = {
                name: len(described.partitions)
                for name, described in cluster.topics().items()
                if isinstance(described, TopicDescription)
            }
        except ClusterUnreachable as error:
            found[alias] = [_failed(Found(alias, Kind.FAILED), all_failed(error))]
    for alias in topics:
        # The name of a remote topic says where it is from, also while that cluster is unreachable.
        elsewhere = {other: topics.get(other, {}) for other in clusters if other != alias}
        there = found_topics(alias, topics[alias], flows, elsewhere)
        upstream = upstream_clusters(alias, there, flows)
        found[alias] = [*upstream, *there]
    # A target before its source, so that no lag is told too short.
    emitted = {
        alias: _newest(clusters[alias], found[alias], topics[alias]) for alias in reversed(topics)
    }
    now_ms = time.time_ns() // 1_000_000
    for alias in topics:
        found[alias] = [
            _timed(one, emitted, now_ms) if one.kind in _TIMED and one.topic else one
            for one in found[alias]
        ]
    return found


def _newest(
    cluster: Cluster, found: Sequence[Found], partitions: dict[str, int]
) -> dict[str, int | Failed | None]:
    wanted = {
        one.topic: partitions[one.topic]
        for one in found
        if one.kind is Kind.HEARTBEATS and one.topic is not None
    }
    try:
        return dict(newest_heartbeats(cluster, wanted)) if wanted else {}
    except ClusterUnreachable as error:
        return dict.fromkeys(wanted, all_failed(error))


def _timed(one: Found, emitted: _Emitted, now_ms: int) -> Found:
    """With the time of the newest heartbeat of its topic, and, where the cluster upstream could be
    asked for its own, how much newer that is."""
    assert one.topic is not None
    newest = emitted.get(one.cluster, {}).get(one.topic)
    if isinstance(newest, Failed):
        return _failed(one, newest)
    if newest is None:
        return one
    upstream, original = one.source, one.original_topic
    there = emitted.get(upstream, {}).get(original) if upstream and original else None
    lag_ms = max(0, there - newest) if isinstance(there, int) else None
    return replace(
        one,
        heartbeat_timestamp_ms=newest,
        heartbeat_age_ms=max(0, now_ms - newest),
        replication_lag_ms=lag_ms if one.kind is Kind.UPSTREAM else None,
    )


def _failed(one: Found, failed: Failed) -> Found:
    return replace(one, reason=failed.kind, message=failed.message)


# --- for a person ---------------------------------------------------------------------------


def _lines(found: Sequence[Found], width: int | None) -> Iterator[Text]:
    for place, (cluster, some) in enumerate(groupby(found, key=lambda one: one.cluster)):
        if place:
            yield Text()
        members = list(some)
        yield head(f"cluster {cluster}")
        for one in members:
            if one.message is not None:
                yield from wrapped(printable(one.message), width, style="red")
        if upstream := [one for one in members if one.kind is Kind.UPSTREAM]:
            yield from table(_UPSTREAM, upstream, width)
            yield Text()
        if topics := [one for one in members if one.topic and one.kind is not Kind.UPSTREAM]:
            yield from table(_TOPICS, topics, width)
        elif not upstream and not any(one.message for one in members):
            yield Text("  no replicated topic", "dim")


_UPSTREAM: tuple[Column[Found], ...] = (
    Column("UPSTREAM", lambda one: one.source),
    Column("HOPS", lambda one: one.hops, right=True),
    Column("NEWEST HEARTBEAT", lambda one: _iso(one.heartbeat_timestamp_ms), drops=1),
    Column("AGE", lambda one: _seconds(one.heartbeat_age_ms), right=True),
    Column("REPLICATION LAG", lambda one: _seconds(one.replication_lag_ms), right=True),
)
_TOPICS: tuple[Column[Found], ...] = (
    Column("TOPIC", lambda one: one.topic, elastic=True),
    Column("KIND", lambda one: one.kind.replace("_", " ")),
    Column("FROM", lambda one: one.source),
    Column("ORIGINAL", lambda one: one.original_topic, elastic=True, drops=1),
    Column("HOPS", lambda one: one.hops, right=True),
    Column("PARTITIONS", lambda one: one.partitions, right=True, drops=2),
)


def _iso(timestamp_ms: int | None) -> str | None:
    if timestamp_ms is None:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else f"{milliseconds / 1000:,.1f} s"
