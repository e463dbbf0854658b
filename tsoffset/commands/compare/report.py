"""A comparison for a person: the table, what there is to say, and the totals."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from rich.text import Text

from tsoffset.commands.compare.flow_comparison import Compared
from tsoffset.commands.compare.judgement import ComparedPair, Verdict
from tsoffset.commands.compare.totals import Totals
from tsoffset.terminal.output import counted
from tsoffset.terminal.tables import Cell, Column, Line, Shape, printable, table, wrapped

_NOTHING = "-"
_MESSAGES_PER_VERDICT = 3
_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.REREAD: "yellow",
    Verdict.UNSAFE: "bold red",
    Verdict.BEYOND: "yellow",
    Verdict.FAILED: "bold red",
}
_TOTALS = ("theirs", "ours", "target")


def comparison_lines(compared: Compared, width: int | None) -> Iterator[Text]:
    """The pairs of a flow as a table, the messages of those that have one, and the totals."""
    yield Text(f"flow {compared.flow}", "bold")
    pairs = compared.pairs
    if pairs:
        yield from table([partial(shape, pairs) for shape in (_full, _named, _grouped)], width)
        yield Text()
        yield from _messages(pairs, width)
    yield Text(f"{compared.flow}: {counted(len(pairs), 'pair')} of a group and a partition", "bold")
    column = max(map(len, _TOTALS))
    for name, words in zip(_TOTALS, Totals.of(pairs).in_words(), strict=True):
        yield from wrapped(f"{name:{column}}  {words}", width, "  ", " " * (column + 4))


# --- the shapes of the table ----------------------------------------------------------------


_GROUP = Column("GROUP", elastic=True)
_SOURCE = Column("SOURCE", elastic=True)
_NAMED = (
    _SOURCE,
    Column("COMMIT", right=True),
    Column("OURS", right=True),
    Column("PRECISION"),
    Column("THEIRS", right=True),
    Column("CHECKPOINT OF", right=True),
    Column("VERDICT"),
    Column("RECORDS", right=True),
    Column("TARGET COMMIT", right=True),
    Column("SET BY"),
)


def _full(pairs: Sequence[ComparedPair]) -> Shape:
    """Every field in a column of its own."""
    columns = (_GROUP, *_NAMED[:2], Column("TARGET", elastic=True), *_NAMED[2:])
    lines = []
    for pair in pairs:
        source, commit, *others = _cells(pair)
        target = _place(pair.target_topic, pair.partition)
        lines.append(Line((_text(pair.group), source, commit, target, *others)))
    return Shape(columns, tuple(lines))


def _named(pairs: Sequence[ComparedPair]) -> Shape:
    """Without the target's name, which the policy gives."""
    columns = (_GROUP, *_NAMED)
    return Shape(columns, tuple(Line((_text(pair.group), *_cells(pair))) for pair in pairs))


def _grouped(pairs: Sequence[ComparedPair]) -> Shape:
    """The group on a line of its own; the records behind the verdict."""
    columns = (*_NAMED[:5], Column("VERDICT"), *_NAMED[-2:])
    lines = []
    for group, members in groupby(pairs, key=lambda pair: pair.group):
        heading: str | None = _NOTHING if group is None else printable(group)
        for pair in members:
            cells = _cells(pair)
            verdict = pair.verdict.value + (f" {pair.records}" if pair.records else "")
            shown = Cell(verdict, _STYLES.get(pair.verdict, ""))
            lines.append(Line((*cells[:5], shown, *cells[-2:]), heading))
            heading = None
    return Shape(columns, tuple(lines))


def _cells(pair: ComparedPair) -> tuple[Cell, ...]:
    """What stands in the columns of `_NAMED`."""
    if pair.ours is None:
        precision = Cell(pair.ours_reason or _NOTHING, "yellow" if pair.ours_reason else "")
    else:
        bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
        precision = Cell(f"{pair.ours_precision}{bound}")
    return (
        _place(pair.source_topic, pair.partition),
        _number(pair.source_offset),
        _number(pair.ours),
        precision,
        _number(pair.theirs),
        _number(pair.theirs_source_offset),
        Cell(pair.verdict.value, _STYLES.get(pair.verdict, "")),
        _number(pair.records),
        _number(pair.target_commit),
        Cell(pair.target_commit_is or _NOTHING),
    )


def _text(text: str | None) -> Cell:
    return Cell(_NOTHING if text is None else printable(text))


def _place(topic: str | None, partition: int | None) -> Cell:
    return Cell(_NOTHING) if topic is None else Cell(printable(f"{topic}-{partition}"))


def _number(number: int | None) -> Cell:
    return Cell(_NOTHING) if number is None else Cell(str(number))


# --- what the messages say ------------------------------------------------------------------


def _messages(pairs: Sequence[ComparedPair], width: int | None) -> Iterator[Text]:
    """Each distinct message once, under its verdict; of many only the first few."""
    found: dict[Verdict, Counter[str]] = {}
    for pair in pairs:
        if pair.message is not None:
            found.setdefault(pair.verdict, Counter())[pair.message] += 1
    for verdict, messages in found.items():
        yield Text(f"{verdict.value} ({counted(messages.total(), 'pair')})", "bold")
        for message in list(messages)[:_MESSAGES_PER_VERDICT]:
            yield from wrapped(printable(message), width)
        if len(messages) > _MESSAGES_PER_VERDICT:
            more = counted(len(messages) - _MESSAGES_PER_VERDICT, "further message")
            yield Text(f"  {more}: --format json shows all", "dim")
    if found:
        yield Text()
