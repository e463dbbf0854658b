"""The tables of a sync cycle: their columns and types.

`reason` and `message` say why nothing is committed for a row: a `Reason` (skipped) or a
`FailureKind` (failed). Where both are null, nothing stands against a commit so far.
"""

from collections.abc import Mapping

import polars as pl

from tsoffset.model import FailureKind

# Words, not members: Polars takes a list of members for a type that has no other words.
FAILURES = [kind.value for kind in FailureKind]

Schema = Mapping[str, type[pl.DataType]]

TARGET_PARTITION = ["group", "target_topic", "partition"]

# A row without a source topic is a group that could not be read as a whole.
COMMIT_WORK: Schema = {
    "group": pl.String,
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_offset": pl.Int64,
    "metadata": pl.String,
    "target_topic": pl.String,
    "target_active": pl.Boolean,
    "reason": pl.String,
    "message": pl.String,
    # The translation; a group that is anywhere from `equivalent_from` to `equivalent_to` reads on
    # at the same record.
    "source_timestamp_ms": pl.Int64,
    "target_offset": pl.Int64,
    "precision": pl.String,
    "reread_bound": pl.Int64,
    "equivalent_from": pl.Int64,
    "equivalent_to": pl.Int64,
    # The target's log when it was translated; null where it could not be read.
    "target_start": pl.Int64,
    "target_end": pl.Int64,
    # The last source offset whose translation the group had on the target, and that translation.
    "last_source": pl.Int64,
    "last_target": pl.Int64,
    # The target offset that an operator allows the group to go back from.
    "rewind_from": pl.Int64,
}

ANSWER = ["target_offset", "precision", "reread_bound", "equivalent_from", "equivalent_to"]

# A row without a target topic is a group that could not be read as a whole.
TARGET_COMMITS: Schema = {
    "group": pl.String,
    "target_topic": pl.String,
    "partition": pl.Int32,
    "current_target_offset": pl.Int64,
    # Why the committed offset could not be read, and how long it is worth asking again.
    "current_reason": pl.String,
    "current_message": pl.String,
    "current_patience_seconds": pl.Float64,
}
CURRENT = [name for name in TARGET_COMMITS if name.startswith("current_")]

# One row for each row of COMMIT_WORK, in its order.
COMMIT_RESULTS: Schema = {
    "source_timestamp_ms": pl.Int64,
    "target_offset": pl.Int64,
    "current_target_offset": pl.Int64,
    "outcome": pl.String,
    "reason": pl.String,
    "precision": pl.String,
    "reread_bound": pl.Int64,
    "message": pl.String,
}


def select(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The columns of `schema`, in its order and types; those that `rows` lacks are null."""
    there = rows.schema
    return rows.select(
        pl.col(name).cast(dtype) if name in there else pl.lit(None, dtype).alias(name)
        for name, dtype in schema.items()
    )


def null_where(condition: pl.Expr, columns: list[str]) -> list[pl.Expr]:
    """These columns, null where the condition is true."""
    return [pl.when(condition).then(None).otherwise(pl.col(name)).alias(name) for name in columns]
