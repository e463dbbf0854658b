"""Runs `tsoffset compare`, once or at an interval, and prints the comparisons for a person."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path

import structlog
from rich.text import Text

from tsoffset.cluster import Connect
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgement import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.totals import ComparisonTotals, PastTotals, Sum, add_totals, sums
from tsoffset.commands.options import kafka_cluster
from tsoffset.commands.scope import require_match
from tsoffset.config.selection import Selection
from tsoffset.daemon.schedule import Schedule
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, counted, in_utc
from tsoffset.terminal.report import RowMessage, head, notes
from tsoffset.terminal.tables import Cell, Column, place, table, wrapped

log = structlog.get_logger(__name__)

_STYLES = {
    CheckpointVerdict.EQUAL: "green",
    CheckpointVerdict.REREAD: "yellow",
    CheckpointVerdict.UNSAFE: "bold red",
    CheckpointVerdict.BEYOND: "yellow",
    CheckpointVerdict.FAILED: "bold red",
}


def run_compare(
    selection: Selection,
    options: CompareOptions,
    output: Output,
    notices: Notices,
    *,
    connect: Connect = kafka_cluster,
) -> int:
    """Compare the flows, print their pairs and totals, and return the exit status of the last
    comparison. Raises UsageError."""
    if options.html is not None:
        # Fails before the comparison if an extra is missing.
        import_module("tsoffset.commands.compare.html_report")
    unreachable = require_match(selection, notices, connect)
    past: PastTotals = defaultdict(list)
    # The last comparison's, even if a signal ends the printing of it.
    status = 0

    def compare_once() -> None:
        flows = notices.with_progress("comparing", selection.flows)
        nonlocal status, unreachable
        found = list(
            compare(
                flows,
                connect,
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
                schedule.ended(time.monotonic())
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
    totals = ComparisonTotals.of(compared.pairs)
    log.info("comparison_finished", flow=compared.flow, **totals.in_fields())
    with_time, other = options.every_seconds is not None, options.other_name
    lines = partial(comparison_lines, compared, by=options.by, other=other, with_time=with_time)
    if options.by is By.PAIR:
        output.show(ComparedPair, compared.pairs, lines)
    else:
        output.show(Sum, sums(options.by, compared.pairs), lines)
    if output.format is not Format.TABLE:
        for name, words in totals.in_words(other).items():
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
    compared: FlowComparison,
    width: int | None,
    by: By = By.PAIR,
    *,
    other: str = "MirrorMaker 2",
    with_time: bool = False,
) -> Iterator[Text]:
    """The table of group-partitions or sums, messages and totals. `other` is the name of what
    tsoffset is compared with; with `with_time` the heading has the time of the comparison."""
    pairs = compared.pairs
    yield head(f"flow {compared.flow}" + (f", {in_utc(compared.at_ms)}" if with_time else ""))
    if pairs:
        if by is By.PAIR:
            yield from table(_columns(other), pairs, width)
        else:
            yield from table(_sum_columns(by), sums(by, pairs), width)
        yield Text()
        messages = (RowMessage(pair.verdict, pair.message) for pair in pairs)
        yield from notes(messages, "group-partition", width)
    yield head(f"{compared.flow}: {counted(len(pairs), 'group-partition')}")
    for name, words in ComparisonTotals.of(pairs).in_words(other).items():
        yield from wrapped(f"{name:13}  {words}", width, "  ", " " * 17)


def _sum_columns(by: By) -> Sequence[Column[Sum]]:
    return (
        Column(by.value.upper(), lambda one: one.name, elastic=True),
        Column("PARTITIONS", lambda one: one.pairs, right=True, short="PARTS"),
        Column("EQUAL", lambda one: one.equal, right=True, drops=2),
        Column("RE-READ", lambda one: one.reread, right=True),
        Column("RECORDS", lambda one: one.reread_records, right=True),
        Column("MOST", lambda one: one.reread_most, right=True, drops=1),
        Column(
            "UNSAFE",
            lambda one: Cell(str(one.unsafe), "bold red" if one.unsafe else ""),
            right=True,
        ),
        Column("SKIPPED", lambda one: one.unsafe_records, right=True, drops=3),
        Column("BEYOND", lambda one: one.beyond, right=True, drops=3),
        Column("NONE", lambda one: one.none, right=True),
        Column("UNJUDGED", lambda one: one.unjudged, right=True, drops=2),
        Column("FAILED", lambda one: one.failed, right=True, drops=2),
        Column("EXACT", lambda one: one.ours_exact, right=True),
        Column("BOUND", lambda one: one.ours_reread_bound, right=True),
        Column("TARGET GROUPS RE-READ", lambda one: one.target_commit_reread, right=True, drops=3),
    )


def _precision(pair: ComparedPair) -> Cell | str | None:
    if pair.ours is None:
        return None if pair.ours_reason is None else Cell(pair.ours_reason, "yellow")
    bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
    return f"{pair.ours_precision}{bound}"


def _columns(other: str) -> tuple[Column[ComparedPair], ...]:
    names = {CommitOrigin.CHECKPOINT: other, CommitOrigin.TSOFFSET: "tsoffset"}
    short = "MM2" if other == "MirrorMaker 2" else other.upper()
    return (
        Column("GROUP", lambda pair: pair.group, elastic=True, heads=2),
        Column("SOURCE", lambda pair: place(pair.source_topic, pair.partition), elastic=True),
        Column("COMMITTED", lambda pair: pair.source_offset, right=True, short="OFFSET"),
        Column("LAG", lambda pair: pair.lag, right=True, drops=2),
        # The policy gives the target's name.
        Column(
            "TARGET", lambda pair: place(pair.target_topic, pair.partition), elastic=True, drops=1
        ),
        Column("TSOFFSET", lambda pair: pair.ours, right=True),
        Column("PRECISION", _precision),
        Column(other.upper(), lambda pair: pair.theirs, right=True, short=short),
        Column("OF SOURCE OFFSET", lambda pair: pair.theirs_source_offset, right=True, drops=2),
        Column("VERDICT", lambda pair: Cell(pair.verdict, _STYLES.get(pair.verdict, ""))),
        Column("RECORDS", lambda pair: pair.records, right=True, folds=2),
        Column("TARGET COMMIT", lambda pair: pair.target_commit, right=True, short="ON TARGET"),
        Column("SET BY", lambda pair: names.get(pair.target_commit_is, pair.target_commit_is)),
        Column("RE-READS", lambda pair: pair.target_commit_reread, right=True, folds=2),
    )
