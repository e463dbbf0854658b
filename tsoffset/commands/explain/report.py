"""An explanation for a person: numbered steps, the pairs, the answer, the commit."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from tsoffset.cluster import Connect
from tsoffset.commands.explain.flow_explanation import Wanted, explain
from tsoffset.commands.explain.statements import (
    Ask,
    Asked,
    Conclusion,
    EqualRecords,
    Explanation,
    Form,
    Opening,
    Role,
    Told,
)
from tsoffset.commands.explain.timestamps import in_utc
from tsoffset.commands.options import kafka_cluster
from tsoffset.config.selection import Selection
from tsoffset.model import Basis, OutcomeKind, Precision, Row, Side, TimestampType
from tsoffset.printable import printable
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, Tally, counted
from tsoffset.terminal.report import Item, head, items, total
from tsoffset.terminal.tables import wrapped

_STYLES = {OutcomeKind.SKIPPED: "yellow", OutcomeKind.FAILED: "bold red"}
_ROLES = {
    Role.BEFORE_COMMIT: "before the commit",
    Role.NEXT_RECORD: "the next record to read",
    Role.AFTER_COMMIT: "after the commit",
}
_LABEL = 10


def explanation_lines(explanations: Sequence[Explanation], width: int | None) -> Iterator[Text]:
    """All explanations under their flows, and below several a line that counts them."""
    for place, (flow, some) in enumerate(groupby(explanations, key=lambda one: one.row.flow)):
        if place:
            yield Text()
        members = list(some)
        yield head(f"flow {flow}")
        openings = [one.opening for one in members if one.opening is not None]
        for opening in openings[:1]:
            yield from wrapped(_rule(opening), width, style="dim")
        for number, one in enumerate(members):
            if number:
                yield Text()
            yield from _one(one, width)
    if len(explanations) == 1:
        return
    yield Text()
    summary = Tally.of(one.row for one in explanations).in_words()
    yield from total(f"explain: {summary}", width)


def _one(one: Explanation, width: int | None) -> Iterator[Text]:
    row = one.row
    if row.group is None:
        yield from wrapped(printable(_verdict(one)), width)
        return
    said = [_said("commit", _verdict(one), _STYLES.get(row.outcome, ""))]
    if one.opening is None:
        yield head(_untold(row))
    else:
        yield from _heading(one.opening, width)
        yield from _steps(one.steps, width)
        pairs = [_said("pair" if pair.proves else "equal", _pair(pair)) for pair in one.pairs]
        said = [*pairs, *_answer(one.conclusion), *said, _said("cost", _cost(one), "dim")]
    yield from items(said, width, below=_LABEL)


def _untold(row: Row) -> str:
    """The heading of a row that no question was asked for."""
    words = [f"group {row.group}"]
    if row.source_topic is not None:
        words.append(f"{row.source_topic}-{row.partition}")
    if row.source_offset is not None:
        words.append(f"committed {row.source_offset}")
    return ", ".join(words)


def _heading(opening: Opening, width: int | None) -> Iterator[Text]:
    partition = f"{opening.source_topic}-{opening.partition}"
    copy = f"{opening.target_topic}-{opening.partition}"
    known_as = "the original" if opening.failback else "the copy"
    return total(
        f"group {opening.group}, {partition} on {opening.source_cluster}, committed"
        f" {opening.source_offset}; {known_as} is {copy} on {opening.target_cluster}",
        width,
    )


def _rule(opening: Opening) -> str:
    """What the flow's settings make of the rule; it is the same for all its positions."""
    if opening.proof == "timestamps":
        return f"translation.proof = timestamps; source read as {opening.isolation}"
    expected = f"translation.expect = {opening.expect}; " if opening.expect else ""
    return (
        f"{expected}equal means the same {_enumerated(opening.match.split(','))}; source read as "
        f"{opening.isolation}; translation.budget = {opening.budget}"
    )


# --- the steps ----------------------------------------------------------------------------


def _steps(steps: Sequence[tuple[Asked, Told]], width: int | None) -> Iterator[Text]:
    """The questions, each with its answer."""
    digits = max(2, len(str(len(steps))))
    talk = [
        Item(
            Text(f"  {asked.step:>{digits}}  {asked.side:<6}  "),
            _question(asked),
            [_answered(asked, told)],
            "red" if told.answer is Form.FAILED else "",
        )
        for asked, told in steps
    ]
    return items(talk, width, below=digits + 4, arrow="->")


def _question(asked: Asked) -> str:
    match asked.ask:
        case Ask.LOG_RANGE:
            return "log range"
        case Ask.LOG_ITSELF:
            return "log range including open transactions"
        case Ask.READ:
            assert asked.max_bytes is not None
            if asked.max_bytes == 1:
                return f"read the batch at {asked.offset}"
            return f"read up to {_size(asked.max_bytes)} from {asked.offset}"
        case Ask.FIRST_AT_TIME:
            return f"first at or after {_iso(asked.timestamp_ms)}"
        case Ask.YOUNGEST:
            return "record with the largest timestamp"


def _answered(asked: Asked, told: Told) -> str:
    match told.answer:
        case Form.RANGE:
            return f"start {told.start}, end {told.end}"
        case Form.RECORD if told.record_timestamp_ms == asked.timestamp_ms:
            return f"{told.record_offset} at that time"
        case Form.RECORD:
            return f"{told.record_offset} {_at(told.record_timestamp_ms)}"
        case Form.NONE:
            return "none (a compacted log may hold one)"
        case Form.FAILED:
            return f"failed, {told.reason}: {told.message}"
        case Form.STRETCH:
            return _stretch(asked, told)


def _stretch(asked: Asked, told: Told) -> str:
    assert told.start is not None
    assert told.end is not None
    if told.start == told.end:
        return "no records: this is the readable end of the log"
    text = f"{told.start} .. {told.end - 1}, "
    if not told.records:
        return text + "no data record"
    text += counted(told.records, "record")
    if told.equal_offset is not None:
        return f"{text}; {told.equal_offset} equals the next record to read{_stamped(told)}"
    if told.record_offset is None:
        text += f", none from {asked.offset} on"
    elif told.record_offset == asked.offset:
        text += f"; {told.record_offset} {_at(told.record_timestamp_ms)}"
    else:
        text += f"; from {asked.offset} on the first is {told.record_offset}"
        text += f" {_at(told.record_timestamp_ms)}"
    if told.equal_records is not None:
        other = Side.TARGET if told.side is Side.SOURCE else Side.SOURCE
        text += f"; {told.equal_records or 'none'} equal to what was read on the {other}"
    return text + _stamped(told)


def _stamped(told: Told) -> str:
    by_broker = told.timestamp_type is TimestampType.LOG_APPEND_TIME
    return "; stamped by the broker (LogAppendTime)" if by_broker else ""


# --- what comes of them -------------------------------------------------------------------


def _pair(pair: EqualRecords) -> str:
    text = f"source {pair.source_offset}{_read_in(pair.source_step)} = target {pair.target_offset}"
    text += f"{_read_in(pair.target_step)}, {_ROLES[pair.role]}"
    if pair.source_step is not None:
        text += f", {_time(pair.timestamp_ms)}"
    return text if pair.proves else f"{text} (found, but not sufficient as proof)"


def _read_in(step: int | None) -> str:
    return "" if step is None else f" (step {step})"


def _answer(conclusion: Conclusion | None) -> Iterator[Item]:
    if conclusion is None:
        return
    if conclusion.target_offset is None:
        name = f"{conclusion.reason}: " if conclusion.reason else ""
        yield _said("answer", f"none, {name}{conclusion.message}", "bold")
        return
    yield _said("answer", f"{conclusion.target_offset}, {_precision(conclusion)}", "bold")
    if conclusion.why is not None:
        yield _said("why", conclusion.why)


def _precision(conclusion: Conclusion) -> str:
    bound = conclusion.reread_bound
    again = f"at most {counted(bound or 0, 'record')} may be re-read"
    never_again = "no record is re-read"
    # What the target has lost, nobody can read there.
    lost = conclusion.basis in (Basis.LOG_START, Basis.FLOOR)
    and_none = "and no record on the target is skipped" if lost else "and no record is skipped"
    match conclusion.precision:
        case Precision.EXACT:
            return f"exact: {never_again}, {and_none}"
        case Precision.BOUNDED:
            return f"bounded: {again}, {and_none}"
        case Precision.FRONTIER:
            repeated = never_again if bound == 0 else again
            return f"frontier: past the last mirrored record; {repeated}, {and_none}"
        case _:
            return "unproven: an unknown number of records may be re-read or skipped"


def _verdict(one: Explanation) -> str:
    row, conclusion = one.row, one.conclusion
    current, offset = row.current_target_offset, row.target_offset
    has = "has no committed offset" if current is None else f"has {current}"
    match row.outcome:
        case OutcomeKind.UNCHANGED if current == offset:
            return f"unchanged: the target group {has} already"
        case OutcomeKind.UNCHANGED:
            return f"unchanged: the target group {has}, and no record lies between it and {offset}"
        case OutcomeKind.SKIPPED | OutcomeKind.FAILED:
            name = f"{row.outcome}, {row.reason}"
            if conclusion is not None and conclusion.message == row.message:
                return f"{name}: nothing is committed"
            return f"{name}: {row.message}"
        case _ if one.commits:
            return f"would_commit: the target group {has}; sync commits {offset}"
        case _:
            return (
                f"would_commit: the target group {has}; {offset} would be committed, but"
                " sync.group.offsets.enabled is false"
            )


def _cost(one: Explanation) -> str:
    assert one.opening is not None
    parts = []
    for side, alias in (
        (Side.SOURCE, one.opening.source_cluster),
        (Side.TARGET, one.opening.target_cluster),
    ):
        told = [answer for _, answer in one.steps if answer.side is side]
        read = sum(answer.bytes_read or 0 for answer in told)
        size = f" ({_size(read)} read)" if read else ""
        parts.append(f"{counted(len(told), 'question')} to {alias}{size}")
    return ", ".join(parts)


# --- words --------------------------------------------------------------------------------


def _said(label: str, text: str, style: str = "") -> Item:
    return Item(Text(f"  {label}".ljust(_LABEL - 2), "dim"), "", [text], style)


def _enumerated(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _iso(timestamp_ms: int | None) -> str:
    return "no time" if timestamp_ms is None else in_utc(timestamp_ms)


def _at(timestamp_ms: int | None) -> str:
    return "without a time" if timestamp_ms is None else f"at {_iso(timestamp_ms)}"


def _time(timestamp_ms: int | None) -> str:
    """The moment with its number of milliseconds."""
    text = _iso(timestamp_ms)
    return f"{text} ({timestamp_ms})" if text.endswith("Z") else text


def _size(number: int) -> str:
    """Bytes in the unit that a person would take."""
    for unit in ("bytes", "kB"):
        if number < 1_000:
            return f"{number} {unit}"
        number = round(number / 1_000)
    return f"{number} MB"


def run_explain(
    selection: Selection,
    wanted: Wanted,
    output: Output,
    notices: Notices,
    *,
    connect: Connect = kafka_cluster,
) -> int:
    """Explain the group in the flows chosen, print it and return the exit status.

    Raises UsageError.
    """
    with notices.progress("explaining") as report:
        explained = explain(
            wanted, selection.flows, connect, settings=selection.settings, report=report
        )
    for warning in explained.warnings:
        notices.warning("cycle_warning", warning)
    for sentence in explained.left_out:
        notices.note(sentence)
    if output.format is Format.TABLE:
        output.lines(explanation_lines(explained.explanations, output.width))
    else:
        for one in explained.explanations:
            for statement in one.statements():
                output.records(type(statement), [statement])
    output.flush()
    return explained.exit_status
