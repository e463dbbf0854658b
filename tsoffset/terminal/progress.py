"""Progress of long work on standard error: shown on a terminal, nothing otherwise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

Report = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and of how much (0: not known)."""


@contextmanager
def progress(title: str, *, wanted: bool = True) -> Iterator[Report | None]:
    """A line for the stage that is under way, gone at the end; None where nobody would see it.

    `title` stands alone until the first report.
    """
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[of]}"),
        Elapsed(),
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
