"""What `import tsoffset` offers: translations, cycles, checkpoints and topics, as values.

Each function takes the commands' configuration file. It runs in this process, without Spark or
Java, unless it gets a SparkSession. `connect` is for your own tests: a function from a cluster's
settings to a `tsoffset.testing.memory_cluster.MemoryCluster`. No result contains a record's
content.
"""

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsoffset.cluster import Connect, all_failed
from tsoffset.config.selection import Selection, Selector
from tsoffset.cycle.source_commits import GroupWork
from tsoffset.errors import ClusterUnreachable, TsoffsetError, UsageError
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cycle import cycle
from tsoffset.group_sync.no_match import no_match, why_nothing_matches
from tsoffset.group_sync.open_flow import open_flow
from tsoffset.group_sync.rows import failed_row
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import log_warnings_only
from tsoffset.model import (
    Failed,
    FailureKind,
    GroupListings,
    Position,
    Precision,
    Row,
    TopicPartition,
    Translated,
)
from tsoffset.offset_files.document import StoredOffset, is_offset, is_partition, is_topic
from tsoffset.offset_files.translation import translate_stored
from tsoffset.replicators.checkpoints import Checkpoint, CheckpointKey
from tsoffset.replicators.checkpoints import read_checkpoints as read_topic
from tsoffset.replicators.discovery import discover
from tsoffset.replicators.topic_names import Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """Where a group resumes on a target partition.

    `metadata` and `source_offset` are those of its commit on the source. `reread_bound` is the most
    records that are re-read, None if nothing is proven.
    """

    offset: int
    metadata: str
    source_offset: int
    precision: Precision
    reread_bound: int | None


def translate_offsets(
    config: str | Path, group: str, *, flow: str | None = None, connect: Connect = KafkaCluster
) -> dict[TopicPartition, TranslatedOffset]:
    """Where the group resumes on the target, by target partition; nothing is committed.

    Like MirrorMaker 2's `RemoteClusterUtils.translateOffsets`, but from the clusters themselves
    instead of checkpoints. Skipped partitions are omitted (`plan` says why). `flow` (`A->B`) may be
    omitted if only one is enabled. Raises ConfigurationError, UsageError (also if the source lists
    no such group), ClusterUnreachable, and TsoffsetError if something cannot be read.
    """
    selection, settings = _one_flow(config, flow)
    found = {}
    with open_flow(settings, connect, selection.settings) as opened:
        commits = opened.commits([GroupWork(group)])
        if not commits:
            _require_consumer_group(opened.source.groups(), group, settings.source.alias)
        for one in opened.translate(commits):
            commit, position = one.commit, one.position
            answer = commit.verdict if position is None else position.translation.outcome
            if isinstance(answer, Failed):
                raise _error(answer)
            if not isinstance(answer, Translated):
                continue
            assert commit.target is not None
            assert commit.committed is not None
            found[commit.target] = TranslatedOffset(
                answer.target_offset,
                commit.committed.metadata,
                commit.committed.offset,
                answer.precision,
                answer.reread_bound,
            )
    return found


def translate_positions(
    config: str | Path,
    positions: Iterable[Position],
    *,
    flow: str | None = None,
    connect: Connect = KafkaCluster,
) -> list[Row]:
    """Where an application that keeps its own offsets resumes on the target: a row for each source
    offset, in order, with `group` None. Nothing is committed, and no group is read.

    Use a row if its `precision` is `exact`, or if it is `bounded` or `frontier` and re-reading
    `reread_bound` records is acceptable; `unproven` may skip records. Raises like
    `translate_offsets`, except that a partition that cannot be read is a failed row.
    """
    _, settings = _one_flow(config, flow)
    # Each is a log of its own, because one partition may be given with several offsets.
    stored = [
        StoredOffset(one.topic, one.partition, one.offset, log=str(number))
        for number, one in enumerate(positions)
    ]
    for one in stored:
        if not (is_topic(one.topic) and is_partition(one.partition) and is_offset(one.offset)):
            raise UsageError(
                f"translate {one.topic!r}-{one.partition!r} at {one.offset!r}: a position is a"
                " topic, a partition from 0 and an offset from 0"
            )
    with connect(settings.source) as source, connect(settings.target) as target:
        return [one.row for one in translate_stored(settings, source, target, stored)]


def plan(
    config: str | Path,
    *,
    flows: Sequence[str] = (),
    groups: str | None = None,
    topics: str | None = None,
    spark: "SparkSession | None" = None,
    connect: Connect = KafkaCluster,
) -> list[Row]:
    """What `sync` would do: the rows of one cycle of each flow that commits nothing.

    `flows` are the flows to run (default: all enabled ones; a string is one flow); `groups` and
    `topics` are regular expressions that narrow them. With `spark` the cycle runs on that session,
    which stays open and must not speculate; without it, in this process. An unreachable cluster is
    a failed row without a group. Raises ConfigurationError, UsageError (also if no group or
    topic is selected), and CycleFailed if Spark gives up.
    """
    return _cycles(_selection(config, flows, groups, topics), spark, connect, commit=False)


def sync(
    config: str | Path,
    *,
    flows: Sequence[str] = (),
    groups: str | None = None,
    topics: str | None = None,
    spark: "SparkSession | None" = None,
    connect: Connect = KafkaCluster,
) -> list[Row]:
    """Commit on the target, once. Parameters and rows are those of `plan`. A group is never moved
    backwards, and a group with members on the target is skipped. A flow with
    `sync.group.offsets.enabled = false` is only planned. Raises CycleFailed, too, and commits
    nothing, if the changed lists of a flow (`tsoffset lists`) cannot be read."""
    return _cycles(_selection(config, flows, groups, topics), spark, connect, commit=True)


def read_checkpoints(
    config: str | Path, *, flow: str | None = None, connect: Connect = KafkaCluster
) -> dict[CheckpointKey, Checkpoint]:
    """MirrorMaker 2's newest checkpoint of each group and target partition, whatever the flow's
    filters; empty if it writes none. Raises like `translate_offsets`, and TsoffsetError if the
    topic cannot be read to its end."""
    _, settings = _one_flow(config, flow)
    with connect(settings.target) as target:
        topic = internal_topics(settings.policy).checkpoints_topic(settings.source.alias)
        found = read_topic(target, topic, wanted=lambda _: True, committed={})
    if found.failures:
        raise _error(found.failures[0])
    return found.newest


def topics(
    config: str | Path, *, flows: Sequence[str] = (), connect: Connect = KafkaCluster
) -> list[Found]:
    """What replicators have created on each cluster of the flows: upstream clusters with hops and
    heartbeats, remote topics, and MirrorMaker 2's own topics. An unreachable cluster is a failed
    entry. Raises ConfigurationError and UsageError."""
    return discover(_selection(config, flows, None, None).flows, connect)


def _require_consumer_group(listings: GroupListings, group: str, cluster: str) -> None:
    """Raise an error if the cluster does not list the group, so that a mistyped name is not taken
    for a group without offsets."""
    if group in listings.share_groups:
        raise UsageError(f"{group} is a share group, which has start offsets; use plan")
    if group not in listings.groups and listings.failures:
        raise _error(listings.failures[0])
    if group not in listings.groups:
        raise UsageError(no_match(f"group listed by {cluster}", group, listings.groups))


def _require_match(selection: Selection, connect: Connect) -> None:
    """Raise UsageError if the configuration with `groups` and `topics` selects nothing of what the
    sources list. Sources without any group are an error only with `groups` or `topics`."""
    found = why_nothing_matches(selection, connect)
    if found is not None and (found[1] or selection.narrowing.narrows):
        raise UsageError(found[0])


def _error(failed: Failed) -> TsoffsetError:
    away = failed.kind is FailureKind.UNREACHABLE
    return ClusterUnreachable(failed.message) if away else TsoffsetError(failed.message)


def _selection(
    config: str | Path, flows: Sequence[str], groups: str | None, topics: str | None
) -> Selection:
    log_warnings_only()
    # A string is a Sequence[str], too: of its letters.
    flows = (flows,) if isinstance(flows, str) else flows
    found = Selector(config, flows, groups, topics).select()
    for warning in found.settings.warnings:
        warnings.warn(warning, stacklevel=3)
    return found


def _one_flow(config: str | Path, flow: str | None) -> tuple[Selection, FlowSettings]:
    selection = _selection(config, () if flow is None else (flow,), None, None)
    if len(selection.flows) != 1:
        names = ", ".join(one.name for one in selection.flows)
        raise UsageError(f"several flows are enabled: {names}; say which one with flow=")
    return selection, selection.flows[0]


def _cycles(
    selection: Selection, spark: "SparkSession | None", connect: Connect, *, commit: bool
) -> list[Row]:
    rows: list[Row] = []
    for flow in selection.flows:
        # Checked before the first commit, because an exception cannot return the rows of commits.
        if commit and flow.commits:
            selection.require_known_lists(flow)
    for flow in selection.flows:
        if spark is None:
            rows += _run_in_process(selection, flow, connect, commit=commit)
        else:
            rows += _on_spark(selection, flow, connect, spark, commit=commit)
    if not rows:
        with suppress(ClusterUnreachable):
            _require_match(selection, connect)
    return rows


def _run_in_process(
    selection: Selection, flow: FlowSettings, connect: Connect, *, commit: bool
) -> list[Row]:
    with open_flow(flow, connect, selection.settings) as opened:
        try:
            return cycle(
                flow,
                opened.source,
                opened.target,
                commit=commit,
                competing_flows=opened.competing_flows,
            )
        except ClusterUnreachable as error:
            return [failed_row(flow.name, all_failed(error))]


def _on_spark(
    selection: Selection,
    flow: FlowSettings,
    connect: Connect,
    spark: "SparkSession",
    *,
    commit: bool,
) -> list[Row]:
    context = getattr(spark, "sparkContext", None)
    if context is None:
        raise UsageError("the session is of Spark Connect, which has no RDDs; pass a classic one")
    if context.getConf().get("spark.speculation", "false").lower() == "true":
        raise UsageError(
            "spark.speculation would run tasks that commit twice at once; make the session without"
        )
    # This import loads pyspark, which the function above does not need.
    from tsoffset.group_sync.flow_cycle import FlowTask
    from tsoffset.spark.dataflow import run_cycle

    task = FlowTask(selection.configuration, flow.name, selection.narrowing, connect)
    result = run_cycle(spark, task, commit=commit)
    for warning in result.warnings:
        warnings.warn(warning, stacklevel=4)
    return list(result.rows)
