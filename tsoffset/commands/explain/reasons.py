"""Why a translation is what it is, told by the records that were seen on the way (pure).

The rule hands out its answer, not its proof. What is said here are facts of the records
seen (this one equals that one) and what the answer's precision and bound assert of it; where
no record seen shows the reason, it says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tsoffset.commands.explain.dialogue import Dialogue
from tsoffset.commands.explain.statements import Basis, Conclusion, EqualRecords, Role
from tsoffset.model import Failed, Precision, Row, Side, Skipped, Translated
from tsoffset.output import counted
from tsoffset.plan import TranslatedPosition
from tsoffset.records import Record


@dataclass(frozen=True, slots=True)
class _Equal:
    """A source record with a target record that equals it."""

    source: Record
    target_offset: int


@dataclass(frozen=True, slots=True)
class _Why:
    basis: Basis
    sentence: str
    shown_by: tuple[_Equal, ...] = ()


def conclusion(
    seen: Dialogue, position: TranslatedPosition, row: Row
) -> tuple[Conclusion, tuple[EqualRecords, ...]]:
    """What the rule answered for the position, and the pairs that show it.

    Without a translation the pairs are the nearest equal records on both sides of the
    commit, which prove nothing.
    """
    outcome = position.translation.outcome
    if isinstance(outcome, Failed):
        return Conclusion(**seen.about, reason=outcome.kind, message=outcome.message), ()
    if isinstance(outcome, Skipped):
        nearest = tuple(_statement(seen, equal, proves=False) for equal in _nearest(seen))
        if row.target_offset is not None:
            return _floor(seen, outcome, row), nearest
        return Conclusion(**seen.about, reason=outcome.reason, message=outcome.message), nearest
    why = _why(seen, outcome)
    return (
        Conclusion(
            **seen.about,
            target_offset=outcome.target_offset,
            precision=outcome.precision,
            reread_bound=outcome.reread_bound,
            same_from=outcome.same_from,
            same_to=outcome.same_to,
            basis=why.basis,
            why=why.sentence,
        ),
        tuple(_statement(seen, equal, proves=True) for equal in why.shown_by),
    )


def _floor(seen: Dialogue, outcome: Skipped, row: Row) -> Conclusion:
    return Conclusion(
        **seen.about,
        target_offset=row.target_offset,
        precision=row.precision,
        reread_bound=row.reread_bound,
        same_from=row.target_offset,
        same_to=row.target_offset,
        basis=Basis.FLOOR,
        why="translation.floor = log_start takes the target's log start, below which there is "
        "nothing to skip, for a group without a commit there; of the position itself: "
        f"{outcome.message}",
    )


# --- which records show it ----------------------------------------------------------------


def _why(seen: Dialogue, answer: Translated) -> _Why:
    at = answer.target_offset
    if answer.precision is Precision.UNPROVEN:
        return _by_time(seen)
    end = seen.target.end
    if at == end and seen.all_read and not seen.reverse:
        return _all_read(seen, answer)
    before = _copy_before(seen, at)
    if at == end and answer.precision is Precision.FRONTIER and before is not None:
        return _mirror_end(before, answer)
    for why in _by_records(seen, answer, before):
        if why is not None:
            return why
    return _Why(
        Basis.NOT_SHOWN,
        "none of the records that this position asked for shows it: it rests on what was known "
        "of the partition before",
    )


def _by_records(seen: Dialogue, answer: Translated, before: _Equal | None) -> Iterator[_Why | None]:
    """What may show an answer inside the log, the likeliest first: in the rule's own order, but
    for a bound, which tells whether it is that of the record before."""
    at, exact = answer.target_offset, answer.precision is Precision.EXACT
    following = seen.target.next_known(at)
    # What is left of a trimmed log comes before any pair.
    if seen.target.start > 0 and not (exact and _original_from(seen, following) is None):
        yield _log_start(seen, following, answer)
    if (
        before is not None
        and not exact
        and at == before.target_offset + 1
        and answer.reread_bound == _most_between(seen, before.source.offset + 1)
    ):
        yield _behind(seen, before, answer)
    yield _next_record(seen, following, answer)
    if before is not None:
        yield _behind_exactly(seen, before, following) if exact else _behind(seen, before, answer)
    yield _log_start(seen, following, answer)


def _by_time(seen: Dialogue) -> _Why:
    record = seen.next_record
    which = "the next record to read" if record is None else f"source {record.offset}"
    return _Why(
        Basis.TIMESTAMP,
        f"translation.proof = timestamps takes the first target record at or after the time of "
        f"{which}; no content was compared, so it may skip records",
    )


def _all_read(seen: Dialogue, answer: Translated) -> _Why:
    lead = (
        "no record lies from the commit to the source's end, so all there is to copy lies before "
        "the target's log end, which was read first; "
    )
    last = seen.source.previous_known(seen.offset)
    copies = [] if last is None else seen.target.equals(seen.source.identity(last))
    if last is None or not copies:
        if answer.precision is Precision.EXACT:
            return _Why(Basis.ALL_READ, lead + "and none lies before the commit")
        tail = "the last record before the commit was not found on the target"
        reached = _copy_before(seen, seen.target.end)
        if reached is None:
            return _Why(Basis.ALL_READ, lead + tail)
        tail += f", where the copy of source {reached.source.offset} comes last"
        return _Why(Basis.ALL_READ, lead + tail, (reached,))
    ending = seen.target.previous_known(seen.target.end)
    copy = copies[-1] if ending is not None and ending.offset in copies else copies[0]
    tail = f"the last record before the commit, source {last.offset}, has "
    if answer.precision is Precision.FRONTIER:
        tail += f"an equal at {copy} that is not proven to be its copy"
    elif answer.precision is Precision.BOUNDED:
        tail += f"an equal at {copy}, which may be the copy of an earlier record that equals it"
    else:
        tail += f"its copy at {copy}"
    return _Why(Basis.ALL_READ, lead + tail, (_Equal(last, copy),))


def _mirror_end(before: _Equal, answer: Translated) -> _Why:
    offset = before.source.offset
    more = (
        "no record lies between it and the commit"
        if answer.reread_bound == 0
        else f"what lies between it and the commit, {_at_most(answer)}, is still to be copied"
    )
    return _Why(
        Basis.MIRROR_END,
        f"source {offset}, before the commit, has its copy at {before.target_offset}, the last "
        f"record on the target: the mirror has come so far; {more}",
        (before,),
    )


def _next_record(seen: Dialogue, following: Record | None, answer: Translated) -> _Why | None:
    wanted = seen.next_record
    if wanted is None or following is None or not _equal(seen, wanted, following):
        return None
    if answer.precision is Precision.EXACT:
        sentence = (
            f"the next record to read, source {wanted.offset}, has its first copy at "
            f"{following.offset}{_first_of_its_time(seen, wanted, following)}: all that follows it "
            "on the source lies there or after"
        )
    else:
        sentence = (
            f"the next record to read, source {wanted.offset}, has an equal at "
            f"{following.offset}, which may be the copy of an earlier record that equals it"
        )
    return _Why(Basis.NEXT_RECORD, sentence, (_Equal(wanted, following.offset),))


def _first_of_its_time(seen: Dialogue, original: Record, copy: Record) -> str:
    step = seen.step_answering(copy.offset, original.timestamp_ms)
    return "" if step is None else f" (none there has its time before, step {step})"


def _behind_exactly(seen: Dialogue, before: _Equal, following: Record | None) -> _Why:
    lead = f"source {before.source.offset}, before the commit, has its copy at "
    lead += f"{before.target_offset}"
    after = _original_from(seen, following)
    if after is None:
        return _Why(
            Basis.BEHIND,
            f"{lead}, and all records before the commit have their first copies no further",
            (before,),
        )
    return _Why(
        Basis.BETWEEN,
        f"{lead}, and source {after.source.offset}, which the group has yet to read, at "
        f"{after.target_offset}: what it has read was copied before that, what follows from there",
        (before, after),
    )


def _behind(seen: Dialogue, before: _Equal, answer: Translated) -> _Why:
    offset = before.source.offset
    if _most_between(seen, offset + 1):
        rest = f"where the records from {offset + 1} up to the commit lie is not known"
    else:
        rest = "it may be the copy of an earlier record that equals it"
    return _Why(
        Basis.BEHIND,
        f"source {offset}, before the commit, has its copy at {before.target_offset}, and what "
        f"follows it on the source lies behind; {rest}",
        (before,),
    )


def _log_start(seen: Dialogue, following: Record | None, answer: Translated) -> _Why | None:
    if answer.target_offset != seen.target.start:
        return None
    first = _original_from(seen, following)
    rest = (
        "nothing of what it has read is there"
        if answer.precision is Precision.EXACT
        else "some of what is left may be copies of records before the commit, " + _at_most(answer)
    )
    if first is None:
        return _Why(
            Basis.LOG_START,
            f"nothing lies before the target's log start, so nothing is skipped from there; {rest}",
        )
    wanted = seen.next_record
    if wanted is not None and wanted.offset < first.source.offset:
        last = first.source.offset - 1
        rest += f"; the target does not hold source {wanted.offset} to {last}"
    return _Why(
        Basis.LOG_START,
        f"what the target has left begins at {first.target_offset} with an equal of source "
        f"{first.source.offset}, which the group has yet to read; {rest}",
        (first,),
    )


# --- equal records ------------------------------------------------------------------------


def _copy_before(seen: Dialogue, target_offset: int) -> _Equal | None:
    """The last target record below `target_offset`, where it equals a source record before the
    commit: with the highest such one."""
    copy = seen.target.previous_known(target_offset)
    if copy is None:
        return None
    below = [at for at in seen.source.equals(seen.target.identity(copy)) if at < seen.offset]
    return _pair(seen, below[-1], copy.offset) if below else None


def _original_from(seen: Dialogue, copy: Record | None) -> _Equal | None:
    """A target record that equals only source records from the commit on: with the lowest."""
    equals = [] if copy is None else seen.source.equals(seen.target.identity(copy))
    if copy is None or not equals or equals[0] < seen.offset:
        return None
    return _pair(seen, equals[0], copy.offset)


def _nearest(seen: Dialogue) -> Iterator[_Equal]:
    """The nearest source records before the commit, and from it on, that have an equal."""
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
                yield _Equal(record, copies[0])
                break


def _pair(seen: Dialogue, source_offset: int, target_offset: int) -> _Equal:
    record = seen.source.at(source_offset)
    assert record is not None
    return _Equal(record, target_offset)


def _equal(seen: Dialogue, one: Record, other: Record) -> bool:
    return seen.source.identity(one) == seen.target.identity(other)


def _statement(seen: Dialogue, equal: _Equal, *, proves: bool) -> EqualRecords:
    offset = equal.source.offset
    following = seen.next_record
    if offset < seen.offset:
        role = Role.BEFORE_COMMIT
    elif following is not None and offset == following.offset:
        role = Role.NEXT_RECORD
    else:
        role = Role.AFTER_COMMIT
    return EqualRecords(
        **seen.about,
        source_offset=offset,
        source_step=seen.step_reading(Side.SOURCE, offset),
        target_offset=equal.target_offset,
        target_step=seen.step_reading(Side.TARGET, equal.target_offset),
        timestamp_ms=equal.source.timestamp_ms,
        role=role,
        proves=proves,
    )


def _most_between(seen: Dialogue, start: int) -> int:
    """At most so many data records lie from `start` to the commit on the source."""
    if seen.source.covered_to(start) >= seen.offset:
        return seen.source.count_known(start, seen.offset)
    return max(0, seen.offset - start)


def _at_most(answer: Translated) -> str:
    return f"at most {counted(answer.reread_bound or 0, 'record')}"
