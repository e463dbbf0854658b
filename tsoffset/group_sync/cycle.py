"""One sync cycle, from groups to rows:

    groups -> log ranges -> source commits -> what is cached of them -> source offsets to translate
           -> translations -> commit rule and commits -> rows, and what to cache

Its steps (`Steps`) run in this process, or in Spark tasks.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import CompetingFlow, GroupWork, preflight
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.arrow_tables import as_arrow
from tsoffset.group_sync.cache import (
    CachedTables,
    kept_pairs,
    kept_partitions,
    void_partitions,
    with_kept_translations,
    without_void,
)
from tsoffset.group_sync.commit import Time
from tsoffset.group_sync.log_ranges import KnownLogs
from tsoffset.group_sync.read import groups_frame
from tsoffset.group_sync.rows import ROWS, failed_row, rows_of, with_acknowledged
from tsoffset.group_sync.same_logs import (
    is_same_topic,
    leader_epochs,
    with_one_id,
    without_changed,
    without_lost,
)
from tsoffset.group_sync.steps import Steps, StepsHere
from tsoffset.group_sync.tables import (
    ANSWER,
    CACHE,
    COMMIT_RESULTS,
    COMMIT_WORK,
    FAILURES,
    PARTITION,
    PARTITIONS,
    READ_COMMITS,
    SOURCE_OFFSET,
    SOURCE_TOPICS,
    TO_TRANSLATE,
    TRANSLATION,
    TRANSLATIONS,
    Schema,
    anti_join,
    empty,
    left_join,
    null_where,
    select,
    semi_join,
)
from tsoffset.model import OutcomeKind, Precision, Reason, Row
from tsoffset.rule.reasons import rewritten

# COMMIT_WORK, and whether a row rests on a cached translation.
_OPEN_WORK: Schema = {**COMMIT_WORK, "is_cached": pl.Boolean}


@dataclass(frozen=True, slots=True)
class ReadGroups:
    """The result of the read step: READ_COMMITS, the cached rows without a commit (CACHE), and the
    logs."""

    commits: pl.DataFrame
    rest: pl.DataFrame
    logs: KnownLogs

    @classmethod
    def none(cls) -> "ReadGroups":
        """The result for no groups."""
        return cls(empty(READ_COMMITS), empty(CACHE), KnownLogs.none())

    def __len__(self) -> int:
        return len(self.commits) + len(self.rest)

    def to_translate(self) -> pl.DataFrame:
        """The distinct source offsets that are not cached, as TO_TRANSLATE."""
        wanted = (
            pl.col("source_offset").is_not_null()
            & pl.col("reason").is_null()
            & ~pl.col("is_cached")
        )
        # The other columns are not copied.
        rows = select(self.commits, TO_TRANSLATE).filter(self.commits.select(wanted).to_series())
        return rows.unique(SOURCE_OFFSET, keep="first").sort(SOURCE_OFFSET)


@dataclass(frozen=True, slots=True)
class CycleTables:
    """The result of a cycle: `rows` (ROWS) in the order of group, topic and partition, what the
    next cycle uses, the number of distinct source offsets that the groups have, and the cost."""

    rows: pl.DataFrame
    cache: CachedTables
    positions: int
    cost: Cost


def cycle_tables(
    flow: str, steps: Steps, groups: Sequence[GroupWork], cache: CachedTables
) -> CycleTables:
    """One cycle of these groups, which are in the order of their names."""
    return after_read(flow, steps, cache, read_groups(steps, groups, cache))


def cycle(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    commit: bool = True,
    competing_flows: Sequence[CompetingFlow] = (),
    cache: CachedTables | None = None,
    clock: Time = time,
) -> list[Row]:
    """One cycle of a flow in this process, without Spark: for tests and small estates.

    Returns one row per group and partition with a source commit, as docs/commands.md
    says. Commits nothing where `commit` is False or the flow is only planned
    (`sync.group.offsets.enabled = false`). `cache` is that of the last cycle; this
    one updates it. `clock` measures how long groups wait. Raises ClusterUnreachable.
    """
    cache = CachedTables() if cache is None else cache
    start = preflight(flow, source, target)
    steps = StepsHere(
        flow, source, target, competing_flows, commit=commit and flow.commits, clock=clock
    )
    done = cycle_tables(flow.name, steps, start.groups, cache)
    cache.learn(done.cache)
    return [
        *(failed_row(flow.name, failure) for failure in start.failures),
        *rows_of(as_arrow(done.rows, ROWS)),
    ]


def read_groups(steps: Steps, groups: Sequence[GroupWork], cache: CachedTables) -> ReadGroups:
    """The read step. Logs are read before groups: a commit behind the log end that was read is not
    taken from the cache."""
    logs = steps.log_ranges(cache.partitions)
    frame = groups_frame(groups)
    cached = cache.pairs.filter(pl.col("group").is_in(frame["group"].implode()))
    return ReadGroups(*steps.read(frame, cached, logs.ranges), logs)


def after_read(flow: str, steps: Steps, cache: CachedTables, found: ReadGroups) -> CycleTables:
    """The steps after the read step, and the result of the cycle."""
    logs = found.logs
    before = anti_join(cache.partitions, logs.void, PARTITION)
    offsets = found.to_translate()
    translations, learned, cost = empty(TRANSLATIONS), empty(PARTITIONS), Cost()
    # The topics of cached partitions are known from before the groups were read.
    sources = semi_join(before, logs.ranges, PARTITION).select(list(SOURCE_TOPICS))
    targets = logs.target_topics
    if not offsets.is_empty():
        translations, learned, seen_sources, seen_targets, cost = steps.translate(offsets, before)
        sources = with_one_id(pl.concat([sources, seen_sources]))
        targets = with_one_id(pl.concat([targets, seen_targets]))
    rewriting = translations.filter("rewrites_timestamps")["source_topic"].unique()
    translated = offsets.select(PARTITION).unique()
    void = void_partitions(before, logs.void, translated, learned)

    # Each table of all rows is dropped as soon as the next one is there: they are most of what
    # the driver holds.
    rest = without_void(found.rest, void, rewriting)
    rows = _with_translations(found.commits, translations, rewriting)
    del found, translations
    rows = _of_same_logs(steps, rows, sources)
    rows = with_kept_translations(rows, void, rewriting)
    rewrites = pl.col("source_topic").is_in(rewriting.implode()).fill_null(False)
    rows = rows.with_columns(is_open=~pl.col("is_unchanged") | rewrites)
    # The target group of a row that is not open has the cached translation.
    results = select(rows.with_columns(outcome=pl.lit(OutcomeKind.UNCHANGED)), COMMIT_RESULTS)
    if rows["is_open"].any():
        work = select(rows, _OPEN_WORK).filter(rows["is_open"])
        work = _of_cached_logs(steps, work, before)
        decided, committing = steps.decide_and_commit(select(work, COMMIT_WORK), targets)
        del work
        cost += committing
        results = _in_order(rows["is_open"], decided, results)
    rows = rows.drop(name for name in COMMIT_RESULTS if name in rows.columns).hstack(results)

    committed = pl.concat([rows.select(PARTITION), rest.select(PARTITION)])
    of_each = rows.select(*SOURCE_OFFSET, "is_cached").drop_nulls("source_offset")
    distinct = of_each.group_by(SOURCE_OFFSET).agg(pl.col("is_cached").any())
    recalled = int(distinct["is_cached"].sum())
    return CycleTables(
        with_acknowledged(rows).with_columns(flow=pl.lit(flow)).select(ROWS.names),
        CachedTables(
            kept_pairs(rows, rest),
            kept_partitions(before, logs, translated, learned, committed),
        ),
        len(distinct),
        replace(cost, positions=len(offsets) + recalled, recalled=recalled),
    )


def _in_order(is_open: pl.Series, decided: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """`decided` (of the open rows) and `others` (of all rows) as one table, in the order of the
    rows."""
    if len(decided) == len(others):
        return decided
    rows = pl.concat([is_open.arg_true(), (~is_open).arg_true()])
    return pl.concat([decided, others.filter(~is_open)])[rows.arg_sort()]


def _with_translations(
    commits: pl.DataFrame, translations: pl.DataFrame, rewriting: pl.Series
) -> pl.DataFrame:
    """READ_COMMITS, each with the translation of its offset: one of this cycle (which is also in
    `new_*`, to be cached), or the cached one. In topics whose target rewrites timestamps none
    counts."""
    new = translations.select_seq(
        *SOURCE_OFFSET,
        *(pl.col(name).alias(f"new_{name}") for name in TRANSLATION),
        *("holds", "while_source_end", "while_source_log_end", "while_target_end"),
        new_source_log_end="source_log_end",
        is_new=pl.lit(True),
    )
    rows = left_join(commits, new, SOURCE_OFFSET)
    # Another row may have the same offset: a translation is only for rows that asked for it.
    is_new = pl.col("reason").is_null() & ~pl.col("is_cached") & pl.col("is_new")
    rows = rows.with_columns(is_new=is_new.fill_null(False))
    cached = {
        "target_offset": pl.col("known_target"),
        "precision": pl.lit(Precision.EXACT),
        "reread_bound": pl.lit(0, pl.Int64),
        "equivalent_from": pl.col("known_from"),
        "equivalent_to": pl.col("known_to"),
        "source_timestamp_ms": pl.col("known_timestamp_ms"),
        "target_start": pl.col("target_start"),
        "target_end": pl.col("target_end"),
    }
    log_end = pl.when("is_cached").then("source_log_end").when("is_new").then("new_source_log_end")
    rows = rows.with_columns_seq(
        *(
            pl.when("is_cached").then(value).when("is_new").then(f"new_{name}").alias(name)
            for name, value in cached.items()
        ),
        *(
            pl.when("is_new").then(f"new_{name}").otherwise(name).alias(name)
            for name in ("reason", "message")
        ),
        # An end that was read before the groups is used only for offsets that have not moved
        # since: otherwise a group could seem to be past the end.
        consumer_lag=log_end - pl.col("source_offset"),
    )
    return _without_rewritten(rows, rewriting) if len(rewriting) else rows


def _without_rewritten(rows: pl.DataFrame, rewriting: pl.Series) -> pl.DataFrame:
    """The rows, without the translations of topics in which any target partition rewrites
    timestamps. A partition that the target lacks, or that could not be read, keeps its reason."""
    has_answer = pl.col("is_new") | pl.col("is_cached")
    stays = pl.col("reason").is_in([*FAILURES, Reason.TARGET_MISSING.value]).fill_null(False)
    in_topic = pl.col("source_topic").is_in(rewriting.implode())
    rows = rows.with_columns(is_rewritten=(in_topic & has_answer & ~stays).fill_null(False))
    is_rewritten = pl.col("is_rewritten")
    topics = rows.filter(is_rewritten)["target_topic"].unique().to_list()
    messages = {topic: rewritten(topic).message for topic in topics}
    message = pl.col("target_topic").replace_strict(messages, default=None, return_dtype=pl.String)
    reason = pl.lit(Reason.TARGET_REWRITES_TIMESTAMPS)
    return rows.with_columns_seq(
        *null_where(is_rewritten, ANSWER),
        reason=pl.when(is_rewritten).then(reason).otherwise("reason"),
        message=pl.when(is_rewritten).then(message).otherwise("message"),
    )


def _of_same_logs(steps: Steps, rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """The rows; one with a translation of this cycle loses it, and it is not cached, unless its
    source topic still has the id that it had before translating (`topics`, SOURCE_TOPICS), and its
    log still has all that the group has read."""
    is_new = pl.col("is_new") & pl.col("target_offset").is_not_null()
    new = rows.filter(is_new)
    if new.is_empty():
        return rows
    now, ends = steps.source_logs(new["source_topic"].unique().to_list(), leader_epochs(new))
    seen = without_changed(rows, is_new & ~is_same_topic(topics, now))
    seen = without_lost(seen, ends, is_new)
    is_kept = pl.col("target_offset").eq_missing(pl.col("new_target_offset"))
    return rows if seen is rows else seen.with_columns(holds=pl.col("holds") & is_kept)


def _of_cached_logs(steps: Steps, work: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """The work; rows that rest on cached translations fail unless their logs are known to be the
    same ones still: they may have been recreated since they were read."""
    partitions = work.filter("is_cached").select(PARTITION).unique()
    if partitions.is_empty():
        return work
    cached = semi_join(before, partitions, PARTITION)
    ranges = steps.log_ranges(cached).ranges
    work = left_join(work, ranges.select(*PARTITION, is_same=pl.lit(True)), PARTITION)
    return without_changed(work, pl.col("is_cached") & pl.col("is_same").is_null())
