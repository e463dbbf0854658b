"""Runs `tsoffset compare`, once or at an interval."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import structlog

from tsoffset.cluster import Connect
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgement import ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.report import comparison_lines
from tsoffset.commands.compare.totals import ComparisonTotals, PastTotals, Sum, sums
from tsoffset.commands.options import kafka_cluster
from tsoffset.commands.scope import in_history, on_cluster, require_match
from tsoffset.config.selection import Selection
from tsoffset.daemon.schedule import Schedule
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

log = structlog.get_logger(__name__)


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
    names_of = on_cluster(selection.narrowing, connect)
    if options.recorded:
        names_of = in_history(selection.settings)
    require_match(selection, notices, names_of)
    repeating = Repeating(options.every_seconds or 1.0, options.times)
    past = PastTotals()
    status = 0

    def compare_once() -> bool:
        nonlocal status
        with notices.progress("comparing") as report:
            found = list(
                compare(
                    selection.flows,
                    connect,
                    settings=selection.settings,
                    options=options,
                    report=report,
                )
            )
        with repeating.undisturbed():
            status = max((one.exit_status for one in found), default=0)
            for compared in found:
                for warning in compared.warnings:
                    notices.warning("comparison_warning", warning)
                _print(compared, options, output, notices)
            if options.html is not None:
                status = max(status, _write_report(found, past, options, notices))
        again = not output.closed or options.html is not None
        return options.every_seconds is not None and again

    if options.every_seconds is None:
        compare_once()
    else:
        repeating.run(compare_once)
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
    found: Sequence[FlowComparison], past: PastTotals, options: CompareOptions, notices: Notices
) -> int:
    """Write the HTML report in one step, and return the exit status."""
    from tsoffset.commands.compare.html_report import html_report
    from tsoffset.stores import Folder

    for compared in found:
        past.add(compared)
    path = options.html
    assert path is not None
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


class Repeating:
    """Repeats work at an interval; times that have passed are left out.

    SIGTERM and Ctrl-C end it: at once while it waits or reads from clusters, and after the block
    `undisturbed` while something is written.
    """

    def __init__(self, every_seconds: float, times: int | None) -> None:
        self._schedule = Schedule(every_seconds, time.monotonic())
        self._rounds = count() if times is None else range(times)
        self._disturbable = True
        self._signaled = False

    def run(self, work: Callable[[], bool]) -> None:
        """Call `work` until it returns False, the number of times is reached, or a signal comes.
        Call this from the main thread."""
        with self._handling_signals():
            try:
                for number in self._rounds:
                    if number:
                        time.sleep(max(0.0, self._schedule.due - time.monotonic()))
                    if not work():
                        return
                    self._schedule.ended(time.monotonic())
            except KeyboardInterrupt:
                return

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Put signals off until the end of the block."""
        self._disturbable = False
        try:
            yield
        finally:
            self._disturbable = True
        if self._signaled:
            raise KeyboardInterrupt

    @contextmanager
    def _handling_signals(self) -> Iterator[None]:
        handlers = {
            number: signal.signal(number, self._handle)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _handle(self, *_: Any) -> None:
        self._signaled = True
        if self._disturbable:
            raise KeyboardInterrupt
