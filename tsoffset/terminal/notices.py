"""What a command tells a person beside its result, on standard error: sentences, and progress."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import structlog
from rich.console import Console
from rich.text import Text

from tsoffset.errors import ConfigurationError, TsoffsetError
from tsoffset.logs import LogFormat, fit_to_be_shown
from tsoffset.printable import printable

if TYPE_CHECKING:
    from tsoffset.flow.settings import FlowSettings

log = structlog.get_logger(__name__)

Report = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and of how much (0: not known)."""


class Notices:
    """Sentences for a person, or the same as log events where logs are JSON."""

    def __init__(self, format: LogFormat = LogFormat.CONSOLE) -> None:
        self.format = format

    def note(self, sentence: str) -> None:
        """Print a sentence for a person; where logs are JSON, events have the facts."""
        if self.format is LogFormat.CONSOLE:
            _print(Text(printable(sentence)))

    def warning(self, event: str, sentence: str) -> None:
        """Report a problem that does not stop the command."""
        if self.format is LogFormat.JSON:
            log.warning(event, message=sentence)
        else:
            _say("warning", "yellow", sentence)

    def configuration_warnings(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.warning("configuration_warning", warning)

    def error(self, error: BaseException, *, trace: bool) -> None:
        """Report what stopped the command, with a traceback if `trace` is true."""
        if isinstance(error, TsoffsetError):
            self.configuration_warnings(error.warnings)
        for sentence in sentences(error):
            if self.format is LogFormat.JSON:
                log.error("command_failed", message=sentence)
            else:
                _say("error", "red", sentence)
        if trace:
            log.error("command_failed_at", exc_info=error)

    def progress(self, title: str) -> AbstractContextManager[Report | None]:
        """Show progress as `progress` does, unless logs are JSON."""
        return progress(title, wanted=self.format is LogFormat.CONSOLE)

    @contextmanager
    def with_progress(
        self, title: str, flows: "Sequence[FlowSettings]"
    ) -> "Iterator[Iterator[FlowSettings]]":
        """The flows, one after the other, while the progress shows them. A context, because a
        generator would still show it while the error that interrupted it is printed."""

        def shown() -> "Iterator[FlowSettings]":
            for done, flow in enumerate(flows):
                if report is not None:
                    report(flow.name, done, len(flows))
                yield flow

        with self.progress(title) as report:
            yield shown()


def sentences(error: BaseException) -> list[str]:
    """The sentences of an error, one for each problem."""
    if isinstance(error, ConfigurationError):
        return [str(problem) for problem in error.problems]
    if isinstance(error, TsoffsetError):
        return [str(error)]
    return [
        f"{type(error).__name__}: {error}; this is an internal error in tsoffset; please report it"
        " with the output of --debug"
    ]


def _say(word: str, color: str, sentence: str) -> None:
    _print(Text.assemble((f"{word}: ", color), printable(fit_to_be_shown(sentence))))


def _print(text: Text) -> None:
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


@contextmanager
def progress(title: str, *, wanted: bool = True) -> Iterator[Report | None]:
    """Show a line with the current stage, and remove it at the end. Yields None where standard
    error is no terminal. `title` is shown alone until the first report."""
    # Loaded when it is needed, so that help is quick.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[of]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as bars:
        task = bars.add_task(title, total=None, of="")

        def report(stage: str, done: int, total: int) -> None:
            bars.update(
                task,
                description=f"{title}: {stage}",
                completed=done,
                total=total or None,
                of=f"{done}/{total}" if total else "",
            )

        yield report
