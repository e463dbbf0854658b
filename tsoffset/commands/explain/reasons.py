"""Why a translation is what it is: the rule's own basis and pairs, in a sentence (pure)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tsoffset.commands.explain.dialogue import Dialogue
from tsoffset.commands.explain.statements import Conclusion, EqualRecords, Role
from tsoffset.commands.explain.timestamps import in_utc
from tsoffset.model import (
    Basis,
    Failed,
    Outcome,
    Precision,
    Proof,
    Safety,
    Side,
    Skipped,
    Translated,
)

Pair = tuple[int, int]


def conclusion(
    seen: Dialogue, outcome: Outcome, answer: Translated | None
) -> tuple[Conclusion, tuple[EqualRecords, ...]]:
    """What the rule answered for the position, and the pairs that it rests on.

    Without a translation they are the nearest equal records on both sides of the commit, which
    prove nothing.
    """
    if isinstance(outcome, Failed):
        return Conclusion(**seen.about, reason=outcome.kind, message=outcome.message), ()
    proves = isinstance(outcome, Translated)
    pairs = _of_records(seen, outcome.pairs) if isinstance(outcome, Translated) else _nearest(seen)
    statements = tuple(_statement(seen, pair, proves=proves) for pair in pairs)
    if answer is None:
        assert isinstance(outcome, Skipped)
        return Conclusion(**seen.about, reason=outcome.reason, message=outcome.message), statements
    assert answer.basis is not None
    by_setting = _BY_SETTING.get(answer.basis)
    why = by_setting or _BY_PAIRS[answer.basis](seen, answer, _of_records(seen, answer.pairs))
    safety = answer.safety if answer.basis in _PROVEN else None
    if safety is not None:
        why = f"{why} {_safe(seen, answer, safety)}"
    at, copy = (None, None) if safety is None else _rests_on(safety)
    return (
        Conclusion(
            **seen.about,
            target_offset=answer.target_offset,
            precision=answer.precision,
            reread_bound=answer.reread_bound,
            equivalent_from=answer.equivalent_from,
            equivalent_to=answer.equivalent_to,
            basis=answer.basis,
            proof=None if safety is None else safety.proof,
            proof_source_offset=at,
            proof_target_offset=copy,
            why=f"{why} {outcome.message}" if isinstance(outcome, Skipped) else why,
        ),
        statements,
    )


# --- sentences for each basis -------------------------------------------------------------


def _next_record(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    at, copy = pairs[0]
    why = f"The next record to read, source {at:,}, has its {_copy(seen)} at {copy:,}."
    if answer.precision is Precision.EXACT:
        return why
    return (
        f"{why} {_at_most(answer)} that the group has read may be re-read: an equal record was "
        "written earlier, or the mirror restarted before its first record."
    )


def _between(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    after, its_copy = pairs[-1]
    if after < seen.offset:
        return _behind(seen, answer, pairs[-1:])
    yet_to_read = f"source {after:,}, which the group has yet to read,"
    if len(pairs) == 1:
        return (
            "From the start of both logs on, their records are equal one by one up to "
            f"{yet_to_read} and its {_copy(seen)} at {its_copy:,}."
        )
    before, copy = pairs[0]
    return (
        f"Source {before:,}, before the committed offset, has its {_copy(seen)} at {copy:,}, and "
        f"{yet_to_read} at {its_copy:,}. Of the records between them, those that the group has "
        f"read lie before {answer.target_offset:,}."
    )


def _behind(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    at, copy = pairs[0]
    why = f"Source {at:,}, before the committed offset, has its {_copy(seen)} at {copy:,}."
    if answer.precision is Precision.EXACT:
        return f"{why} No record that the group has read was copied later."
    return f"{why} {_at_most(answer)} that the group has read may have been copied later."


def _all_read(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    why = (
        "No record lies between the committed offset and the source's log end. So every copy lies "
        "before the target's log end, which was read first."
    )
    if answer.precision is Precision.FRONTIER:
        return f"{why} The mirror is behind.{_still_to_copy(answer)}"
    if not pairs:
        return f"{why} No record lies before the committed offset either."
    at, copy = pairs[0]
    why += (
        f" The last record before the committed offset, source {at:,}, has its {_copy(seen)} at"
        f" {copy:,}."
    )
    if answer.precision is Precision.BOUNDED:
        why += f" {_at_most(answer)} that the group has read may follow it."
    return why


def _mirror_end(_: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    rest = f"The mirror appends at the log's end.{_still_to_copy(answer)}"
    if not pairs:
        return f"No record from the committed offset on is on the target yet. {rest}"
    at, copy = pairs[0]
    return (
        f"Source {at:,}, before the committed offset, has its copy at {copy:,}, and after that "
        f"the target has no record that the group has yet to read. {rest}"
    )


def _log_start(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    verb = "may be" if answer.reread_bound else "is"
    rest = f"{_at_most(answer)} that the group has read {verb} on the target."
    start = "Nothing lies before the target's log start, so nothing is skipped."
    if not pairs:
        return f"{start} {rest}"
    first, copy = pairs[0]
    if answer.safety is not None:
        return (
            f"{start} Source {first:,}, which the group has yet to read, has its copy at {copy:,}. "
            f"{rest}"
        )
    wanted = seen.next_record
    if wanted is not None and wanted.offset < first:
        rest += f" The target does not hold source {wanted.offset:,} to {first - 1:,}."
    return (
        f"The source's records that the target still holds begin at {copy:,}, with a copy of "
        f"source {first:,}, which the group has yet to read. {rest}"
    )


def _same_offset(_: Dialogue, __: Translated, pairs: Sequence[Pair]) -> str:
    why = "The mirror is expected to keep offsets."
    if not pairs:
        return f"{why} One of the logs holds no record, so none differs."
    beside = " and ".join(f"{at:,}" for at, _ in pairs)
    return (
        f"{why} The records of both logs nearest to the committed offset, at {beside}, are "
        "equal, and so are the last ones that both have."
    )


def _copy(seen: Dialogue) -> str:
    """What the target's record is to the source's."""
    return "original" if seen.failback else "copy"


def _at_most(answer: Translated) -> str:
    bound = answer.reread_bound
    return f"At most {_counted(bound)}" if bound else "No record"


def _still_to_copy(answer: Translated) -> str:
    bound = answer.reread_bound
    if not bound:
        return ""
    return f" It has yet to copy at most {_counted(bound)} that the group has read."


def _counted(records: int) -> str:
    return f"{records:,} {'record' if records == 1 else 'records'}"


_BY_SETTING = {
    Basis.FLOOR: (
        "With `translation.floor = log_start`, a group without a committed offset on the target "
        "gets the target's log start, which skips nothing. The offset itself was not translated:"
    ),
    Basis.TIMESTAMP: (
        "`translation.proof = timestamps` takes the first target record at or after the "
        "timestamp of the next record to read. No content was compared, so it may skip records."
    ),
}
_BY_PAIRS: Mapping[Basis, Callable[[Dialogue, Translated, Sequence[Pair]], str]] = {
    Basis.NEXT_RECORD: _next_record,
    Basis.BETWEEN: _between,
    Basis.BEHIND: _behind,
    Basis.ALL_READ: _all_read,
    Basis.MIRROR_END: _mirror_end,
    Basis.LOG_START: _log_start,
    Basis.SAME_OFFSET: _same_offset,
}


# --- a sentence for each proof ------------------------------------------------------------

# The answers that need a proof. The others skip nothing by what they are.
_PROVEN = {Basis.NEXT_RECORD, Basis.BETWEEN, Basis.BEHIND, Basis.MIRROR_END}


def _safe(seen: Dialogue, answer: Translated, safety: Safety) -> str:
    """What shows that the answer skips nothing."""
    match safety.proof:
        case Proof.TIME:
            return f"Safe by time: {_by_time(seen, safety)}."
        case Proof.FIRST_COPY:
            return f"Safe by first copy: {_by_first_copy(seen, answer, safety)}."
        case Proof.FRONTIER:
            return f"Safe by the frontier: {_by_frontier(seen, answer, safety)}."


def _rests_on(safety: Safety) -> tuple[int | None, int | None]:
    return (safety.from_offset, safety.limit) if safety.pair is None else safety.pair


def _by_time(seen: Dialogue, safety: Safety) -> str:
    start, limit, number = safety.from_offset, safety.limit, safety.records
    if not number:
        return f"the source has no record from offset {start:,} on"
    if safety.oldest_ms is None:
        return (
            f"the {_counted(number)} from offset {start:,} on were read, not all of them have a "
            f"timestamp, and the target was read to {limit:,} and has none of them before that"
        )
    oldest = "the only record" if number == 1 else f"the oldest of the {_counted(number)}"
    them = "it" if number == 1 else "them"
    why = f"{oldest} from offset {start:,} on is from {in_utc(safety.oldest_ms)}, and everything"
    older_before = _lookup(seen, safety.oldest_ms)
    if older_before is None:
        return f"{why} on the target before {limit:,} is older, or was read and is none of {them}"
    if limit is None or older_before >= limit:
        return f"{why} on the target before {limit:,} is older"
    return (
        f"{why} on the target before {older_before:,} is older; the records from there to "
        f"{limit:,} were read and are none of {them}"
    )


def _lookup(seen: Dialogue, timestamp_ms: int) -> int | None:
    """What the target answered to a lookup of a timestamp; None where it was not asked here, or
    has no record as young."""
    for asked, told in seen.steps:
        if asked.side is Side.TARGET and asked.timestamp_ms == timestamp_ms:
            return told.record_offset
    return None


def _by_first_copy(seen: Dialogue, answer: Translated, safety: Safety) -> str:
    assert safety.pair is not None
    at, copy = safety.pair
    if seen.failback:
        return f"source {at:,} has its original at {copy:,}{_read_on_the_way(answer)}"
    return (
        f"the replicator was at source {at:,} or below when it wrote target {copy:,}, and the "
        "target topic is not compacted, so from there on the lowest copy of a record comes before "
        "any later record"
    )


def _by_frontier(seen: Dialogue, answer: Translated, safety: Safety) -> str:
    assert safety.pair is not None
    at, copy = safety.pair
    if seen.failback:
        return f"source {at:,} has its original at {copy:,}{_read_on_the_way(answer)}"
    why = f"no record after source {at:,} lies before its copy at {copy:,}"
    if answer.target_offset > copy or safety.pair in answer.pairs:
        return why
    return (
        f"{why}, and on the way there from {answer.target_offset:,} the replicator passed every "
        "earlier record from the commit on"
    )


def _read_on_the_way(answer: Translated) -> str:
    """In failback: what the target holds was copied to the replica, where the group has read it."""
    return (
        f"; from there to {answer.target_offset:,} the replicator copied every record of the "
        "original, and the group has read these copies"
    )


# --- pairs --------------------------------------------------------------------------------


def _of_records(seen: Dialogue, pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs of records: the logs' beginnings, from which the rule may count, are none."""
    source, target = seen.source, seen.target
    return [pair for pair in pairs if pair[0] >= source.start and pair[1] >= target.start]


def _nearest(seen: Dialogue) -> Iterator[Pair]:
    """The nearest source records with an equal, before the committed offset and from it on."""
    source = seen.source
    if source.range is None:
        return
    sides = (
        reversed(source.known(source.start, seen.offset)),
        source.known(seen.offset, source.end),
    )
    for records in sides:
        for record in records:
            if copies := seen.target.equals(source.identity(record)):
                yield record.offset, copies[0]
                break


def _statement(seen: Dialogue, pair: Pair, *, proves: bool) -> EqualRecords:
    at, copy = pair
    following = seen.next_record
    original = seen.source.at(at)
    if at < seen.offset:
        role = Role.BEFORE_COMMIT
    elif at == (seen.offset if following is None else following.offset):
        role = Role.NEXT_RECORD
    else:
        role = Role.AFTER_COMMIT
    return EqualRecords(
        **seen.about,
        source_offset=at,
        source_step=seen.step_reading(Side.SOURCE, at),
        target_offset=copy,
        target_step=seen.step_reading(Side.TARGET, copy),
        timestamp_ms=None if original is None else original.timestamp_ms,
        role=role,
        proves=proves,
    )
