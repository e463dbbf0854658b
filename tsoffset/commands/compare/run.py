"""`tsoffset compare` as the command line calls it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

import structlog

from tsoffset.cluster import Connect
from tsoffset.commands.compare.command import Asked, By
from tsoffset.commands.compare.course import Course
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgement import ComparedPair
from tsoffset.commands.compare.repeating import Repeating
from tsoffset.commands.compare.report import comparison_lines
from tsoffset.commands.compare.totals import Sum, Totals, sums
from tsoffset.commands.scope import in_history, on_cluster, require_match
from tsoffset.config.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared, what has a line of its own, the file of the HTML report, and after how
    many seconds it is done again (None: once), how often (None: until a signal comes)."""

    asked: Asked = field(default_factory=Asked)
    by: By = By.PAIR
    html: Path | None = None
    every_seconds: float | None = None
    times: int | None = None


def run_compare(
    selection: Selection,
    wanted: Wanted,
    output: Output,
    notices: Notices,
    *,
    connect: Connect = KafkaCluster,
) -> int:
    """Compare the flows, print their pairs and totals, and return the exit status: of several
    comparisons that of the last one. Raises UsageError."""
    if wanted.html is not None:
        # Fails before clusters are asked where an extra is missing.
        import_module("tsoffset.commands.compare.html_report")
    names_of = on_cluster(selection.narrowing, connect)
    if wanted.asked.recorded:
        names_of = in_history(selection.settings)
    require_match(selection, notices, names_of)
    run = _Run(selection, wanted, output, notices, connect)
    if wanted.every_seconds is None:
        run.compare(nullcontext())
    else:
        repeating = Repeating(wanted.every_seconds, wanted.times)

        def again() -> bool:
            run.compare(repeating.undisturbed())
            return not output.closed or wanted.html is not None

        repeating.run(again)
    return run.status


@dataclass(slots=True)
class _Run:
    """One comparison after the other."""

    selection: Selection
    wanted: Wanted
    output: Output
    notices: Notices
    connect: Connect
    status: int = 0
    _course: Course = field(default_factory=Course)

    def compare(self, undisturbed: AbstractContextManager[None]) -> None:
        """Compare all flows once, and write what was found in one go."""
        wanted, selection = self.wanted, self.selection
        with progress("comparing", wanted=self.notices.format is LogFormat.CONSOLE) as report:
            found = list(
                compare(
                    selection.flows,
                    self.connect,
                    settings=selection.settings,
                    asked=wanted.asked,
                    report=report,
                )
            )
        with undisturbed:
            self.status = max((one.exit_status for one in found), default=0)
            for compared in found:
                for warning in compared.warnings:
                    self.notices.warning("comparison_warning", warning)
                self._print(compared)
            if wanted.html is not None:
                self._write(wanted.html, found)

    def _print(self, compared: FlowComparison) -> None:
        """The pairs on standard output; the totals below the table, else for a person alone."""
        totals = Totals.of(compared.pairs)
        by, output = self.wanted.by, self.output
        log.info("comparison_finished", flow=compared.flow, **totals.in_fields())
        times = self.wanted.every_seconds is not None
        other = self.wanted.asked.other_name
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
        page = html_report(found, self._course, self.wanted.asked, self.wanted.every_seconds)
        try:
            Folder(path.parent).write(path.name, page.encode())
        except OSError as error:
            self.status = max(self.status, 1)
            self.notices.warning(
                "report_not_written",
                f"write report, {path}: {error.strerror or error}; free disk space, or name a file"
                " that this user can write",
            )
