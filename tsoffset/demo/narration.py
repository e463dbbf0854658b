"""What the demo says: numbered steps on standard output."""

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from tsoffset.demo.verdict import GroupVerdict, Way
from tsoffset.terminal.output import Output
from tsoffset.terminal.tables import Cell, Column, Line, Shape, printable, table, wrapped

_INDENT = "   "
_WIDTH = 100


class Narrator:
    """Writes for a person; a step at a time, so that it can be followed through a pipe too."""

    def __init__(self, output: Output) -> None:
        """Write to `output`."""
        self._output = output
        self._steps = 0

    def opening(self, title: str, sentence: str) -> None:
        """What this is."""
        self.lines([Text(title, "bold"), *self._wrapped(sentence, "")], apart=False)

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self.lines([Text(f"{self._steps}. {title}", "bold")])

    def say(self, *sentences: str, style: str = "", apart: bool = False) -> None:
        """Sentences, each from a new line on."""
        for sentence in sentences:
            lines = self._wrapped(sentence, _INDENT)
            self.lines((Text(line.plain, style) for line in lines), apart=apart)

    def quote(self, lines: Iterable[str]) -> None:
        """Lines of a file, or commands: whole, so that they can be copied."""
        self.lines((Text(f"{_INDENT}  {printable(line)}", "cyan") for line in lines), apart=False)

    def items(self, sentences: Iterable[str]) -> None:
        """Sentences with a dash before each."""
        for sentence in sentences:
            self.lines(self._wrapped(sentence, f"{_INDENT}- ", f"{_INDENT}  "), apart=False)

    def lines(self, lines: Iterable[Text], *, apart: bool = True) -> None:
        """Lines as they are, apart from what stands before."""
        self._output.lines(lines, apart=apart)
        self._output.flush()

    def shape(self, shape: Shape) -> None:
        """A table, set in like the text around it."""
        width = None if self.width is None else self.width - len(_INDENT)
        self.lines(Text(_INDENT).append_text(line) for line in table([lambda: shape], width))

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None for a file or a pipe."""
        return self._output.width

    def _wrapped(self, sentence: str, first: str, others: str | None = None) -> Iterable[Text]:
        return wrapped(printable(sentence), min(self.width or _WIDTH, _WIDTH), first, others)


def verdict_table(verdicts: Sequence[GroupVerdict], stands: Mapping[str, str]) -> Shape:
    """A line for each group: where it stood, and what its consumer got."""
    columns = (
        Column("GROUP"),
        Column("WHERE IT STOOD", elastic=True),
        Column("READ", right=True),
        Column("AGAIN", right=True),
        Column("ANNOUNCED", right=True),
        Column("SKIPPED", right=True),
    )
    return Shape(
        columns,
        tuple(
            Line(
                (
                    Cell(verdict.group),
                    Cell(stands[verdict.group]),
                    Cell(f"{verdict.count.read:,}"),
                    _counted(verdict.count.reread, "yellow"),
                    Cell(f"{verdict.announced:,}" if verdict.moved else "-"),
                    _counted(verdict.count.skipped, "bold red"),
                )
            )
            for verdict in verdicts
        ),
    )


def ways_table(ways: Sequence[Way]) -> Shape:
    """A line for each way to translate."""
    columns = (
        Column("TARGET OFFSETS", elastic=True),
        Column("READ AGAIN", right=True),
        Column("SKIPPED", right=True),
        Column("NO ANSWER", right=True),
    )
    return Shape(
        columns,
        tuple(
            Line(
                (
                    Cell(way.name),
                    _counted(way.count.reread, "yellow"),
                    _counted(way.count.skipped, "bold red"),
                    Cell(f"{way.silent} of {way.positions}"),
                )
            )
            for way in ways
        ),
    )


def _counted(number: int, style: str) -> Cell:
    return Cell(f"{number:,}", style if number else "")
