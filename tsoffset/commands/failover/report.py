"""Prints a failover for a person: the groups, their messages, and the next steps."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from tsoffset.commands.failover.verdicts import FailoverVerdict, GroupVerdict
from tsoffset.terminal.next_step import next_step
from tsoffset.terminal.output import by_name, counted
from tsoffset.terminal.report import RowMessage, head, notes, total
from tsoffset.terminal.tables import Cell, Column, table, wrapped

_STYLES = {
    FailoverVerdict.READY: "green",
    FailoverVerdict.BOUNDED: "yellow",
    FailoverVerdict.NOT_READY: "bold red",
    FailoverVerdict.UNVERIFIED: "yellow",
}


def failover_lines(
    flow: str, found: Sequence[GroupVerdict], steps: Sequence[str], config: str, width: int | None
) -> Iterator[Text]:
    """The groups as a table, the messages with a command for each, the summary, and the next steps.
    `config` is the file that commands take."""
    yield head(f"flow {flow}")
    if found:
        with_age = any(one.verdict is FailoverVerdict.UNVERIFIED for one in found)
        yield from table([one for one in _COLUMNS if with_age or one is not _AGE], found, width)
        yield Text()
        messages = (
            RowMessage(
                one.reason or one.verdict,
                one.message,
                next_step(config, flow, one.group, one.reason),
            )
            for one in found
        )
        yield from notes(messages, "group", width)
        yield from total(f"{flow}: {in_words(found)}", width)
    for number, step in enumerate(steps, start=1):
        yield from wrapped(f"{number}. {step}", width, "  ", "     ")


def in_words(found: Sequence[GroupVerdict]) -> str:
    """The number of groups by verdict."""
    counts = Counter(one.verdict for one in found)
    words = [f"{counts[FailoverVerdict.READY]} ready"]
    if bounded := counts[FailoverVerdict.BOUNDED]:
        again = sum(
            one.reread_bound or 0 for one in found if one.verdict is FailoverVerdict.BOUNDED
        )
        words.append(f"{bounded} ready, re-reading up to {counted(again, 'record')}")
    if unverified := counts[FailoverVerdict.UNVERIFIED]:
        words.append(f"{unverified} at their last committed offsets")
    reasons = Counter(one.reason or "" for one in found if one.verdict is FailoverVerdict.NOT_READY)
    words.append(f"{counts[FailoverVerdict.NOT_READY]} not ready{by_name(reasons)}")
    return f"{counted(len(found), 'group')}: {', '.join(words)}"


def _age(one: GroupVerdict) -> str | None:
    return None if one.age_seconds is None else f"{one.age_seconds} s"


_AGE: Column[GroupVerdict] = Column("AGE", _age, right=True)
_COLUMNS: tuple[Column[GroupVerdict], ...] = (
    Column("GROUP", lambda one: one.group, elastic=True),
    Column("VERDICT", lambda one: Cell(one.verdict, _STYLES[one.verdict])),
    Column("RE-READ", lambda one: one.reread_bound, right=True),
    _AGE,
    Column("PARTITIONS", lambda one: one.partitions, right=True, drops=2),
    Column("RESUMES AT", lambda one: one.resumes_at or None, elastic=True, drops=3),
    Column("SOURCE OFFSETS", lambda one: one.source_commits or None, elastic=True, drops=1),
    Column("REASON", lambda one: one.reason),
)
