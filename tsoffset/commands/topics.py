"""`tsoffset topics`: what replicators have created on each cluster, from where, and how late."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from tsoffset.commands.options import CONFIG, EXIT_STATUS, FLOW, OUTPUT, command
from tsoffset.kafka import kafka_cluster
from tsoffset.printable import printable
from tsoffset.replicators.topic_names import Found, TopicKind
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, in_utc
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import Column, table, wrap

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings


@command(
    "List replicated topics, upstream clusters and replication lag.",
    f"""\b
Examples:
  tsoffset topics -c mm2.properties
  tsoffset topics -c mm2.properties --format json | jq 'select(.kind == "upstream")'

{EXIT_STATUS}""",
    *(*CONFIG, FLOW, *OUTPUT),
)
def topics(selection: "Selection", output: Output, notices: Notices) -> int:
    """List replicated topics, upstream clusters and replication lag.

    Finds them by the topic names on the clusters of the flows. Lists the upstream clusters with
    their number of hops. If MirrorMaker 2 emits heartbeats, shows the age of the newest one and the
    replication lag. Lists remote topics with their source topics, and MirrorMaker 2's internal
    topics. Writes nothing and does not start Spark.
    """
    from tsoffset.replicators.discovery import discover

    with notices.progress("reading topics"):
        found = discover(selection.flows, kafka_cluster)
    flows = selection.flows
    clusters = dict.fromkeys(one.alias for flow in flows for one in (flow.source, flow.target))
    output.show(Found, found, partial(_lines, clusters, found))
    unreachable = {one.cluster for one in found if one.kind is TopicKind.FAILED and not one.topic}
    for cluster in _without_remote_topics(flows, found, unreachable):
        notices.note(
            f"Cluster {cluster} has no remote topic under the replication policy of its flows. If a"
            " replicator copies topics to it, check `replication.policy.class` and"
            " `replication.policy.separator`: `tsoffset check` may name the values that fit."
        )
    if unreachable:
        return 3
    return int(any(one.reason is not None for one in found))


def _without_remote_topics(
    flows: "Sequence[FlowSettings]", found: Sequence[Found], unreachable: Collection[str]
) -> Iterator[str]:
    """The targets without a remote topic. Under IdentityReplicationPolicy the source tells which
    topics are remote ones, so both clusters must have been read."""
    remote = {one.cluster for one in found if one.kind is TopicKind.REMOTE}
    unknown = {flow.target.alias for flow in flows if flow.source.alias in unreachable}
    for cluster in dict.fromkeys(flow.target.alias for flow in flows):
        if cluster not in {*remote, *unreachable, *unknown}:
            yield cluster


def _lines(clusters: Iterable[str], found: Sequence[Found], width: int | None) -> Iterator[Text]:
    for number, cluster in enumerate(clusters):
        members = [one for one in found if one.cluster == cluster]
        if number:
            yield Text()
        yield head(f"cluster {cluster}")
        messages = [one.message for one in members if one.message is not None]
        for message in messages:
            yield from wrap(printable(message), width, style="red")
        if upstream := [one for one in members if one.kind is TopicKind.UPSTREAM]:
            yield from table(_UPSTREAM, upstream, width)
            yield Text()
        if topics := [one for one in members if one.topic and one.kind is not TopicKind.UPSTREAM]:
            yield from table(_TOPICS, topics, width)
        elif not (upstream or messages):
            yield Text("  no replicated topic", "dim")


_UPSTREAM: tuple[Column[Found], ...] = (
    Column("UPSTREAM", lambda one: one.source),
    Column("HOPS", lambda one: one.hops, right=True),
    Column("NEWEST HEARTBEAT", lambda one: _in_utc(one.heartbeat_timestamp_ms), drops=1),
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


def _in_utc(timestamp_ms: int | None) -> str | None:
    return None if timestamp_ms is None else in_utc(timestamp_ms)


def _seconds(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else f"{milliseconds / 1000:,.1f} s"
