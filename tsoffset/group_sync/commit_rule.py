"""The commit rule: may the translation be committed, given what the target group has?

A group never moves backwards, unless an operator allows it from a named offset (docs/design.md,
"Commit rule"). A comparison with null is null, and null falls through a chain of conditions. So
the chain names what may be committed, and ends in a skip.
"""

import polars as pl

from tsoffset.group_sync.tables import FAILURES, in_one_chunk
from tsoffset.model import LONGEST_MESSAGE, FailureKind, OutcomeKind, Precision, Reason

REWINDABLE = (Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD)
"""The reasons for which an operator may move a group back."""

_OUTCOMES = [kind.value for kind in OutcomeKind]
_UNPROVEN = [Reason.NOT_MIRRORED.value, Reason.NO_PROOF.value]
# The failure of reading a share group on a cluster that does not know this request.
_NO_SHARE_GROUPS = FailureKind.UNSUPPORTED_VERSION.value
_target, _current = pl.col("target_offset"), pl.col("current_target_offset")


def decide(rows: pl.DataFrame, floor: str = "none") -> pl.DataFrame:
    """The rows with `outcome`, `reason` and `message`; WOULD_COMMIT where `target_offset` may be
    committed.

    `rows` have the columns of COMMIT_WORK, and what the target group has (`current_*`):
    `current_target_offset` is null where it has committed nothing, `current_reason` is set where
    that could not be read. `floor` is the setting `translation.floor`.
    """
    if floor == "log_start":
        rows = _at_least_log_start(rows)
    # Below the log's start, consumers would be reset; past its end, the log is another one.
    may_go_back = (
        (_current == pl.col("rewind_from"))
        & (_current <= pl.col("target_end"))
        & (_target >= pl.col("target_start"))
    )
    not_backwards = _current.is_null() | (_current <= _target) | may_go_back
    source_went_back = (pl.col("source_offset") < pl.col("last_source")) & (
        _current == pl.col("last_target")
    )
    # With one flow, the target group only follows the source group.
    was_reset = pl.col("has_reverse") & (pl.col("source_offset") == source_at_reset())
    # A source offset that the reverse flow has committed is no sign of what the group has read: the
    # target group was reset since, or the source has lost records that the target still has. If
    # that flow only found the group in sync, the target group was reset unless it still has the
    # offset that it had then. This flow knows what the reverse flow has committed, too: that one
    # may have lost its state.
    is_reversed = (pl.col("source_offset") == pl.col("reverse_target")) & (
        pl.col("reverse_committed").fill_null(True) | (_current != pl.col("reverse_source"))
    )
    is_reversed |= (pl.col("source_offset") == pl.col("last_source")) & ~pl.col("last_committed")
    # An offset below the log's start is replaced nevertheless if the commit passes no record that
    # the target still has.
    target_went_back = (
        (was_reset | is_reversed)
        & (_current < _target)
        & (pl.col("equivalent_from") > pl.col("target_start"))
    )
    verdict = (
        pl.when(pl.col("reason").is_not_null())
        .then("reason")
        .when(_target.is_null())
        .then(pl.lit(FailureKind.INTERNAL))
        .when(pl.col("is_share_group") & (pl.col("current_reason") == _NO_SHARE_GROUPS))
        .then(pl.lit(Reason.UNSUPPORTED_GROUP))
        .when(pl.col("current_reason").is_not_null())
        .then("current_reason")
        .when(_current.is_between("equivalent_from", "equivalent_to"))
        .then(pl.lit(OutcomeKind.UNCHANGED))
        .when(target_went_back)
        .then(pl.lit(Reason.TARGET_REWOUND))
        .when(not_backwards & ~pl.col("target_active"))
        .then(pl.lit(OutcomeKind.WOULD_COMMIT))
        .when(not_backwards)
        .then(pl.lit(Reason.GROUP_ACTIVE))
        .when(_current > pl.col("target_end"))
        .then(pl.lit(Reason.TARGET_PAST_LOG_END))
        .when(source_went_back)
        .then(pl.lit(Reason.SOURCE_REWOUND))
        .otherwise(pl.lit(Reason.TARGET_AHEAD))
    )
    return with_outcome(rows, verdict)


def source_at_reset() -> pl.Expr:
    """The source group's offset when the target group was last seen to have gone back; null if it
    has not. Until the source group commits another offset, its offset may be older than the
    reset."""
    went_back = pl.col("source_offset").is_not_null() & (_current < pl.col("seen_target"))
    return pl.when(went_back).then("source_offset").otherwise("source_at_reset")


def _at_least_log_start(rows: pl.DataFrame) -> pl.DataFrame:
    """`translation.floor = log_start`: without a proven translation, a group that has no committed
    offset within the target's log gets the log's start. No record lies below it."""
    start, source = pl.col("target_start"), pl.col("source_offset")
    at_start = (
        pl.col("reason").is_in(_UNPROVEN)
        & start.is_not_null()
        & pl.col("current_reason").is_null()
        & (_current.is_null() | (_current < start))
    )
    read = pl.when(source > 0)
    translation = {
        "target_offset": start,
        "equivalent_from": start,
        "equivalent_to": start,
        "reread_bound": source,
        "precision": read.then(pl.lit(Precision.BOUNDED)).otherwise(pl.lit(Precision.EXACT)),
        "reason": pl.lit(None, pl.String),
        "message": pl.lit(None, pl.String),
    }
    return rows.with_columns_seq(
        pl.when(at_start).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in translation.items()
    )


GROUP_ACTIVE = (
    "group {} has active members on the target, which commit its offsets themselves; stop them to "
    "sync the group"
)


def _shorten(text: pl.Expr) -> pl.Expr:
    """As `printable.shorten`: a group's name may have 32,767 characters."""
    tail = (LONGEST_MESSAGE - 1) // 2
    ends = text.str.head(LONGEST_MESSAGE - 1 - tail), text.str.tail(tail)
    too_long = text.str.len_chars() > LONGEST_MESSAGE
    return pl.when(too_long).then(pl.format("{}…{}", *ends)).otherwise(text)


_partition = pl.format("{}-{}", "target_topic", "partition")
_MESSAGES = {
    Reason.GROUP_ACTIVE: _shorten(pl.format(GROUP_ACTIVE, "group")),
    Reason.UNSUPPORTED_GROUP: pl.format(
        "{} is a share group, which the target does not support: it needs brokers of Kafka 4.2 or "
        "later with the feature share.version=1",
        "group",
    ),
    Reason.TARGET_MISSING: pl.format(
        "{} does not exist on the target; check that the replicator mirrors it", _partition
    ),
    Reason.TARGET_PAST_LOG_END: pl.format(
        "the target group's committed offset {} is past the target's log end {}: {} was recreated "
        "or truncated, and consumers would be reset; {}, and the next cycle commits a valid one",
        _current,
        "target_end",
        _partition,
        pl.when("target_active")
        .then(pl.lit("stop its consumers on the target, delete that offset"))
        .otherwise(pl.lit("delete that offset on the target")),
    ),
    Reason.SOURCE_REWOUND: pl.format(
        "the source group went back from {} to {}; to move the target group back, too, run "
        "`tsoffset sync --allow-rewind`",
        "last_source",
        "source_offset",
    ),
    Reason.TARGET_AHEAD: pl.format(
        "the target group is already at {}; it is never moved backwards", _current
    ),
    Reason.TARGET_REWOUND: pl.format(
        "the target group was reset, or the source has lost records that the target group has yet "
        "to read, or the mirror was restarted; the target group is at {}; the source group's "
        "offset {} is from before, or the flow in the other direction has set it, so the target "
        "group is not moved forward; if it should be, {}",
        _current,
        "source_offset",
        pl.when("target_active")
        .then(pl.format("stop its consumers on the target, and then reset it to {}", _target))
        .otherwise(pl.format("reset it on the target to {}", _target)),
    ),
    FailureKind.INTERNAL: pl.lit(
        "the committed offset has neither a translation nor a reason; report this"
    ),
}


def with_outcome(rows: pl.DataFrame, verdict: pl.Expr) -> pl.DataFrame:
    """The rows with `outcome`, `reason` and `message`. `verdict` is an `OutcomeKind`, a `Reason` or
    a `FailureKind`. If it equals the row's `reason` or `current_reason`, the message of that one is
    kept."""
    rows = in_one_chunk(rows.with_columns(verdict=verdict))
    verdict = pl.col("verdict")
    message = (
        pl.when(verdict == pl.col("reason"))
        .then("message")
        .when(verdict == pl.col("current_reason"))
        .then("current_message")
    )
    occurring = set(rows["verdict"].unique())
    for reason, text in _MESSAGES.items():
        if reason in occurring:
            message = message.when(verdict == pl.lit(reason)).then(text)
    is_outcome = verdict.is_in(_OUTCOMES)
    return rows.with_columns_seq(
        outcome=pl.when(is_outcome)
        .then(verdict)
        .when(verdict.is_in(FAILURES))
        .then(pl.lit(OutcomeKind.FAILED))
        .otherwise(pl.lit(OutcomeKind.SKIPPED)),
        reason=pl.when(~is_outcome).then(verdict),
        message=message,
    ).drop("verdict")
