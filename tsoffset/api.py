"""What `import tsoffset` offers: offsets translated, cycles, checkpoints, topics, as values.

Each function takes the configuration file that the commands take. Clusters are asked in this
process, without Spark or Java, unless a SparkSession is handed in. `connect` is for tests of your
own: a function from a cluster's settings to a `tsoffset.testing.memory_cluster.MemoryCluster`.
Nothing of a record's content is in what is returned.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsoffset.cluster import Connect, all_failed
from tsoffset.config.selection import Selection, selected
from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.values import failed_row
from tsoffset.errors import ClusterUnreachable, TsoffsetError, UsageError
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.in_process import cycle
from tsoffset.group_sync.open_flow import open_flow
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import warnings_alone
from tsoffset.model import Failed, FailureKind, Position, Precision, Row, TopicPartition, Translated
from tsoffset.offset_files.document import StoredOffset, is_offset, is_partition, is_topic
from tsoffset.offset_files.translation import translate_stored
from tsoffset.replicators.checkpoint import CheckpointKey
from tsoffset.replicators.checkpoints import Checkpoint
from tsoffset.replicators.checkpoints import read_checkpoints as read_topic
from tsoffset.replicators.discovery import discover
from tsoffset.replicators.topic_names import Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """Where a group resumes on a target partition.

    `metadata` is that of its commit on the source, `source_offset` that commit. `precision` and
    `reread_bound` say how much comes again at most, None where nothing is proven.
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

    As MirrorMaker 2's `RemoteClusterUtils.translateOffsets`, from the clusters themselves instead
    of checkpoints. What is skipped is left out (`plan` says why); a group without commits has none.
    `flow` (`A->B`) may be left out where one is enabled. Raises ConfigurationError, UsageError,
    ClusterUnreachable, and TsoffsetError where something cannot be read.
    """
    selection, settings = _one_flow(config, flow)
    found = {}
    with open_flow(settings, connect, selection.settings) as opened:
        for one in opened.translated(opened.commits([GroupWork(group)])):
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
    """Where an application that keeps its offsets itself resumes on the target: a row for each
    position, in order, with `group` None. Nothing is committed, and no group is read.

    A position may be used if `precision` is `exact`, or `bounded` or `frontier` where re-reading
    `reread_bound` records is accepted; `unproven` may skip records. Raises as `translate_offsets`
    does, but for what cannot be read of one partition, which is a failed row.
    """
    _, settings = _one_flow(config, flow)
    # As logs of their own: one partition may be asked for at several offsets.
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

    `flows` are those to run (none: all that are enabled), `groups` and `topics` regular expressions
    that narrow them. With `spark` the cycle is spread over that session, which is left open and
    must not speculate; without it this process does all. A cluster that cannot be reached is a
    failed row without a group. Raises ConfigurationError, UsageError, and CycleFailed where Spark
    gives up.
    """
    return _cycles(_selected(config, flows, groups, topics), spark, connect, commit=False)


def sync(
    config: str | Path,
    *,
    flows: Sequence[str] = (),
    groups: str | None = None,
    topics: str | None = None,
    spark: "SparkSession | None" = None,
    connect: Connect = KafkaCluster,
) -> list[Row]:
    """Commit on the target, once: as `plan`, and the translations are committed. A group is never
    moved backwards, and one with members on the target is left alone. A flow with
    `sync.group.offsets.enabled = false` is only planned."""
    return _cycles(_selected(config, flows, groups, topics), spark, connect, commit=True)


def read_checkpoints(
    config: str | Path, *, flow: str | None = None, connect: Connect = KafkaCluster
) -> dict[CheckpointKey, Checkpoint]:
    """The newest checkpoint that MirrorMaker 2 has written of each group and target partition,
    whatever the flow's filters; none where it writes none. Raises as `translate_offsets` does, and
    TsoffsetError where the topic cannot be read to its end."""
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
    """What replicators have made on each cluster of the flows: clusters upstream with hops and
    heartbeats, remote topics, MirrorMaker 2's own. A cluster that cannot be reached is a failed
    entry. Raises ConfigurationError and UsageError."""
    return discover(_selected(config, flows, None, None).flows, connect)


def _error(failed: Failed) -> TsoffsetError:
    away = failed.kind is FailureKind.UNREACHABLE
    return ClusterUnreachable(failed.message) if away else TsoffsetError(failed.message)


def _selected(
    config: str | Path, flows: Sequence[str], groups: str | None, topics: str | None
) -> Selection:
    warnings_alone()
    found = selected(config, flows, groups, topics)
    for warning in found.settings.warnings:
        warnings.warn(warning, stacklevel=3)
    return found


def _one_flow(config: str | Path, flow: str | None) -> tuple[Selection, FlowSettings]:
    selection = _selected(config, () if flow is None else (flow,), None, None)
    if len(selection.flows) != 1:
        names = ", ".join(one.name for one in selection.flows)
        raise UsageError(f"several flows are enabled: {names}; say which one with flow=")
    return selection, selection.flows[0]


def _cycles(
    selection: Selection, spark: "SparkSession | None", connect: Connect, *, commit: bool
) -> list[Row]:
    rows: list[Row] = []
    for flow in selection.flows:
        if spark is None:
            rows += _here(selection, flow, connect, commit=commit)
        else:
            rows += _on_spark(selection, flow, connect, spark, commit=commit)
    return rows


def _here(selection: Selection, flow: FlowSettings, connect: Connect, *, commit: bool) -> list[Row]:
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
    # Loads pyspark, which the other way has no need of.
    from tsoffset.spark.dataflow import run_cycle
    from tsoffset.spark.flow import FlowTask

    task = FlowTask(selection.configuration, flow.name, selection.narrowing, connect)
    result = run_cycle(spark, task, commit=commit and flow.commits)
    for warning in result.warnings:
        warnings.warn(warning, stacklevel=4)
    return list(result.rows)
