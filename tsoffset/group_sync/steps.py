"""The steps of a cycle that talk to the clusters: in this process, or in Spark tasks."""

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.cycle.source_commits import CompetingFlow
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import with_cache
from tsoffset.group_sync.commit import READ_SECONDS, Time, commit_groups
from tsoffset.group_sync.log_ranges import KnownLogs, log_ranges
from tsoffset.group_sync.read import share_groups_of, source_commits, target_commits, with_current
from tsoffset.group_sync.same_logs import source_logs
from tsoffset.group_sync.tables import (
    READ_COMMITS,
    SOURCE_COMMITS,
    SOURCE_OFFSET,
    TARGET_COMMITS,
    TRANSLATIONS,
    empty,
    select,
)
from tsoffset.group_sync.translate import TranslatedTables, translate
from tsoffset.model import Failed

ReadTables = tuple[pl.DataFrame, pl.DataFrame]
"""READ_COMMITS in the order of group, topic and partition; and what is cached (CACHE) without a
commit."""

DecidedTables = tuple[pl.DataFrame, Cost]
"""COMMIT_RESULTS of COMMIT_WORK, in its order; and how late the latest commit was sent."""


class Steps(Protocol):
    """The steps of a cycle that talk to the clusters."""

    def log_ranges(self, partitions: pl.DataFrame) -> KnownLogs:
        """The logs of cached partitions (PARTITIONS) now."""

    def read(self, groups: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame) -> ReadTables:
        """Read GROUPS. `cached` (CACHE) is of these groups; `ranges` are LOG_RANGES."""

    def source_logs(
        self, topics: Collection[str], epochs: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """SOURCE_TOPICS and EPOCH_ENDS (of LEADER_EPOCHS) as they are now."""

    def translate(self, offsets: pl.DataFrame, partitions: pl.DataFrame) -> TranslatedTables:
        """Translate TO_TRANSLATE; the new PARTITIONS are based on `partitions`."""

    def decide_and_commit(self, work: pl.DataFrame, topics: pl.DataFrame) -> DecidedTables:
        """Decide COMMIT_WORK, and commit. Nothing is committed to topics other than `topics`
        (TARGET_TOPICS)."""


@dataclass(frozen=True, slots=True)
class StepsHere:
    """The steps in this process. With `commit`, commits are made until `until` (seconds since 1970
    UTC)."""

    flow: FlowSettings
    source: Cluster
    target: Cluster
    competing_flows: Sequence[CompetingFlow] = ()
    commit: bool = False
    until: float | None = None
    clock: Time = time

    def log_ranges(self, partitions: pl.DataFrame) -> KnownLogs:
        return log_ranges(self.flow, self.source, self.target, partitions)

    def read(self, groups: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame) -> ReadTables:
        """As `Steps.read`, with both clusters asked at once."""
        names = cached["group"].unique(maintain_order=True).to_list()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(
                committed_columns,
                self.target,
                names,
                share_groups=share_groups_of(groups),
                require_stable=True,
                within_seconds=READ_SECONDS,
            )
            commits = source_commits(self.flow, self.source, groups, self.competing_flows)
            current = target_commits(asked.result())
        return join_cache(commits, cached, ranges, current)

    def source_logs(
        self, topics: Collection[str], epochs: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        return source_logs(self.source, topics, epochs)

    def translate(self, offsets: pl.DataFrame, partitions: pl.DataFrame) -> TranslatedTables:
        return translate(self.flow, self.source, self.target, offsets, partitions)

    def decide_and_commit(self, work: pl.DataFrame, topics: pl.DataFrame) -> DecidedTables:
        done = commit_groups(
            self.flow,
            self.target,
            work,
            commit_to=topics if self.commit else None,
            until=self.until,
            clock=self.clock,
        )
        return done.rows, Cost(commit_gap_seconds=done.longest_gap_seconds)


def join_cache(
    commits: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame, current: pl.DataFrame
) -> ReadTables:
    """SOURCE_COMMITS with what is cached of them as READ_COMMITS, and the rest of what is cached.
    `current` is what the groups have on the target (TARGET_COMMITS)."""
    rows, rest = with_cache(commits, cached, ranges)
    rows = with_current(rows, current)
    has_translation = pl.col("current_target_offset").is_between("known_from", "known_to")
    is_unchanged = (pl.col("is_cached") & has_translation).fill_null(False)
    return select(rows.with_columns(is_unchanged=is_unchanged), READ_COMMITS), rest


def unread(groups: pl.DataFrame, cached: pl.DataFrame, failed: Failed) -> ReadTables:
    """What `Steps.read` returns if none of the groups could be read: everything stays cached."""
    rows = groups.select("group", reason=pl.lit(failed.kind), message=pl.lit(failed.message))
    commits = select(rows, SOURCE_COMMITS)
    return join_cache(commits, cached, KnownLogs.none().ranges, empty(TARGET_COMMITS))


def failed_translations(offsets: pl.DataFrame, failed: Failed) -> pl.DataFrame:
    """What `Steps.translate` returns if nothing could be translated."""
    return select(
        offsets.select(
            *SOURCE_OFFSET,
            reason=pl.lit(failed.kind),
            message=pl.lit(failed.message),
            holds=pl.lit(False),
            rewrites_timestamps=pl.lit(False),
        ),
        TRANSLATIONS,
    )
