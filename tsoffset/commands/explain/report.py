"""Runs `tsoffset explain`, and prints the steps, the pairs, the answer and the commit."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from itertools import groupby

from rich.text import Text

from tsoffset.commands.explain.flow_explanation import ExplainOptions, explain
from tsoffset.commands.explain.trace import (
    AnswerStatement,
    Explanation,
    PairStatement,
    PositionStatement,
    RequestStatement,
    Step,
    TranslationStatement,
)
from tsoffset.config.selection import Selection
from tsoffset.group_sync.rows import rows_table
from tsoffset.kafka import kafka_cluster
from tsoffset.model import Basis, OutcomeKind, Precision, Row, Side, TimestampType
from tsoffset.printable import printable
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, in_utc, plural
from tsoffset.terminal.report import Item, head, items, total
from tsoffset.terminal.row_columns import tally_of
from tsoffset.terminal.tables import partition_name, wrap

_STYLES = {OutcomeKind.SKIPPED: "yellow", OutcomeKind.FAILED: "bold red"}
_ROLES = {
    "before_commit": "before the commit",
    "next_record": "the next record to read",
    "after_commit": "after the commit",
}
_LABEL = 10
VERDICT_FIELDS = ("kind", *(field.name for field in fields(Row)))


def explanation_lines(explanations: Sequence[Explanation], width: int | None) -> Iterator[Text]:
    for flow, some in groupby(explanations, key=lambda one: one.row.flow):
        members = list(some)
        if members[0] is not explanations[0]:
            yield Text()
        yield head(f"flow {flow}")
        if position := next(filter(None, (one.position for one in members)), None):
            yield from wrap(_rule(position), width, style="dim")
        for one in members:
            if one is not members[0]:
                yield Text()
            yield from _one(one, width)
    if len(explanations) > 1:
        yield Text()
        summary = tally_of(rows_table([one.row for one in explanations])).in_words()
        yield from total(f"explain: {summary}", width)


def _one(one: Explanation, width: int | None) -> Iterator[Text]:
    row = one.row
    if row.group is None:
        yield from wrap(printable(_outcome(one)), width)
        return
    shown = [_item("commit", _outcome(one), _STYLES.get(row.outcome, ""))]
    if (position := one.position) is None:
        committed = None if row.source_offset is None else f"committed {row.source_offset}"
        known = (f"group {row.group}", partition_name(row.source_topic, row.partition), committed)
        yield head(", ".join(filter(None, known)))
    else:
        known_as = "the original" if position.failback else "the copy"
        yield from total(
            f"group {position.group}, {position.source_topic}-{position.partition} on"
            f" {position.source_cluster}, committed {position.source_offset}; {known_as} is"
            f" {position.target_topic}-{position.partition} on {position.target_cluster}",
            width,
        )
        yield from _steps(one.steps, width)
        pairs = [_item("pair" if pair.proves else "equal", _pair(pair)) for pair in one.pairs]
        shown = [*pairs, *_answer(one), *shown, _item("cost", _cost(one), "dim")]
    yield from items(shown, width, below=_LABEL)


def _rule(position: PositionStatement) -> str:
    """The settings that the rule uses; they are the same for the whole flow."""
    if position.proof == "timestamps":
        return f"translation.proof = timestamps; source read as {position.isolation}"
    expected = f"translation.expect = {position.expect}; " if position.expect else ""
    *first, last = position.match.split(",")
    parts = f"{', '.join(first)} and {last}" if first else last
    return (
        f"{expected}equal means the same {parts}; source read as {position.isolation};"
        f" translation.budget = {position.budget}"
    )


# --- the steps ----------------------------------------------------------------------------


def _steps(steps: Sequence[Step], width: int | None) -> Iterator[Text]:
    digits = max(2, len(str(len(steps))))
    lines = [
        Item(
            Text(f"  {request.step:>{digits}}  {request.side:<6}  "),
            _question(request),
            [_answer_text(request, answer)],
            "red" if answer.answer == "failed" else "",
        )
        for request, answer in steps
    ]
    return items(lines, width, below=digits + 4, arrow="->")


def _question(request: RequestStatement) -> str:
    match request.ask:
        case "log_range":
            return "log range"
        case "log_itself":
            return "log range including open transactions"
        case "read":
            assert request.max_bytes is not None
            if request.max_bytes == 1:
                return f"read the batch at {request.offset}"
            return f"read up to {_size(request.max_bytes)} from {request.offset}"
        case "first_at_time":
            return f"first at or after {_iso(request.timestamp_ms)}"
        case "youngest":
            return "record with the largest timestamp"


def _answer_text(request: RequestStatement, answer: AnswerStatement) -> str:
    match answer.answer:
        case "range":
            return f"start {answer.start}, end {answer.end}"
        case "record" if answer.record_timestamp_ms == request.timestamp_ms:
            return f"{answer.record_offset} at that time"
        case "record":
            return f"{answer.record_offset} {_at(answer.record_timestamp_ms)}"
        case "none":
            return "none (a compacted log may hold one)"
        case "failed":
            return f"failed, {answer.reason}: {answer.message}"
        case "stretch":
            return _fetched_range(request, answer)


def _fetched_range(request: RequestStatement, answer: AnswerStatement) -> str:
    assert answer.start is not None
    assert answer.end is not None
    if answer.start == answer.end:
        return "no records: this is the readable end of the log"
    text = f"{answer.start} .. {answer.end - 1}, "
    if not answer.records:
        return text + "no data record"
    text += plural(answer.records, "record")
    by_broker = answer.timestamp_type is TimestampType.LOG_APPEND_TIME
    stamped = "; stamped by the broker (LogAppendTime)" if by_broker else ""
    if answer.equal_offset is not None:
        return f"{text}; {answer.equal_offset} equals the next record to read{stamped}"
    if answer.record_offset is None:
        text += f", none from {request.offset} on"
    elif answer.record_offset == request.offset:
        text += f"; {answer.record_offset} {_at(answer.record_timestamp_ms)}"
    else:
        text += f"; from {request.offset} on the first is {answer.record_offset}"
        text += f" {_at(answer.record_timestamp_ms)}"
    if answer.equal_records is not None:
        other = Side.TARGET if answer.side is Side.SOURCE else Side.SOURCE
        text += f"; {answer.equal_records or 'none'} equal to what was read on the {other}"
    return text + stamped


# --- the result ---------------------------------------------------------------------------


def _pair(pair: PairStatement) -> str:
    at, copy = (
        f"{offset}" if step is None else f"{offset} (step {step})"
        for offset, step in (
            (pair.source_offset, pair.source_step),
            (pair.target_offset, pair.target_step),
        )
    )
    text = f"source {at} = target {copy}, {_ROLES[pair.role]}"
    if pair.source_step is not None:
        text += f", {_iso(pair.timestamp_ms)}"
        # `_iso` prints the number itself for a time outside the calendar.
        text += f" ({pair.timestamp_ms})" if text.endswith("Z") else ""
    return text if pair.proves else f"{text} (found, but not sufficient as proof)"


def _answer(one: Explanation) -> Iterator[Item]:
    translation = one.translation
    if translation is None:
        return
    if translation.target_offset is None:
        name = f"{translation.reason}: " if translation.reason else ""
        yield _item("answer", f"none, {name}{translation.message}", "bold")
        return
    yield _item("answer", f"{translation.target_offset}, {_precision(translation)}", "bold")
    if translation.why is not None:
        yield _item("why", translation.why)
    # The row's bound also counts acknowledged records; the translation's is for the start offset.
    bound = translation.reread_bound
    if bound is not None and (count := (one.row.reread_bound or 0) - bound):
        yield _item(
            "shared",
            f"the share group has acknowledged at most {plural(count, 'record')} after its start"
            " offset, which the target delivers again",
        )


def _precision(translation: TranslationStatement) -> str:
    bound = translation.reread_bound
    again = f"at most {plural(bound or 0, 'record')} may be re-read"
    never_again = "no record is re-read"
    # Records before the target's log start are not counted as skipped.
    on_target = " on the target" if translation.basis in (Basis.LOG_START, Basis.FLOOR) else ""
    and_none = f"and no record{on_target} is skipped"
    match translation.precision:
        case Precision.EXACT:
            return f"exact: {never_again}, {and_none}"
        case Precision.BOUNDED:
            return f"bounded: {again}, {and_none}"
        case Precision.FRONTIER:
            repeated = never_again if bound == 0 else again
            return f"frontier: past the last mirrored record; {repeated}, {and_none}"
        case _:
            return "unproven: an unknown number of records may be re-read or skipped"


def _outcome(one: Explanation) -> str:
    row, translation = one.row, one.translation
    current, offset = row.current_target_offset, row.target_offset
    has = "has no committed offset" if current is None else f"has {current}"
    match row.outcome:
        case OutcomeKind.UNCHANGED if current == offset:
            return f"unchanged: the target group {has} already"
        case OutcomeKind.UNCHANGED:
            return f"unchanged: the target group {has}, and no record lies between it and {offset}"
        case OutcomeKind.SKIPPED | OutcomeKind.FAILED:
            name = f"{row.outcome}, {row.reason}"
            if translation is not None and translation.message == row.message:
                return f"{name}: nothing is committed"
            return f"{name}: {row.message}"
        case _ if one.commits:
            words = f"would_commit: the target group {has}; sync commits {offset}"
            if one.has_reverse and current is not None:
                words += ", unless `tsoffset plan` shows TARGET_REWOUND for it"
            return words
        case _:
            return (
                f"would_commit: the target group {has}; {offset} would be committed, but"
                " sync.group.offsets.enabled is false"
            )


def _cost(one: Explanation) -> str:
    assert one.position is not None
    parts = []
    for side, alias in (
        (Side.SOURCE, one.position.source_cluster),
        (Side.TARGET, one.position.target_cluster),
    ):
        answers = [answer for _, answer in one.steps if answer.side is side]
        read = sum(answer.bytes_read or 0 for answer in answers)
        size = f" ({_size(read)} read)" if read else ""
        parts.append(f"{plural(len(answers), 'question')} to {alias}{size}")
    return ", ".join(parts)


# --- words --------------------------------------------------------------------------------


def _item(label: str, text: str, style: str = "") -> Item:
    return Item(Text(f"  {label}".ljust(_LABEL - 2), "dim"), "", [text], style)


def _iso(timestamp_ms: int | None) -> str:
    return "no time" if timestamp_ms is None else in_utc(timestamp_ms, "milliseconds")


def _at(timestamp_ms: int | None) -> str:
    return "without a time" if timestamp_ms is None else f"at {_iso(timestamp_ms)}"


def _size(number: int) -> str:
    for unit in ("bytes", "kB"):
        if number < 1_000:
            return f"{number} {unit}"
        number = round(number / 1_000)
    return f"{number} MB"


def run_explain(
    selection: Selection, options: ExplainOptions, output: Output, notices: Notices
) -> int:
    with notices.with_progress("explaining", selection.flows) as flows:
        result = explain(options, flows, kafka_cluster, settings=selection.settings)
    for warning in result.warnings:
        notices.warning("cycle_warning", warning)
    for sentence in result.left_out:
        notices.note(sentence)
    if output.format is Format.TABLE:
        output.lines(explanation_lines(result.explanations, output.width))
    else:
        for one in result.explanations:
            for statement in one.statements():
                output.records(type(statement), [statement])
            output.rows(VERDICT_FIELDS, [("verdict", *astuple(one.row))])
    output.flush()
    return result.exit_status
