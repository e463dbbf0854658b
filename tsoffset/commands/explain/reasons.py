"""Explains a translation in sentences, from the basis, proof and record pairs that the rule
returned (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tsoffset.commands.explain.trace import PairStatement, Trace, TranslationStatement
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
from tsoffset.terminal.output import in_utc

Pair = tuple[int, int]


def explain_outcome(
    trace: Trace, outcome: Outcome, answer: Translated | None
) -> tuple[TranslationStatement, tuple[PairStatement, ...]]:
    """The translation as a statement, and the record pairs that it is based on.

    Without a translation these are the nearest equal records before and after the committed offset,
    which prove nothing.
    """
    match outcome:
        case Failed(kind=reason):
            pairs: Iterable[Pair] = ()
        case Skipped(reason=reason):
            pairs = _nearest(trace)
        case Translated():
            pairs = _of_records(trace, outcome.pairs)
    proves = isinstance(outcome, Translated)
    statements = tuple(_statement(trace, pair, proves=proves) for pair in pairs)
    if answer is None:
        assert not isinstance(outcome, Translated)
        said = TranslationStatement(**trace.common, reason=reason, message=outcome.message)
        return said, statements
    why = _reason_of(trace, answer, _of_records(trace, answer.pairs))
    proof: dict[str, Any] = {}
    if answer.safety is not None and answer.basis in _PROVEN:
        safety = answer.safety
        why = f"{why} {_proof(trace, answer, safety)}"
        at, copy = safety.pair or (safety.from_offset, safety.limit)
        proof = {"proof_source_offset": at, "proof_target_offset": copy, "proof": safety.proof}
    said = TranslationStatement(
        **trace.common,
        **proof,
        target_offset=answer.target_offset,
        precision=answer.precision,
        reread_bound=answer.reread_bound,
        equivalent_from=answer.equivalent_from,
        equivalent_to=answer.equivalent_to,
        basis=answer.basis,
        why=f"{why} {outcome.message}" if isinstance(outcome, Skipped) else why,
    )
    return said, statements


# --- a sentence for each basis --------------------------------------------------------------


def _reason_of(trace: Trace, answer: Translated, pairs: Sequence[Pair]) -> str:
    """`pairs` are the record pairs that the basis rests on."""
    basis, exact = answer.basis, answer.precision is Precision.EXACT
    if basis is Basis.BETWEEN and pairs[-1][0] < trace.offset:
        basis, pairs = Basis.BEHIND, pairs[-1:]
    bound = answer.reread_bound
    at_most = f"At most {_records(bound)}" if bound else "No record"
    to_copy = ""
    if bound:
        to_copy = f" It has yet to copy at most {_records(bound)} that the group has read."
    name = "original" if trace.failback else "copy"
    match basis:
        case Basis.NEXT_RECORD:
            at, copy = pairs[0]
            why = f"The next record to read, source {at:,}, has its {name} at {copy:,}."
            more = (
                f" {at_most} that the group has read may be re-read: an equal record was written"
                " earlier, or the mirror restarted before its first record."
            )
            return why if exact else why + more
        case Basis.BETWEEN:
            after, its_copy = pairs[-1]
            yet_to_read = f"source {after:,}, which the group has yet to read,"
            if len(pairs) == 1:
                return (
                    "From the start of both logs on, their records are equal one by one up to"
                    f" {yet_to_read} and its {name} at {its_copy:,}."
                )
            at, copy = pairs[0]
            return (
                f"Source {at:,}, before the committed offset, has its {name} at {copy:,}, and"
                f" {yet_to_read} at {its_copy:,}. The records between them that the group has read"
                f" lie before {answer.target_offset:,}."
            )
        case Basis.BEHIND:
            at, copy = pairs[0]
            why = f"Source {at:,}, before the committed offset, has its {name} at {copy:,}."
            if exact:
                return f"{why} No record that the group has read was first copied later."
            return f"{why} {at_most} that the group has read may have been first copied later."
        case Basis.ALL_READ:
            why = (
                "No record lies between the committed offset and the source's log end. So every"
                " copy lies before the target's log end, which was read first."
            )
            if answer.precision is Precision.FRONTIER:
                return f"{why} The mirror is behind.{to_copy}"
            if not pairs:
                return f"{why} No record lies before the committed offset either."
            at, copy = pairs[0]
            why += (
                f" The last record before the committed offset, source {at:,}, has its {name} at"
                f" {copy:,}."
            )
            bounded = answer.precision is Precision.BOUNDED
            return f"{why} {at_most} that the group has read may follow it." if bounded else why
        case Basis.MIRROR_END:
            rest = f"The mirror appends at the log's end.{to_copy}"
            if not pairs:
                return f"No record from the committed offset on is on the target yet. {rest}"
            at, copy = pairs[0]
            return (
                f"Source {at:,}, before the committed offset, has its copy at {copy:,}, and after"
                f" that the target has no record that the group has yet to read. {rest}"
            )
        case Basis.LOG_START:
            verb = "may be" if bound else "is"
            rest = f"{at_most} that the group has read {verb} on the target."
            start = "Nothing lies before the target's log start, so nothing is skipped."
            if not pairs:
                return f"{start} {rest}"
            at, copy = pairs[0]
            if answer.safety is not None:
                return (
                    f"{start} Source {at:,}, which the group has yet to read, has its copy at"
                    f" {copy:,}. {rest}"
                )
            wanted = trace.next_record
            if wanted is not None and wanted.offset < at:
                lacked = f"source {wanted.offset:,} to {at - 1:,}"
                rest += f" If the target holds copies of {lacked}, they come after that one."
            return (
                f"The source's records that the target still holds begin at {copy:,}, with a copy"
                f" of source {at:,}, which the group has yet to read. {rest}"
            )
        case Basis.SAME_OFFSET:
            why = "The mirror is expected to keep offsets."
            if not pairs:
                return f"{why} One of the logs holds no record, so none differs."
            nearest = " and ".join(f"{at:,}" for at, _ in pairs)
            return (
                f"{why} The records of both logs nearest to the committed offset, at {nearest}, are"
                " equal, and so are the last ones that both have."
            )
        case Basis.FLOOR:
            return (
                "With `translation.floor = log_start`, a group without a committed offset on the"
                " target gets the target's log start, which skips nothing. The offset itself was"
                " not translated:"
            )
        case Basis.TIMESTAMP:
            return (
                "`translation.proof = timestamps` takes the first target record at or after the"
                " timestamp of the next record to read. No content was compared, so it may skip"
                " records."
            )
        case None:
            raise AssertionError("a translation without a basis")


def _records(number: int) -> str:
    return f"{number:,} {'record' if number == 1 else 'records'}"


# --- a sentence for each proof ------------------------------------------------------------

# The bases that need a proof. The others cannot skip records.
_PROVEN = {Basis.NEXT_RECORD, Basis.BETWEEN, Basis.BEHIND, Basis.MIRROR_END}


def _proof(trace: Trace, answer: Translated, safety: Safety) -> str:
    if safety.proof is Proof.TIME:
        return f"Safe by time: {_by_time(trace, safety)}."
    assert safety.pair is not None
    at, copy = safety.pair
    name = "first copy" if safety.proof is Proof.FIRST_COPY else "the frontier"
    if trace.failback:
        # The group has read copies of what the target holds.
        why = (
            f"source {at:,} has its original at {copy:,}; from there to {answer.target_offset:,}"
            " the replicator passed every record of the original, and the group has read the"
            " copies"
        )
    elif safety.proof is Proof.FIRST_COPY:
        why = (
            f"the replicator was at source {at:,} or below when it wrote target {copy:,}, and the "
            "target topic is not compacted, so from there on the lowest copy of a record comes "
            "before any later record"
        )
    else:
        why = f"no record after source {at:,} lies before its copy at {copy:,}"
        if answer.target_offset <= copy and safety.pair not in answer.pairs:
            why += (
                f", and on the way there from {answer.target_offset:,} the replicator passed every "
                "earlier record from the committed offset on"
            )
    return f"Safe by {name}: {why}."


def _by_time(trace: Trace, safety: Safety) -> str:
    start, limit, number = safety.from_offset, safety.limit, safety.records
    if not number:
        return f"the source has no record from offset {start:,} on"
    if safety.oldest_ms is None:
        return (
            f"the {_records(number)} from offset {start:,} on were read, not all of them have a "
            f"timestamp, and the target was read to {limit:,} and has none of them before that"
        )
    oldest = "the only record" if number == 1 else f"the oldest of the {_records(number)}"
    them = "it" if number == 1 else "them"
    moment = in_utc(safety.oldest_ms, "milliseconds")
    why = f"{oldest} from offset {start:,} on is from {moment}, and everything"
    older_before = next(
        (
            answer.record_offset
            for request, answer in trace.steps
            if request.side is Side.TARGET and request.timestamp_ms == safety.oldest_ms
        ),
        None,
    )
    if older_before is None:
        return f"{why} on the target before {limit:,} is older, or was read and is none of {them}"
    if limit is None or older_before >= limit:
        return f"{why} on the target before {limit:,} is older"
    return (
        f"{why} on the target before {older_before:,} is older; the records from there to "
        f"{limit:,} were read and are none of {them}"
    )


# --- pairs --------------------------------------------------------------------------------


def _of_records(trace: Trace, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that are records. The rule may also use the offsets before both log starts as a
    pair."""
    source, target = trace.source, trace.target
    return [pair for pair in pairs if pair[0] >= source.start and pair[1] >= target.start]


def _nearest(trace: Trace) -> Iterator[Pair]:
    """The nearest source records with an equal target record, on both sides of the commit."""
    source = trace.source
    if source.range is None:
        return
    before = reversed(source.known_records(source.start, trace.offset))
    for records in (before, source.known_records(trace.offset, source.end)):
        for record in records:
            if copies := trace.target.equals(source.identity(record)):
                yield record.offset, copies[0]
                break


def _statement(trace: Trace, pair: Pair, *, proves: bool) -> PairStatement:
    at, copy = pair
    following = trace.next_record
    original = trace.source.at(at)
    is_next = at == (trace.offset if following is None else following.offset)
    return PairStatement(
        **trace.common,
        source_offset=at,
        source_step=trace.step_that_read(Side.SOURCE, at),
        target_offset=copy,
        target_step=trace.step_that_read(Side.TARGET, copy),
        timestamp_ms=None if original is None else original.timestamp_ms,
        role=(
            "before_commit" if at < trace.offset else "next_record" if is_next else "after_commit"
        ),
        proves=proves,
    )
