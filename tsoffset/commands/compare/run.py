"""`tsoffset compare` as the command line calls it."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
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
    """Compare the flows, print their pairs and totals, and return the exit status: of several
    comparisons that of the last one. Raises UsageError."""
    if options.html is not None:
        # Fails before clusters are asked where an extra is missing.
        import_module("tsoffset.commands.compare.html_report")
    names_of = on_cluster(selection.narrowing, connect)
    if options.recorded:
        names_of = in_history(selection.settings)
    require_match(selection, notices, names_of)
    run = _Comparisons(selection, options, output, notices, connect)
    if options.every_seconds is None:
        run.compare(nullcontext())
    else:
        repeating = Repeating(options.every_seconds, options.times)

        def again() -> bool:
            run.compare(repeating.undisturbed())
            return not output.closed or options.html is not None

        repeating.run(again)
    return run.status


@dataclass(slots=True)
class _Comparisons:
    """One comparison after the other."""

    selection: Selection
    options: CompareOptions
    output: Output
    notices: Notices
    connect: Connect
    status: int = 0
    _course: PastTotals = field(default_factory=PastTotals)

    def compare(self, undisturbed: AbstractContextManager[None]) -> None:
        """Compare all flows once, and write what was found in one go."""
        options, selection = self.options, self.selection
        with self.notices.progress("comparing") as report:
            found = list(
                compare(
                    selection.flows,
                    self.connect,
                    settings=selection.settings,
                    options=options,
                    report=report,
                )
            )
        with undisturbed:
            self.status = max((one.exit_status for one in found), default=0)
            for compared in found:
                for warning in compared.warnings:
                    self.notices.warning("comparison_warning", warning)
                self._print(compared)
            if options.html is not None:
                self._write(options.html, found)

    def _print(self, compared: FlowComparison) -> None:
        """The pairs on standard output; the totals below the table, else for a person alone."""
        totals = ComparisonTotals.of(compared.pairs)
        by, output = self.options.by, self.output
        log.info("comparison_finished", flow=compared.flow, **totals.in_fields())
        times = self.options.every_seconds is not None
        other = self.options.other_name
        lines = partial(comparison_lines, compared, by=by, other=other, times=times)
        if by is By.PAIR:
            output.show(ComparedPair, compared.pairs, lines)
        else:
            output.show(Sum, sums(by, compared.pairs), lines)
        if output.format is not Format.TABLE:
            for name, words in totals.in_words(other).items():
                self.notices.note(f"{compared.flow}: {name}: {words}")

    def _write(self, path: Path, found: Sequence[FlowComparison]) -> None:
        """The report in one step: who looks at it has the old one or the new."""
        # Loads what draws, and pyarrow.
        from tsoffset.commands.compare.html_report import html_report
        from tsoffset.stores import Folder

        for compared in found:
            self._course.add(compared)
        page = html_report(found, self._course, self.options)
        try:
            Folder(path.parent).write(path.name, page.encode())
        except OSError as error:
            self.status = max(self.status, 1)
            self.notices.warning(
                "report_not_written",
                f"write report, {path}: {error.strerror or error}; free disk space, or name a file"
                " that this user can write",
            )


class Repeating:
    """One piece of work after the other, on a grid of times; what is past is left out.

    SIGTERM and Ctrl-C end it in order: while it waits or looks at clusters at once, and while
    something is written (`undisturbed`) right after that.
    """

    def __init__(self, every_seconds: float, times: int | None) -> None:
        self._schedule = Schedule(every_seconds, time.monotonic())
        self._rounds = count() if times is None else range(times)
        self._disturbable = True
        self._told = False

    def run(self, work: Callable[[], bool]) -> None:
        """Call `work` until it returns False, as often as was said, or until a signal comes. Call
        it from the main thread."""
        with self._heeding_signals():
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
        """No signal is heeded before the block is done."""
        self._disturbable = False
        try:
            yield
        finally:
            self._disturbable = True
        if self._told:
            raise KeyboardInterrupt

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._heard) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, *_: Any) -> None:
        self._told = True
        if self._disturbable:
            raise KeyboardInterrupt
