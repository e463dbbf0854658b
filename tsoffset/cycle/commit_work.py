"""Commits joined with their translations: what the last step of a cycle is given."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from tsoffset.cycle.frames import to_frame
from tsoffset.cycle.matching import in_partitions, joined, numbers, one_of_each, only, take, words
from tsoffset.cycle.schema import TRANSLATED, by_name, columns_table
from tsoffset.cycle.steps import Steps
from tsoffset.group_sync.tables import ANSWER, COMMIT_WORK, FAILURES, null_where, select
from tsoffset.model import FailureKind, Precision, Reason
from tsoffset.records import Numbers
from tsoffset.rule.reasons import rewritten

_CHANGED_MEANWHILE = (
    "the partition was recreated, lost records at its end, or could not be reached while "
    "the cycle ran; nothing is committed, the next cycle looks anew"
)


def commit_work(
    names: Sequence[str],
    found: pa.Table,
    translated: pa.Table,
    unknown: Numbers,
    rewriting: pa.Array,
) -> pl.DataFrame:
    """The commits with the translations of their positions, as COMMIT_WORK: those just made, by the
    numbers in `unknown`, or else the recalled ones. A commit that has a reason gets none."""
    recalled = found["recalled"].to_numpy()
    rows = only(found, recalled)
    known = {
        "target_offset": rows["known_target"],
        "precision": words([Precision.EXACT], np.zeros(len(rows), np.int64)),
        "reread_bound": np.zeros(len(rows), np.int64),
        "equivalent_from": rows["known_from"],
        "equivalent_to": rows["known_to"],
        "source_timestamp_ms": rows["known_timestamp_ms"],
        "target_start": rows["target_start"],
        "target_end": rows["target_end"],
    }
    pool = joined(
        [translated.select(TRANSLATED.names), columns_table(TRANSLATED, len(rows), known)]
    )
    at = unknown.copy()
    at[recalled] = len(translated) + np.arange(len(rows))
    translation = by_name(take(pool, at))
    why = {f"no_{name}": translation.pop(name) for name in ("reason", "message")}
    columns = by_name(found) | translation | why
    columns["group"] = words(names, numbers(found["group"]))
    work = to_frame({name: columns[name] for name in columns if name in COMMIT_WORK or name in why})
    work = work.with_columns(
        reason=pl.coalesce("reason", "no_reason"), message=pl.coalesce("message", "no_message")
    )
    if len(rewriting):
        work = _without_rewritten(work, rewriting.to_pylist())
    return select(work, COMMIT_WORK)


def _without_rewritten(work: pl.DataFrame, topics: Sequence[str]) -> pl.DataFrame:
    """No translation counts in topics of which a target partition rewrites timestamps. A partition
    that the target does not have, or that could not be asked, keeps its reason."""
    is_answer = pl.col("target_offset").is_not_null() | pl.col("no_reason").is_not_null()
    keeps = pl.col("no_reason").is_in([*FAILURES, Reason.TARGET_MISSING.value]).fill_null(False)
    work = work.with_columns(void=pl.col("source_topic").is_in(topics) & is_answer & ~keeps)
    void, target_topic = pl.col("void"), pl.col("target_topic")
    there = work.filter(void)["target_topic"].unique().to_list()
    messages = {topic: rewritten(topic).message for topic in there}
    message = target_topic.replace_strict(messages, default=None, return_dtype=pl.String)
    return work.with_columns(
        *null_where(void, ANSWER),
        reason=pl.when(void).then(pl.lit(Reason.TARGET_REWRITES_TIMESTAMPS)).otherwise("reason"),
        message=pl.when(void).then(message).otherwise("message"),
    )


def same_logs(steps: Steps, work: pl.DataFrame, found: pa.Table, before: pa.Table) -> pl.DataFrame:
    """The work; rows that rest on recalled translations fail where the logs are not seen to be the
    same ones still: they may have been recreated since the first look. `found` are the same rows
    as they were looked at."""
    recalled = found["recalled"].to_numpy()
    if not recalled.any():
        return work
    partitions = one_of_each(only(found, recalled))
    logs = steps.logs(only(before, in_partitions(before, partitions)))
    work = work.with_columns(gone=recalled & ~in_partitions(found, logs.logs))
    gone = pl.col("gone")
    return select(
        work.with_columns(
            *null_where(gone, ["source_timestamp_ms", *ANSWER]),
            reason=pl.when(gone).then(pl.lit(FailureKind.NO_LEADER)).otherwise("reason"),
            message=pl.when(gone).then(pl.lit(_CHANGED_MEANWHILE)).otherwise("message"),
        ),
        COMMIT_WORK,
    )
