"""Reading the offsets that groups have committed, as tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.cache_update import ranges_of
from tsoffset.cycle.source_commits import (
    CONSUMER_GROUPS,
    Claims,
    CompetingFlow,
    GroupWork,
    renamings_of,
)
from tsoffset.flow.policy import Renaming
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.tables import (
    CURRENT,
    GROUP_PARTITION,
    GROUPS,
    PARTITION,
    SOURCE_COMMITS,
    TARGET_COMMITS,
    TARGET_PARTITION,
    in_one_chunk,
    left_join,
    select,
    semi_join,
)
from tsoffset.model import GroupType, Isolation, LogRange, Reason, TopicPartition
from tsoffset.records import Numbers

_CONSUMER_GROUPS = [kind.value for kind in CONSUMER_GROUPS]
_is_share_group = pl.col("type") == GroupType.SHARE


def groups_frame(groups: Sequence[GroupWork]) -> pl.DataFrame:
    rows = [(one.group, one.type, one.target_type, one.target_active) for one in groups]
    return pl.DataFrame(rows, GROUPS, orient="row")


def share_groups_of(groups: pl.DataFrame) -> frozenset[str]:
    """Those of GROUPS that are share groups on the source."""
    return frozenset(groups.filter(_is_share_group)["group"])


# --- source groups ----------------------------------------------------------------------


def source_commits(
    flow: FlowSettings,
    source: Cluster,
    groups: pl.DataFrame,
    competing_flows: Sequence[CompetingFlow] = (),
    found: CommittedColumns | None = None,
) -> pl.DataFrame:
    """The commits of GROUPS that the flow syncs, as SOURCE_COMMITS in the order of group, topic and
    partition. A group that cannot be read is one row without a topic. `found` are the committed
    offsets if they are not to be fetched."""
    names_of_groups, share_groups = groups["group"].to_list(), share_groups_of(groups)
    if found is None:
        found = committed_columns(
            source, names_of_groups, share_groups=share_groups, require_stable=False
        )
    failures = _failures(found)
    there = pl.Series(list(found.topics), dtype=pl.String)
    names = pl.concat([there, failures["source_topic"].drop_nulls()]).unique()
    topics, renamings = _target_topics(flow, names)
    of_group = in_one_chunk(groups).with_columns_seq(
        _type_message().alias("type_message"), is_share_group=_is_share_group
    )
    entries = _offsets(found, topics, of_group)
    if not failures.is_empty():
        failures = left_join(left_join(failures, topics, ["source_topic"]), of_group, ["group"])
        entries = pl.concat([entries, failures], how="diagonal")
    entries = entries.filter(pl.col("is_synced").fill_null(True))
    entries = _with_several_topics(entries, topics)
    claims = Claims(competing_flows, names_of_groups, share_groups)
    entries = _with_claims(entries, renamings, claims)
    is_group = pl.col("source_topic").is_null()
    is_other_type = pl.col("type_message").is_not_null()
    several = pl.coalesce("topics_message", "claim_message")
    # The first of these reasons against a commit.
    entries = entries.with_columns_seq(
        reason=pl.when(pl.col("naming_reason").is_not_null())
        .then("naming_reason")
        .when(is_group)
        .then("reason")
        .when(is_other_type)
        .then(pl.lit(Reason.UNSUPPORTED_GROUP))
        .when(several.is_not_null())
        .then(pl.lit(Reason.SEVERAL_SOURCES))
        .otherwise("reason"),
        message=pl.when(is_group)
        .then(pl.coalesce("naming_message", "message"))
        .otherwise(pl.coalesce("naming_message", "type_message", several, "message")),
    )
    rows = select(_with_acknowledged(entries, source), SOURCE_COMMITS)
    if failures.is_empty():
        return rows
    rows = rows.sort(GROUP_PARTITION, nulls_last=False, maintain_order=True)
    # Where a broker names a partition twice, a failure counts before any offset.
    is_last = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in GROUP_PARTITION
    )
    return rows.filter(is_last | (pl.int_range(pl.len()) == pl.len() - 1))


def _offsets(found: CommittedColumns, topics: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The offsets that were read, in the order of group, topic and partition, with what is known of
    each one's topic and group."""
    rows = _rows_in_order(found)
    of_topic = left_join(_words("source_topic", found.topics), topics, ["source_topic"])
    of_group = left_join(_words("group", found.groups), groups, ["group"])
    metadata, lag = (
        pl.lit(pl.Series([of.get(n) for n in rows.tolist()], dtype=dtype) if of else None, dtype)
        for of, dtype in ((found.metadata, pl.String), (found.lag, pl.Int64))
    )
    offsets = pl.DataFrame(
        {
            "partition": found.partition[rows],
            "source_offset": found.offset[rows],
            "leader_epoch": found.leader_epoch[rows],
        }
    ).with_columns_seq(
        leader_epoch=pl.when(pl.col("leader_epoch") >= 0).then("leader_epoch"),
        metadata=metadata,
        lag=lag,
        reason=pl.lit(None, pl.String),
        message=pl.lit(None, pl.String),
    )
    return offsets.hstack(of_topic[found.topic[rows]]).hstack(of_group[found.group[rows]])


def _rows_in_order(found: CommittedColumns) -> Numbers:
    """The ranks of the offsets in the order of group, topic and partition. Where a broker names a
    partition twice, the last answer counts."""
    columns = (
        found.partition,
        _ranks(found.topics)[found.topic],
        _ranks(found.groups)[found.group],
    )
    rows = np.lexsort(columns)
    is_next_same = np.ones(max(0, len(rows) - 1), bool)
    for column in columns:
        is_next_same &= np.diff(column[rows]) == 0
    last: Numbers = rows[np.append(~is_next_same, True)[: len(rows)]]
    return last


def _ranks(words: Sequence[str]) -> Numbers:
    """The rank of each word in their order."""
    ranks = np.empty(len(words), np.int64)
    ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    return ranks


def _words(name: str, words: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame({name: list(words)}, {name: pl.String})


def _failures(found: CommittedColumns) -> pl.DataFrame:
    """Groups (without a topic) and partitions that could not be read."""
    rows = [
        *((group, None, None, no.kind, no.message) for group, no in found.failed.items()),
        *(
            (group, at.topic, at.partition, no.kind, no.message)
            for (group, at), no in found.failed_entries.items()
        ),
    ]
    names = [*GROUP_PARTITION, "reason", "message"]
    return pl.DataFrame(rows, {name: SOURCE_COMMITS[name] for name in names}, orient="row")


def _target_topics(
    flow: FlowSettings, topics: pl.Series
) -> tuple[pl.DataFrame, Mapping[str, Renaming | None]]:
    """The target topic of each source topic, or why it has none."""
    renamings, failed = renamings_of(flow, topics.to_list())
    rows = []
    names: tuple[str | None, bool, bool]
    for topic, renaming in renamings.items():
        no = failed.get(topic)
        names = (None, False, False)
        why = (None, None) if no is None else (no.kind, no.message)
        if renaming is not None:
            names = (renaming.topic, renaming.is_remote_topic, renaming.failback)
        rows.append((topic, renaming is not None or no is not None, *names, *why))
    schema = {
        "source_topic": pl.String,
        "is_synced": pl.Boolean,
        "target_topic": pl.String,
        "is_remote_topic": pl.Boolean,
        "failback": pl.Boolean,
        "naming_reason": pl.String,
        "naming_message": pl.String,
    }
    return pl.DataFrame(rows, schema, orient="row"), renamings


def _type_message() -> pl.Expr:
    """Why a group is not synced: the target has a group of this name with another type. Null if the
    group is synced."""
    is_consumer_group = pl.col("type").is_in(_CONSUMER_GROUPS)
    is_other_there = pl.col("target_type").is_in(_CONSUMER_GROUPS) != is_consumer_group
    is_other_there |= _is_share_group & (pl.col("target_type") != GroupType.SHARE)
    return pl.when(is_other_there).then(
        pl.format(
            "{} is a {} group on the source and a {} group on the target; rename one of them, "
            "or delete the group on the target",
            *("group", "type", "target_type"),
        )
    )


def _with_acknowledged(entries: pl.DataFrame, source: Cluster) -> pl.DataFrame:
    """The entries with `acknowledged` for share groups: the records between the start offset and
    the log's end, without those that the broker reports as lag. The log's end is read after the
    lag, so that `acknowledged` is not too low.

    `group.share.partition.max.record.locks` is no limit for them: a batch with more records than
    that is delivered whole.
    """
    wanted = pl.col("is_share_group") & pl.col("reason").is_null()
    share = entries.filter(wanted & pl.col("source_offset").is_not_null())
    if share.is_empty():
        return entries
    partitions = [TopicPartition(*key) for key in share.select(PARTITION).unique().iter_rows()]
    found = ranges_of(source, partitions, Isolation.READ_UNCOMMITTED)
    ends = pl.DataFrame(
        [
            (at.topic, at.partition, log.end, None, None)
            if isinstance(log, LogRange)
            else (at.topic, at.partition, None, log.kind, log.message)
            for at, log in found.items()
        ],
        {
            **{name: SOURCE_COMMITS[name] for name in PARTITION},
            **{"log_end": pl.Int64, "no_end": pl.String, "no_end_message": pl.String},
        },
        orient="row",
    )
    behind = pl.col("log_end") - pl.col("source_offset") - pl.col("lag").fill_null(0)
    return left_join(entries, ends, PARTITION).with_columns_seq(
        acknowledged=pl.when(wanted).then(behind.clip(lower_bound=0)),
        reason=pl.when(wanted).then("no_end").otherwise("reason"),
        message=pl.when(wanted).then("no_end_message").otherwise("message"),
    )


def _with_several_topics(entries: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """The entries; `topics_message` is set where several source topics of the group have the same
    target partition."""
    is_shared = pl.col("target_topic").is_not_null() & pl.col("target_topic").is_duplicated()
    shared = topics.filter(is_shared)
    if shared.is_empty():
        return entries.with_columns(topics_message=pl.lit(None, pl.String))
    several = (
        semi_join(entries, shared, ["source_topic"])
        .group_by(TARGET_PARTITION)
        .agg(pl.col("source_topic").unique().sort())
        .filter(pl.col("source_topic").list.len() > 1)
        .pipe(in_one_chunk)
        .with_columns(
            topics_message=pl.format(
                "{}-{} of group {}: the source topics {} all map to it; exclude all but one "
                "(topics.exclude)",
                "target_topic",
                "partition",
                "group",
                pl.col("source_topic").list.join(" and "),
            )
        )
        .drop("source_topic")
    )
    return left_join(entries, several, TARGET_PARTITION)


def _with_claims(
    entries: pl.DataFrame, renamings: Mapping[str, Renaming | None], claims: Claims
) -> pl.DataFrame:
    """The entries; `claim_message` is set where another flow writes the target partition, too."""
    found: list[str | None] = [None] * len(entries)
    claimable = [
        topic
        for topic, renaming in renamings.items()
        if renaming is not None and claims.may_be_on(renaming)
    ]
    if claimable:
        asked = entries.with_row_index("row").filter(
            pl.col("source_topic").is_in(claimable)
            & pl.col("type_message").is_null()
            & pl.col("topics_message").is_null()
        )
        for row, group, topic, number in asked.select("row", *GROUP_PARTITION).iter_rows():
            renaming = renamings[topic]
            assert renaming is not None
            claim = claims.on(group, TopicPartition(renaming.topic, number), renaming)
            found[row] = None if claim is None else claim.message
    return entries.with_columns(claim_message=pl.Series(found, dtype=pl.String))


# --- target groups ----------------------------------------------------------------------


def target_commits(found: CommittedColumns) -> pl.DataFrame:
    """The committed offsets of target groups as TARGET_COMMITS."""
    rows = _rows_in_order(found)
    read = (
        pl.DataFrame(
            {"partition": found.partition[rows], "current_target_offset": found.offset[rows]}
        )
        .hstack(_words("group", found.groups)[found.group[rows]])
        .hstack(_words("target_topic", found.topics)[found.topic[rows]])
    )
    failed = [
        *((group, None, None, no) for group, no in found.failed.items()),
        *((group, at.topic, at.partition, no) for (group, at), no in found.failed_entries.items()),
    ]
    not_read = pl.DataFrame(
        [(*key, None, no.kind, no.message, no.retry_seconds) for *key, no in failed],
        TARGET_COMMITS,
        orient="row",
    )
    if not_read.is_empty():
        return select(read, TARGET_COMMITS)
    both = pl.concat([select(read, TARGET_COMMITS), not_read])
    # Where a broker names a partition twice, a failure counts before any offset.
    return both.unique(TARGET_PARTITION, keep="last", maintain_order=True)


def with_current(rows: pl.DataFrame, current: pl.DataFrame) -> pl.DataFrame:
    """The rows with what their groups have on their target partitions (TARGET_COMMITS)."""
    of_group = pl.col("target_topic").is_null()
    if current["current_reason"].null_count() == len(current):
        return left_join(rows, current, TARGET_PARTITION)
    rows = left_join(rows, current.filter(~of_group), TARGET_PARTITION)
    not_read = current.filter(of_group).select("group", pl.col(CURRENT).name.suffix("_group"))
    return (
        left_join(rows, not_read, ["group"])
        .with_columns_seq(pl.coalesce(f"{name}_group", name).alias(name) for name in CURRENT)
        .drop(f"{name}_group" for name in CURRENT)
    )
