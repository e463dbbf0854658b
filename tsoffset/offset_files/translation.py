"""Translates stored offsets with the steps of a cycle, which reads them from the file and commits
nothing.

The cycle sees each log of the file as one group, so that naming, translation, cache and commit rule
are those of groups. No group is read or created on either cluster.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.source_commits import GroupWork, renamings_of
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.arrow_tables import as_arrow
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.commit_rule import decide
from tsoffset.group_sync.cycle import cycle_tables
from tsoffset.group_sync.read import groups_frame, source_commits, with_current
from tsoffset.group_sync.rows import ROWS, rows_of
from tsoffset.group_sync.steps import DecidedTables, ReadTables, StepsHere, join_cache
from tsoffset.group_sync.tables import COMMIT_RESULTS, TARGET_COMMITS, empty, select
from tsoffset.model import (
    CommittedOffset,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.offset_files.document import LOG_END, StoredOffset, TargetOffset, Targets

_SAFE = (OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)
# The rule's messages end with a next step for a group. The offset of an application has no group to
# reset, no `auto.offset.reset` and no later cycle.
_NEXT_STEPS: Mapping[str, str] = {
    Reason.TARGET_MISSING: "mirror it, check the replication policy, or correct the topic and"
    " partition in the input",
    Reason.EXPIRED: "its next records are deleted on the source, so replace it in the input, for"
    " example by the log start",
    Reason.PAST_LOG_END: "check that it is an offset of the source, and correct it in the input",
    Reason.NOT_MIRRORED: "translate it again once the mirror has reached it",
}


@dataclass(frozen=True, slots=True)
class StoredTranslation:
    """A stored offset with its row: the row's group is that of the file, or the one asked for."""

    stored: StoredOffset
    row: Row

    def may_be_written(self, accepted: Collection[Precision] = ()) -> bool:
        """Whether the translation is exact, or of an accepted precision. An unproven one never is:
        the application could skip records."""
        if self.row.outcome not in _SAFE or self.row.target_topic is None:
            return False
        if self.stored.offset < 0:
            return True
        precision = self.row.precision
        return precision is Precision.EXACT or (
            precision in accepted and precision not in (None, Precision.UNPROVEN)
        )


def targets_of(translated: Sequence[StoredTranslation]) -> Targets:
    """The target offsets that documents are written with; all of these have a translation."""
    found = {}
    for one in translated:
        assert one.row.target_topic is not None
        offset = one.stored.offset if one.stored.offset < 0 else one.row.target_offset
        assert offset is not None
        found[one.stored] = TargetOffset(one.row.target_topic, offset)
    return found


def translate_stored(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    offsets: Sequence[StoredOffset],
    *,
    group: str | None = None,
    cache: CachedTables | None = None,
) -> list[StoredTranslation]:
    """Each offset with its row, in order. `group` is the rows' group where the file names none;
    `cache` is the cache of the last call, and is updated. Raises ClusterUnreachable.
    """
    cache = CachedTables() if cache is None else cache
    # Raises ClusterUnreachable, as at the beginning of a cycle.
    target.describe()
    source.describe()
    of_records = [one for one in offsets if one.offset >= 0]
    found = _as_committed(of_records)
    # Competing flows do not matter: their sources have committed offsets of groups, not of a file.
    works = [GroupWork(name) for name in found.groups]
    commits = source_commits(flow, source, groups_frame(works), found=found)
    steps = _FileSteps(flow, source, target, commits=commits)
    done = cycle_tables(flow.name, steps, works, cache)
    cache.learn(done.cache)
    rows = {
        (row.group, row.source_topic, row.partition): row
        for row in rows_of(as_arrow(done.rows, ROWS))
    }
    translated = []
    for one in offsets:
        row = rows.get((_key(one), one.topic, one.partition))
        row = _without_translation(flow, one) if row is None else _for_application(row)
        translated.append(StoredTranslation(one, replace(row, group=one.group or group)))
    return translated


@dataclass(frozen=True, slots=True)
class _FileSteps(StepsHere):
    """The steps of a cycle whose commits are those of a file, and which commits nothing."""

    commits: pl.DataFrame = field(kw_only=True)

    def read(self, groups: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame) -> ReadTables:
        """As `Steps.read`, from the file."""
        return join_cache(self.commits, cached, ranges, empty(TARGET_COMMITS))

    def decide_and_commit(self, work: pl.DataFrame, topics: pl.DataFrame) -> DecidedTables:
        """As `Steps.decide_and_commit`, as if the target had no offset of the application."""
        rows = with_current(work, empty(TARGET_COMMITS))
        decided = decide(rows, self.flow.translation.floor)
        return select(decided, COMMIT_RESULTS), Cost()


def _as_committed(offsets: Sequence[StoredOffset]) -> CommittedColumns:
    """The offsets as if they were committed, each log as a group."""
    groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    for one in offsets:
        partition = TopicPartition(one.topic, one.partition)
        groups.setdefault(_key(one), {})[partition] = CommittedOffset(one.offset)
    return CommittedColumns.of({name: groups[name] for name in sorted(groups)})


def _key(one: StoredOffset) -> str:
    """The group's name in the cycle. No file has both logs and groups."""
    return one.log or one.group or ""


def _for_application(row: Row) -> Row:
    """The row with a next step for an application, where the rule's is one for a group."""
    step = None if row.reason is None else _NEXT_STEPS.get(row.reason)
    if step is None or row.message is None:
        return row
    cause = row.message.rpartition("; ")[0].replace("the committed offset", "the offset")
    return replace(row, message=f"{cause}; {step}")


def _without_translation(flow: FlowSettings, one: StoredOffset) -> Row:
    """The row of an offset that the cycle does not see: LOG_END, LOG_START, or an offset in a topic
    that is not mirrored."""
    renamings, failed = renamings_of(flow, [one.topic])
    renaming = renamings[one.topic]
    row = Row(
        flow=flow.name,
        group=None,
        source_topic=one.topic,
        partition=one.partition,
        source_offset=one.offset if one.offset >= 0 else None,
        source_timestamp_ms=None,
        target_topic=None if renaming is None else renaming.topic,
        target_offset=None,
        current_target_offset=None,
        outcome=OutcomeKind.UNCHANGED,
    )
    if (no := failed.get(one.topic)) is not None:
        return replace(row, outcome=OutcomeKind.FAILED, reason=no.kind, message=no.message)
    if renaming is None:
        return replace(
            row,
            outcome=OutcomeKind.SKIPPED,
            reason=Reason.TARGET_MISSING,
            message=f"flow {flow.name} does not mirror the topic {one.topic}; check its name,"
            " add it to `topics`, or remove its offsets from the input",
        )
    assert one.offset < 0, "the cycle has no row of an offset"
    word = "end" if one.offset == LOG_END else "start"
    return replace(
        row, message=f"{one.offset} stays: it means the {word} of the log on any cluster"
    )
