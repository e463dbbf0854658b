"""The parts that reports have beside tables: heads, sentences beside names, notes, totals."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from tsoffset.printable import printable
from tsoffset.terminal.next_step import SuggestedCommand
from tsoffset.terminal.output import counted
from tsoffset.terminal.tables import elided, wrapped

_MESSAGES_PER_NAME = 3
_LONG_NAME = 48
# Sentences stand in a column of their own only where it has this much room.
_ROOM = 50


def head(text: str) -> Text:
    """What a part of a report is about."""
    return Text(printable(text), "bold")


def total(text: str, width: int | None) -> Iterator[Text]:
    """What all of it comes to."""
    return wrapped(printable(text), width, "", "  ", style="bold")


class RowMessage(NamedTuple):
    """What is said of a row: under which name, and what to do."""

    name: str
    message: str | None
    step: SuggestedCommand | None = None


def notes(said: Iterable[RowMessage], noun: str, width: int | None) -> Iterator[Text]:
    """What is said of the rows of a table, by name: each distinct message once, with the next step
    of its first row, of many only the first few. `noun` is what a row is called."""
    found: dict[str, Counter[str]] = {}
    steps: dict[tuple[str, str], SuggestedCommand | None] = {}
    for name, message, step in said:
        if message is not None:
            found.setdefault(name, Counter())[message] += 1
            steps.setdefault((name, message), step)
    for name, messages in found.items():
        yield head(f"{name} ({counted(messages.total(), noun)})")
        for message, number in list(messages.items())[:_MESSAGES_PER_NAME]:
            times = f" ({counted(number, noun)})" if number > 1 and len(messages) > 1 else ""
            yield from wrapped(f"{printable(message)}{times}", width)
            if (step := steps[name, message]) is not None:
                # Whole, so that it can be pasted.
                yield Text(f"    {step.when}: {printable(step.command)}")
        if len(messages) > _MESSAGES_PER_NAME:
            more = counted(len(messages) - _MESSAGES_PER_NAME, "more message")
            yield Text(f"  {more}; see them all with --format json", "dim")
    if found:
        yield Text()


@dataclass(frozen=True, slots=True)
class Item:
    """A name with sentences about it; `label` stands before it, `style` is the sentences'."""

    label: Text
    name: str
    sentences: Sequence[str]
    style: str = ""


def items(
    members: Sequence[Item], width: int | None, *, below: int, arrow: str = ""
) -> Iterator[Text]:
    """The items, their sentences in a column of their own and, on a terminal, long names without
    their middle. Where the column would be narrow, a single sentence stands behind its name if
    it fits there, and all else below it, set in by `below`; `arrow` leads to both."""
    longest = sys.maxsize if width is None else _LONG_NAME
    heads = [Text.assemble(one.label, elided(printable(one.name), longest)) for one in members]
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
        for line in wrapped(lead + printable(sentence), width, indent, hanging, style=one.style)
    ]
