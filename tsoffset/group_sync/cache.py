"""What one cycle caches for the next, and which of it is still valid.

All of it may be lost at any time: it saves requests and changes no answer.
"""

from dataclasses import dataclass, field

import polars as pl
import polars.selectors as cs

from tsoffset.group_sync.commit_rule import source_at_reset
from tsoffset.group_sync.log_ranges import KnownLogs
from tsoffset.group_sync.tables import (
    CACHE,
    FAILURES,
    GROUP_PARTITION,
    KNOWN,
    LAST,
    LOG_ENDS,
    LOG_IDENTITY,
    PARTITION,
    PARTITIONS,
    VOID,
    anti_join,
    empty,
    left_join,
    null_where,
    select,
    semi_join,
)
from tsoffset.model import OutcomeKind


@dataclass(slots=True)
class CachedTables:
    """What is cached of a flow between cycles: `pairs` (CACHE) and `partitions` (PARTITIONS)."""

    pairs: pl.DataFrame = field(default_factory=lambda: empty(CACHE))
    partitions: pl.DataFrame = field(default_factory=lambda: empty(PARTITIONS))

    def learn(self, other: "CachedTables") -> None:
        """Replace everything with what `other` holds."""
        self.pairs, self.partitions = other.pairs, other.partitions


def with_reverse(pairs: pl.DataFrame, reverse: pl.DataFrame | None) -> pl.DataFrame:
    """What is cached (CACHE) with REVERSE_COMMITS; also rows that only the latter has. `reverse` is
    None if no flow in the other direction is enabled."""
    if reverse is None:
        return pairs
    both = pairs.join(
        reverse,
        on=GROUP_PARTITION,
        how="full",
        coalesce=True,
        validate="1:1",
        maintain_order="left",
    )
    return both.with_columns(has_reverse=pl.lit(True))


# --- what holds -------------------------------------------------------------------------


def with_cache(
    commits: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The commits, each with its cached values; `is_cached` is true if the cached translation is
    valid for the commit. Also the rows of `cached` (CACHE) that no commit has.

    A commit below its log's start has expired or was deleted, and the rule says so. A translation
    that was cached with the logs' ends is valid only while the logs still end there. Without the
    range of its partition's logs (null) no translation is valid.
    """
    same_ends = pl.all_horizontal(pl.col(f"known_{end}") == pl.col(end) for end in LOG_ENDS)
    is_cached = (
        (pl.col("known_offset") == pl.col("source_offset"))
        & pl.col("reason").is_null()
        & (pl.col("source_start") <= pl.col("source_offset"))
        & (pl.col("target_start") <= pl.col("known_target"))
        & (pl.col("known_target_end").is_null() | same_ends)
    ).fill_null(False)
    # An offset below the target log's start is not equivalent: the group would be reset.
    begin = pl.max_horizontal("known_from", "target_start")
    rows = left_join(commits, cached.with_columns(is_known=pl.lit(True)), GROUP_PARTITION)
    rows = left_join(rows, ranges, PARTITION).with_columns(is_cached=is_cached)
    rows = rows.with_columns(known_from=pl.when("is_cached").then(begin).otherwise("known_from"))
    # Also of a commit of which nothing is cached.
    rows = rows.with_columns(has_reverse=pl.lit("has_reverse" in cached.columns))
    if rows["is_known"].sum() == len(cached):
        return rows, cached.clear()
    rest = anti_join(cached, rows, GROUP_PARTITION)
    # The cache of a commit that is gone loses its translation, and is dropped in the next cycle.
    # A group that could not be read may still have the commit: its cache stays.
    unread = commits.filter(pl.col("source_topic").is_null() & pl.col("reason").is_in(FAILURES))
    is_gone = ~pl.col("group").is_in(unread["group"].implode())
    rest = rest.filter(~is_gone | pl.col("known_offset").is_not_null())
    return rows, rest.with_columns_seq(null_where(is_gone, KNOWN))


# --- what is kept -----------------------------------------------------------------------


def void_partitions(
    before: pl.DataFrame, void: pl.DataFrame, translated: pl.DataFrame, learned: pl.DataFrame
) -> pl.DataFrame:
    """The partitions whose cached values are no longer valid (VOID): `void`, and those in
    `translated` whose logs had been replaced, had become shorter or could not be recognized when
    they were translated."""
    both = before.join(learned, on=PARTITION, suffix="_now", validate="1:1", maintain_order="left")
    ids = (name for name in LOG_IDENTITY if name.endswith("topic_id"))
    is_recreated = pl.any_horizontal(pl.col(name) != pl.col(f"{name}_now") for name in ids)
    both = both.with_columns(is_recreated=is_recreated)
    same = both.filter(
        *(pl.col(name) == pl.col(f"{name}_now") for name in LOG_IDENTITY),
        *(pl.col(name) <= pl.col(f"{name}_now") for name in LOG_ENDS),
    )
    others = anti_join(translated, pl.concat([void, same], how="diagonal"), PARTITION)
    return pl.concat([void, select(left_join(others, both, PARTITION), VOID)])


def with_kept_translations(
    rows: pl.DataFrame, void: pl.DataFrame, rewriting: pl.Series
) -> pl.DataFrame:
    """The rows, each with the translation to cache (KNOWN): that of this cycle if it may be cached,
    otherwise the one cached before. The latter is dropped if it is void or of another offset, or if
    this cycle's answer differs. The last commit (LAST) is dropped if a topic was recreated. Columns
    of this cycle that only this function needs are dropped."""
    rows = _with_void(rows, void, rewriting)
    is_new = pl.col("is_new")
    is_answer = is_new & ~pl.col("new_reason").is_in(FAILURES).fill_null(False)
    is_other = is_answer & pl.col("new_target_offset").ne_missing(pl.col("known_target"))
    source_offset = pl.col("source_offset")
    same_offset = source_offset.is_null() | (pl.col("known_offset") == source_offset)
    stays = (same_offset & ~pl.col("is_void") & ~is_other).fill_null(False)
    rewrites = pl.col("source_topic").is_in(rewriting.implode())
    holds = (is_new & pl.col("holds") & ~rewrites).fill_null(False)
    new = [
        *("source_offset", "new_target_offset", "new_equivalent_from", "new_equivalent_to"),
        *("new_source_timestamp_ms", *(f"while_{end}" for end in LOG_ENDS)),
    ]
    return rows.with_columns_seq(
        *(
            pl.when(holds).then(fresh).when(stays).then(old).alias(old)
            for old, fresh in zip(KNOWN, new, strict=True)
        ),
        *null_where(pl.col("is_recreated"), LAST),
    ).drop(cs.starts_with("new_", "while_"), "holds", "is_new", "is_void", "is_recreated")


def without_void(rest: pl.DataFrame, void: pl.DataFrame, rewriting: pl.Series) -> pl.DataFrame:
    """The cached rows without a commit (CACHE), without translations that are no longer valid."""
    rest = _with_void(rest, void, rewriting)
    rest = rest.with_columns_seq(
        *null_where(pl.col("is_void"), KNOWN), *null_where(pl.col("is_recreated"), LAST)
    )
    return select(rest, CACHE)


def kept_pairs(rows: pl.DataFrame, rest: pl.DataFrame) -> pl.DataFrame:
    """CACHE after a cycle: the translation of each row (`with_kept_translations`), the last commit
    after which the target group had its translation, what the target group has, and the rows of
    `rest` (`without_void`)."""
    is_committed = pl.col("outcome") == OutcomeKind.COMMITTED
    has_translation = is_committed | (pl.col("outcome") == OutcomeKind.UNCHANGED)
    on_target = pl.when(is_committed).then("target_offset").otherwise("current_target_offset")
    # Where the source offset is not known, a reset of the target group is noticed later.
    seen = pl.when(pl.col("source_offset").is_not_null()).then(on_target)
    # Which flow has committed one of the two offsets as the translation of the other.
    by_reverse_flow = pl.col("reverse_committed") & (on_target == pl.col("reverse_source"))
    by_this_flow = pl.col("last_committed") & (on_target == pl.col("last_target"))
    committed = (
        pl.when(is_committed)
        .then(True)
        .when(by_reverse_flow)
        .then(False)
        .when(by_this_flow)
        .then(True)
    )
    rows = rows.with_columns_seq(
        source_at_reset=pl.when("has_reverse").then(source_at_reset()),
        seen_target=pl.when("has_reverse").then(pl.coalesce(seen, "seen_target")),
        last_source=pl.when(has_translation).then("source_offset").otherwise("last_source"),
        last_target=pl.when(has_translation).then(on_target).otherwise("last_target"),
        last_committed=pl.when(has_translation).then(committed).otherwise("last_committed"),
    )
    kept = pl.concat([select(rows, CACHE), rest])
    kept_for = pl.col("known_offset", "last_source", "seen_target")
    return kept.filter(pl.any_horizontal(kept_for.is_not_null()))


def _with_void(rows: pl.DataFrame, void: pl.DataFrame, rewriting: pl.Series) -> pl.DataFrame:
    """The rows with `is_void`: true if no cached translation of the row is valid; and with
    `is_recreated`, as in VOID."""
    rewrites = pl.col("source_topic").is_in(rewriting.implode()).fill_null(False)
    if void.is_empty():
        return rows.with_columns(is_void=rewrites, is_recreated=pl.lit(False))
    rows = left_join(rows, void.with_columns(is_void=pl.lit(True)), PARTITION)
    return rows.with_columns(
        pl.col("is_recreated").fill_null(False),
        is_void=pl.col("is_void").fill_null(False) | rewrites,
    )


def kept_partitions(
    before: pl.DataFrame,
    logs: KnownLogs,
    translated: pl.DataFrame,
    learned: pl.DataFrame,
    committed: pl.DataFrame,
) -> pl.DataFrame:
    """PARTITIONS after a cycle: `learned` for translated partitions; for the others their rows of
    `before`, with the ends that the logs have now. Partitions without a commit are dropped."""
    rest = anti_join(semi_join(before, committed, PARTITION), translated, PARTITION)
    now = logs.ranges.select(*PARTITION, pl.col(LOG_ENDS).name.suffix("_now"))
    rest = left_join(rest, now, PARTITION).with_columns_seq(
        pl.coalesce(f"{end}_now", end).alias(end) for end in LOG_ENDS
    )
    return pl.concat([select(rest, PARTITIONS), learned])
