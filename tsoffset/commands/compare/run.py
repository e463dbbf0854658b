"""Runs `tsoffset compare`, once or at an interval, and prints the comparisons for a person."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path

import structlog
from rich.text import Text

from tsoffset.commands.compare.columns import pair_columns, sum_columns
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgment import ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.totals import (
    SUM_FIELDS,
    ComparisonTotals,
    PastTotals,
    add_totals,
    sums,
)
from tsoffset.commands.scope import require_match
from tsoffset.config.selection import Selection
from tsoffset.daemon.schedule import Schedule
from tsoffset.kafka import kafka_cluster
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, in_utc, plural
from tsoffset.terminal.report import RowMessage, head, notes
from tsoffset.terminal.tables import table, wrap

log = structlog.get_logger(__name__)


def run_compare(
    selection: Selection, options: CompareOptions, output: Output, notices: Notices
) -> int:
    """Compare the flows, print their pairs and totals, and return the exit status of the last
    comparison. Raises UsageError."""
    if options.html is not None:
        # Fails before the comparison if an extra is missing.
        import_module("tsoffset.commands.compare.html_report")
    unreachable = require_match(selection, notices)
    past: PastTotals = defaultdict(list)
    # The status of the last comparison counts, even if a signal interrupts its printing.
    status = 0

    def compare_once() -> None:
        nonlocal status, unreachable
        with notices.with_progress("comparing", selection.flows) as flows:
            found = list(
                compare(
                    flows,
                    kafka_cluster,
                    settings=selection.settings,
                    options=options,
                    unreachable=unreachable,
                )
            )
        unreachable = {}
        status = max((one.exit_status for one in found), default=0)
        for compared in found:
            for warning in compared.warnings:
                notices.warning("comparison_warning", warning)
            _print(compared, options, output, notices)
        if options.html is not None:
            status = max(status, _write_report(found, past, options.html, options, notices))

    if options.every_seconds is None:
        compare_once()
        return status
    schedule = Schedule(options.every_seconds, time.monotonic())
    # A shell's background job ignores SIGINT unless it is set here.
    signals = (signal.SIGTERM, signal.SIGINT)
    handlers = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        for done in count() if options.times is None else range(options.times):
            if done:
                schedule.advance(time.monotonic())
                time.sleep(max(0.0, schedule.due - time.monotonic()))
            compare_once()
            if output.closed and options.html is None:
                break
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in zip(signals, handlers, strict=True):
            signal.signal(number, handler)
    return status


def _print(
    compared: FlowComparison, options: CompareOptions, output: Output, notices: Notices
) -> None:
    """The pairs on standard output; the totals below the table, or as notices."""
    totals = ComparisonTotals(compared.pairs)
    log.info("comparison_finished", flow=compared.flow, **totals.in_fields())
    if output.format is Format.TABLE:
        output.lines(comparison_lines(compared, output.width, options))
    elif options.by is By.PAIR:
        output.records(ComparedPair, compared.pairs)
    else:
        output.rows(SUM_FIELDS, ([*one.values()] for one in sums(options.by, compared)))
    output.flush()
    if output.format is not Format.TABLE:
        for name, words in totals.in_words(options.other_name).items():
            notices.note(f"{compared.flow}: {name}: {words}")


def _write_report(
    found: Sequence[FlowComparison],
    past: PastTotals,
    path: Path,
    options: CompareOptions,
    notices: Notices,
) -> int:
    from tsoffset.commands.compare.html_report import html_report
    from tsoffset.stores import Folder

    for compared in found:
        add_totals(past[compared.flow], compared)
    try:
        Folder(path.parent).write(path.name, html_report(found, past, options).encode())
    except OSError as error:
        notices.warning(
            "report_not_written",
            f"write report, {path}: {error.strerror or error}; free disk space, or name a file that"
            " this user can write",
        )
        return 1
    return 0


def comparison_lines(
    compared: FlowComparison, width: int | None, options: CompareOptions
) -> Iterator[Text]:
    """The table of group-partitions or sums, messages and totals. The heading has the time if
    comparisons are repeated."""
    pairs, other = compared.pairs, options.other_name
    with_time = options.every_seconds is not None
    yield head(f"flow {compared.flow}" + (f", {in_utc(compared.at_ms)}" if with_time else ""))
    if pairs:
        if options.by is By.PAIR:
            yield from table(pair_columns(other), pairs, width)
        else:
            yield from table(sum_columns(options.by), sums(options.by, compared), width)
        yield Text()
        messages = (RowMessage(pair.verdict, pair.message) for pair in pairs)
        yield from notes(messages, "group-partition", width)
    yield head(f"{compared.flow}: {plural(len(pairs), 'group-partition')}")
    for name, words in ComparisonTotals(pairs).in_words(other).items():
        yield from wrap(f"{name:13}  {words}", width, "  ", " " * 17)
