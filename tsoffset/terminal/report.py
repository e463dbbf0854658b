"""The parts of reports beside tables: headings, sentences beside names, messages, totals."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from tsoffset.printable import printable
from tsoffset.terminal.next_step import SuggestedCommand
from tsoffset.terminal.output import plural
from tsoffset.terminal.tables import elide, wrap

_MESSAGES_PER_NAME = 3
_LONG_NAME = 48
# The least width for a column of sentences.
_ROOM = 50


def head(text: str) -> Text:
    return Text(printable(text), "bold")


def total(text: str, width: int | None) -> Iterator[Text]:
    return wrap(printable(text), width, "", "  ", style="bold")


class RowMessage(NamedTuple):
    name: str
    message: str | None
    step: SuggestedCommand | None = None


def notes(messages: Iterable[RowMessage], noun: str, width: int | None) -> Iterator[Text]:
    """The messages of a table's rows by heading: each distinct one once, with the command of its
    first row, and only the first few. `noun` is what a row is called."""
    found: dict[str, Counter[str]] = {}
    steps: dict[tuple[str, str], SuggestedCommand | None] = {}
    for name, message, step in messages:
        if message is not None:
            found.setdefault(name, Counter())[message] += 1
            steps.setdefault((name, message), step)
    for name, counts in found.items():
        yield head(f"{name} ({plural(counts.total(), noun)})")
        shown = list(counts.items())[:_MESSAGES_PER_NAME]
        for at, (message, number) in enumerate(shown, start=1):
            times = f" ({plural(number, noun)})" if number > 1 and len(counts) > 1 else ""
            yield from wrap(f"{printable(message)}{times}", width)
            step = steps[name, message]
            following = {steps[name, other] for other, _ in shown[at : at + 1]}
            # The next message of a group may have the same command.
            if step is not None and step not in following:
                # Not wrapped, so that it can be pasted.
                yield Text(f"    {step.when}: {printable(step.command)}")
        if len(counts) > _MESSAGES_PER_NAME:
            more = plural(len(counts) - _MESSAGES_PER_NAME, "more message")
            yield Text(f"  {more}; see them all with --format json", "dim")
    if found:
        yield Text()


@dataclass(frozen=True, slots=True)
class Item:
    """A name with sentences about it, after a `label`; `style` is that of the sentences."""

    label: Text
    name: str
    sentences: Sequence[str]
    style: str = ""


def items(
    members: Sequence[Item], width: int | None, *, below: int, arrow: str = ""
) -> Iterator[Text]:
    """The items, with their sentences in a second column; a terminal shows long names without their
    middle. If that column would be too narrow, the sentences are below the name, indented by
    `below` and after the `arrow`; a single sentence that fits stays on the name's line."""
    longest = sys.maxsize if width is None else _LONG_NAME
    heads = [Text.assemble(one.label, elide(printable(one.name), longest)) for one in members]
    column = max((head.cell_len for head in heads), default=0) + 2
    beside = width is None or width - column >= _ROOM
    for one, short in zip(members, heads, strict=True):
        if beside:
            lines = _lines(one, width, " " * column)
            gap = " " * (column - short.cell_len)
            yield Text.assemble(short, gap, lines.pop(0)[column:])
        else:
            name = Text.assemble(one.label, printable(one.name))
            joined = Text.assemble(name, f" {arrow} ", (printable(one.sentences[0]), one.style))
            if len(one.sentences) == 1 and joined.cell_len <= (width or 0):
                yield joined
                continue
            yield name
            lines = _lines(one, width, " " * below, arrow)
        yield from lines


def _lines(one: Item, width: int | None, indent: str, arrow: str = "") -> list[Text]:
    lead = f"{arrow} " if arrow else ""
    hanging = indent + " " * len(lead)
    return [
        line
        for sentence in one.sentences
        for line in wrap(lead + printable(sentence), width, indent, hanging, style=one.style)
    ]
