"""Source commits with their translations as values, for commands that show how a translation was
proven: explain, compare, `sync --allow-rewind` and the Python API."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.cycle.work import TranslatedPosition
from tsoffset.group_sync.arrow_tables import as_arrow
from tsoffset.group_sync.rows import ROWS, rows_of, with_acknowledged
from tsoffset.group_sync.same_logs import leader_epochs, source_logs, without_lost
from tsoffset.group_sync.tables import COMMIT_RESULTS, COMMIT_WORK, FAILURES, Schema, select
from tsoffset.group_sync.translate import ANSWERED, answer_columns
from tsoffset.model import (
    Basis,
    CommittedOffset,
    Failed,
    FailureKind,
    Reason,
    Row,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.reasons import rewritten
from tsoffset.rule.translate import Translation


@dataclass(frozen=True, slots=True)
class TranslatedCommit:
    """A source commit with the translation of its position; `position` is None if the commit has a
    verdict, and so needs no translation."""

    commit: SourceCommit
    position: TranslatedPosition | None = None

    def answer(self, row: Row) -> Translated | None:
        """What the target offset of the row rests on: the translation, or the log's start."""
        if row.target_offset is None or row.precision is None or self.position is None:
            return None
        outcome = self.position.translation.outcome
        if isinstance(outcome, Translated):
            return outcome
        start = row.target_offset
        return Translated(start, row.precision, row.reread_bound, start, start, Basis.FLOOR)


def commits_of(commits: pl.DataFrame) -> Iterator[SourceCommit]:
    """The rows of SOURCE_COMMITS."""
    for row in commits.iter_rows(named=True):
        topic, number, offset = row["source_topic"], row["partition"], row["source_offset"]
        reason, message = row["reason"], row["message"]
        verdict = None if reason is None else _verdict(reason, message)
        to = row["target_topic"]
        yield SourceCommit(
            row["group"],
            None if topic is None else TopicPartition(topic, number),
            None
            if offset is None
            else CommittedOffset(offset, row["metadata"] or "", leader_epoch=row["leader_epoch"]),
            None if to is None else TopicPartition(to, number),
            bool(row["is_remote_topic"]),
            bool(row["failback"]),
            bool(row["target_active"]),
            verdict,
            bool(row["is_share_group"]),
            row["acknowledged"],
        )


def _verdict(reason: str, message: str) -> Skipped | Failed:
    if reason in FAILURES:
        return Failed(FailureKind(reason), message)
    return Skipped(Reason(reason), message)


def join_translations(
    commits: Iterable[SourceCommit], translated: Iterable[TranslatedPosition]
) -> list[TranslatedCommit]:
    """Each commit with the translation of its position, where it needs one."""
    positions = {(one.partition, one.offset): one for one in translated}
    rewriting = {
        one.partition.topic for one in positions.values() if one.target_rewrites_timestamps
    }
    found = []
    for commit in commits:
        position = None
        if commit.verdict is None and commit.partition and commit.committed and commit.target:
            position = positions[commit.partition, commit.committed.offset]
            if commit.partition.topic in rewriting:
                position = _of_rewritten_topic(position, commit.target.topic)
        found.append(TranslatedCommit(commit, position))
    return found


def _of_rewritten_topic(position: TranslatedPosition, target_topic: str) -> TranslatedPosition:
    """The position, skipped because a partition of its topic rewrites timestamps on the target. A
    position whose target partition is missing, or that failed, is returned unchanged."""
    outcome = position.translation.outcome
    if isinstance(outcome, Failed) or (
        isinstance(outcome, Skipped) and outcome.reason is Reason.TARGET_MISSING
    ):
        return position
    return replace(
        position, translation=replace(position.translation, outcome=rewritten(target_topic))
    )


def without_lost_records(
    source: Cluster, commits: Sequence[TranslatedCommit]
) -> list[TranslatedCommit]:
    """The commits; those of groups that have read records which the source has lost have a verdict
    instead of a translation (`without_lost`)."""
    work = commit_work(commits)
    is_translated = pl.col("target_offset").is_not_null()
    translated = work.filter(is_translated)
    topics = translated["source_topic"].unique().to_list()
    _, ends = source_logs(source, topics, leader_epochs(translated))
    after = without_lost(work, ends, is_translated)
    is_lost = (work["target_offset"].is_not_null() & after["target_offset"].is_null()).to_list()
    verdicts = after.select("reason", "message").iter_rows()
    return [
        TranslatedCommit(replace(one.commit, verdict=_verdict(*verdict))) if lost else one
        for one, lost, verdict in zip(commits, is_lost, verdicts, strict=True)
    ]


def commit_work(commits: Iterable[TranslatedCommit]) -> pl.DataFrame:
    """The commits as COMMIT_WORK with their leader epochs, in their order."""
    schema: Schema = {**COMMIT_WORK, "leader_epoch": pl.Int32}
    return select(pl.DataFrame(list(map(_work, commits)), schema), schema)


def _work(one: TranslatedCommit) -> dict[str, object]:
    commit, position = one.commit, one.position
    found: dict[str, object] = {
        "group": commit.group,
        "target_active": commit.target_active,
        "is_share_group": commit.is_share_group,
        "acknowledged": commit.acknowledged,
    }
    if commit.partition is not None and commit.target is not None:
        found |= {
            "source_topic": commit.partition.topic,
            "partition": commit.partition.partition,
            "target_topic": commit.target.topic,
        }
    if commit.committed is not None:
        found |= {
            "source_offset": commit.committed.offset,
            "metadata": commit.committed.metadata,
            "leader_epoch": commit.committed.leader_epoch,
        }
    if commit.verdict is not None:
        found |= zip(ANSWERED, answer_columns(Translation(commit.verdict)), strict=True)
    if position is not None:
        found |= zip(ANSWERED, answer_columns(position.translation), strict=True)
        if (log := position.target_range) is not None:
            found |= {"target_start": log.start, "target_end": log.end}
    return found


def result_rows(flow: str, work: pl.DataFrame, results: pl.DataFrame) -> Iterator[Row]:
    """The rows of COMMIT_WORK with their COMMIT_RESULTS."""
    rows = work.drop(name for name in COMMIT_RESULTS if name in COMMIT_WORK).hstack(results)
    rows = with_acknowledged(rows).with_columns(flow=pl.lit(flow))
    return rows_of(as_arrow(rows, ROWS))
