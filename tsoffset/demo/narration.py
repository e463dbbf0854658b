"""What the demo says: numbered steps on standard output."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from tsoffset.demo.verdict import GroupVerdict, Way
from tsoffset.terminal.output import Output
from tsoffset.terminal.tables import Cell, Column, printable, table

_INDENT = "   "
_WIDTH = 100


class Narrator:
    """Writes for a person; a step at a time, so that it can be followed through a pipe too."""

    def __init__(self, output: Output) -> None:
        """Write to `output`."""
        self._output = output
        self._steps = 0

    def opening(self, title: str, *sentences: str) -> None:
        """What this is."""
        self._write([Text(title, "bold")])
        for sentence in sentences:
            self._write(map(Text, self._wrapped(sentence, "", "")))

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._write([Text(f"{self._steps}. {title}", "bold")], apart=True)

    def say(self, *sentences: str, style: str = "", apart: bool = False) -> None:
        """Sentences, each from a new line on."""
        for sentence in sentences:
            lines = self._wrapped(sentence, _INDENT, _INDENT)
            self._write((Text(line, style) for line in lines), apart=apart)

    def quote(self, lines: Iterable[str], style: str = "cyan") -> None:
        """Lines of a file, or commands: whole, so that they can be copied."""
        self._write(Text(f"{_INDENT}  {printable(line)}", style) for line in lines)

    def items(self, sentences: Iterable[str]) -> None:
        """Sentences with a dash before each."""
        for sentence in sentences:
            self._write(map(Text, self._wrapped(sentence, f"{_INDENT}- ", f"{_INDENT}  ")))

    def lines(self, lines: Iterable[Text]) -> None:
        """Lines as they are, apart from what stands before."""
        self._write(lines, apart=True)

    def table(self, lines: Callable[[int | None], Iterable[Text]]) -> None:
        """The lines for a width, set in like the text around them."""
        width = None if self.width is None else self.width - len(_INDENT)
        self._write((Text(_INDENT).append_text(line) for line in lines(width)), apart=True)

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None for a file or a pipe."""
        return self._output.width

    def _wrapped(self, sentence: str, first: str, others: str) -> list[str]:
        return textwrap.wrap(
            printable(sentence),
            min(self._output.width or _WIDTH, _WIDTH),
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _write(self, lines: Iterable[Text], *, apart: bool = False) -> None:
        self._output.lines(lines, apart=apart)
        self._output.flush()


def verdict_table(
    verdicts: Sequence[GroupVerdict], stands: Mapping[str, str], width: int | None
) -> Iterator[Text]:
    """A line for each group: where it stood, and what its consumer got."""
    columns: tuple[Column[GroupVerdict], ...] = (
        Column("GROUP", lambda verdict: verdict.group),
        Column("WHERE IT STOOD", lambda verdict: stands[verdict.group], elastic=True),
        Column("READ", lambda verdict: f"{verdict.count.read:,}", right=True),
        Column("AGAIN", lambda verdict: _counted(verdict.count.reread, "yellow"), right=True),
        Column(
            "ANNOUNCED",
            lambda verdict: f"{verdict.announced:,}" if verdict.moved else None,
            right=True,
        ),
        Column("SKIPPED", lambda verdict: _counted(verdict.count.skipped, "bold red"), right=True),
    )
    return table(columns, verdicts, width)


def ways_table(ways: Sequence[Way], width: int | None) -> Iterator[Text]:
    """A line for each way to translate."""
    columns: tuple[Column[Way], ...] = (
        Column("TARGET OFFSETS", lambda way: way.name, elastic=True),
        Column("READ AGAIN", lambda way: _counted(way.count.reread, "yellow"), right=True),
        Column("SKIPPED", lambda way: _counted(way.count.skipped, "bold red"), right=True),
        Column("NO ANSWER", lambda way: f"{way.silent} of {way.positions}", right=True),
    )
    return table(columns, ways, width)


def _counted(number: int, style: str) -> Cell:
    return Cell(f"{number:,}", style if number else "")
