"""Why a translation is what it is: the rule's own basis and pairs, in a sentence (pure)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tsoffset.commands.explain.dialogue import Dialogue
from tsoffset.commands.explain.statements import Conclusion, EqualRecords, Role
from tsoffset.model import Basis, Failed, Precision, Row, Side, Skipped, Translated
from tsoffset.rule.decide import TranslatedPosition, answer_of
from tsoffset.terminal.output import counted

Pair = tuple[int, int]


def conclusion(
    seen: Dialogue, position: TranslatedPosition, row: Row
) -> tuple[Conclusion, tuple[EqualRecords, ...]]:
    """What the rule answered for the position, and the pairs that it rests on.

    Without a translation they are the nearest equal records on both sides of the commit, which
    prove nothing.
    """
    outcome = position.translation.outcome
    if isinstance(outcome, Failed):
        return Conclusion(**seen.about, reason=outcome.kind, message=outcome.message), ()
    proves = isinstance(outcome, Translated)
    pairs = _of_records(seen, outcome.pairs) if isinstance(outcome, Translated) else _nearest(seen)
    statements = tuple(_statement(seen, pair, proves=proves) for pair in pairs)
    answer = answer_of(row, position)
    if answer is None:
        assert isinstance(outcome, Skipped)
        return Conclusion(**seen.about, reason=outcome.reason, message=outcome.message), statements
    assert answer.basis is not None
    why = _BY_SETTING.get(answer.basis) or _BY_PAIRS[answer.basis](
        seen, answer, _of_records(seen, answer.pairs)
    )
    return (
        Conclusion(
            **seen.about,
            target_offset=answer.target_offset,
            precision=answer.precision,
            reread_bound=answer.reread_bound,
            equivalent_from=answer.equivalent_from,
            equivalent_to=answer.equivalent_to,
            basis=answer.basis,
            why=why + outcome.message if isinstance(outcome, Skipped) else why,
        ),
        statements,
    )


# --- a sentence for each basis ------------------------------------------------------------


def _passed(seen: Dialogue, answer: Translated, pair: Pair) -> str:
    """Why all that follows a pair's source record lies behind its copy."""
    at, copy = pair
    if seen.failback:
        return "; the target is the original, which has each record once, in order"
    if answer.frontier is None:
        return ""
    highest, last = answer.frontier
    if at == highest:
        return ", the highest that is there beyond doubt: all that follows it lies behind its copy"
    known = f"source {highest}, the highest that is there beyond doubt"
    if copy <= last:
        return (
            f", and {known}, its last copy at {last}: on the way the replicator passed all that "
            f"follows source {at}"
        )
    return f"; what lies before it, back to the last copy of {known}, is older than the commit"


def _next_record(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    at, copy = pairs[0]
    why = f"the next record to read, source {at}, has its copy at {copy}"
    why += _passed(seen, answer, pairs[0])
    if answer.precision is Precision.EXACT:
        return why
    return (
        f"{why}; {_at_most(answer)} that the group has read may lie there or behind: an equal one "
        "was written before it, or the mirror was set back to before where it began"
    )


def _between(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    after, its_copy = pairs[-1]
    if after < seen.offset:
        return _behind(seen, answer, pairs[-1:])
    yet_to_read = f"source {after}, which the group has yet to read, at {its_copy}"
    if len(pairs) == 1:
        return (
            "counted from where both logs begin, their records are equal one by one up to "
            f"{yet_to_read}"
        )
    before, copy = pairs[0]
    return (
        f"source {before}, before the commit, has its copy at {copy}, and {yet_to_read}; of what "
        f"lies between, all that it has read lies before {answer.target_offset}"
    )


def _behind(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    later = "was" if answer.precision is Precision.EXACT else "may have been"
    at, copy = pairs[0]
    return (
        f"source {at}, before the commit, has its copy at {copy}"
        f"{_passed(seen, answer, pairs[0])}; of what the group has read {_at_most(answer)} {later} "
        "copied later"
    )


def _all_read(_: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    why = (
        "no record lies from the commit to the source's end, so all there is to copy lies before "
        "the target's log end, which was read first; "
    )
    if answer.precision is Precision.FRONTIER:
        why += "the last record before the commit is not on the target beyond doubt"
        tail = "; the highest that is, is source {}, its last copy at {}"
    else:
        tail = "the last record before the commit, source {}, has its copy at {}"
        if answer.precision is Precision.BOUNDED:
            tail += f", and {_at_most(answer)} that the group has read may come behind it"
        elif not pairs:
            why += "none lies before the commit either"
    return why + tail.format(*pairs[0]) if pairs else why


def _mirror_end(_: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    rest = (
        "nothing from the commit on is there yet, and what comes is written behind the log's end; "
        f"still to be copied of what the group has read: {_at_most(answer)}"
    )
    if not pairs:
        return rest
    at, copy = pairs[0]
    if pairs[0] == answer.frontier:
        lead = f"source {at}, before the commit, is the highest on the target, its last copy at"
        return f"{lead} {copy}: {rest}"
    return f"the target ends with a copy of source {at}, before the commit, at {copy}: {rest}"


def _log_start(seen: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    there = "is" if answer.precision is Precision.EXACT else "may be"
    rest = f"of what the group has read {_at_most(answer)} {there} there"
    if not pairs:
        return f"nothing lies before the target's log start, so nothing is skipped; {rest}"
    first, copy = pairs[0]
    wanted = seen.next_record
    if wanted is not None and wanted.offset < first:
        rest += f"; the target does not hold source {wanted.offset} to {first - 1}"
    return (
        f"what the target has left of the source's records begins at {copy} with an equal of "
        f"source {first}, which the group has yet to read; {rest}"
    )


def _same_offset(_: Dialogue, answer: Translated, pairs: Sequence[Pair]) -> str:
    why = "the mirror is expected to keep offsets"
    if not pairs:
        return f"{why}; one of the logs holds no record, so none differs"
    beside = " and ".join(str(at) for at, _ in pairs)
    return (
        f"{why}, and what both logs have nearest to the commit, at {beside}, is equal, as is the "
        "last that both have"
    )


def _at_most(answer: Translated) -> str:
    bound = answer.reread_bound
    return f"at most {counted(bound, 'record')}" if bound else "nothing"


_BY_SETTING = {
    Basis.FLOOR: (
        "translation.floor = log_start takes the target's log start, below which there is nothing "
        "to skip, for a group without a commit there; of the position itself: "
    ),
    Basis.TIMESTAMP: (
        "translation.proof = timestamps takes the first target record at or after the time of the "
        "next record to read; no content was compared, so it may skip records"
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


# --- pairs --------------------------------------------------------------------------------


def _of_records(seen: Dialogue, pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs of records: the logs' beginnings, from which the rule may count, are none."""
    source, target = seen.source, seen.target
    return [pair for pair in pairs if pair[0] >= source.start and pair[1] >= target.start]


def _nearest(seen: Dialogue) -> Iterator[Pair]:
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
