"""Judges by the rows of a cycle whether each group can move to the target now, and prints the
verdicts for a person (pure)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.text import Text

from tsoffset.group_sync.rows import rows_table
from tsoffset.model import OutcomeKind, Reason, Row, TopicPartition
from tsoffset.terminal.next_step import SuggestedCommand
from tsoffset.terminal.output import IN_PLACE, by_name, plural
from tsoffset.terminal.report import RowMessage, head, notes, total
from tsoffset.terminal.row_columns import reread_of
from tsoffset.terminal.tables import Cell, Column, table, wrap


class FailoverVerdict(StrEnum):
    READY = "ready"
    """The group resumes at its first unread record in each partition."""
    BOUNDED = "bounded"
    """The group is ready, and re-reads at most `reread_bound` records."""
    NOT_READY = "not_ready"
    """`reason` and `message` say why."""
    UNVERIFIED = "unverified"
    """The source is unreachable: the group resumes at its last committed offsets, of the time
    `as_of`."""


_MOVED = (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT)
SOURCE_ACTIVE = "SOURCE_ACTIVE"
"""The reason of a group that has members on the source."""
UNPROVEN = "UNPROVEN"
"""The reason of a translation by `translation.proof = timestamps`."""


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """One group of the flow; `group` is None for a failure before groups were known.
    docs/commands.md describes the fields."""

    flow: str
    group: str | None
    verdict: FailoverVerdict
    reread_bound: int | None = None
    partitions: int = 0
    resumes_at: str = ""
    source_commits: str = ""
    as_of: str | None = None
    age_seconds: int | None = None
    reason: str | None = None
    message: str | None = None


def verdicts(
    flow: str, rows: Sequence[Row], source_active: Collection[str], as_of: str
) -> list[GroupVerdict]:
    """The verdicts on the groups of a cycle's rows. `source_active` are groups that may have had
    members on the source before the cycle: the rows lack what these members commit later."""
    by_group: dict[str | None, list[tuple[Row, int | None]]] = {}
    # `after_sync`: a dry run reports the re-reads that remain after its failover.
    again = reread_of(rows_table(rows), after_sync=True).to_pylist()
    for row, bound in zip(rows, again, strict=True):
        by_group.setdefault(row.group, []).append((row, bound))
    return [
        _verdict(flow, group, of_group, group in source_active, as_of)
        for group, of_group in by_group.items()
    ]


def words(partitions: Iterable[tuple[TopicPartition, int | None]]) -> str:
    """Partitions with their offsets as one text, without those that have no offset."""
    return " ".join(
        f"{partition}:{offset}" for partition, offset in partitions if offset is not None
    )


def _verdict(
    flow: str,
    group: str | None,
    found: Sequence[tuple[Row, int | None]],
    source_active: bool,
    as_of: str,
) -> GroupVerdict:
    """`found` has the group's rows, each with the most records that are re-read."""
    rows = [row for row, _ in found]
    obstacles = dict(_obstacles(rows, source_active))
    known = [bound for _, bound in found if bound is not None]
    bound = sum(known) if len(known) == len(rows) else None
    verdict = FailoverVerdict.BOUNDED if bound else FailoverVerdict.READY
    return GroupVerdict(
        flow,
        group,
        FailoverVerdict.NOT_READY if obstacles else verdict,
        bound,
        sum(row.partition is not None for row in rows),
        words(
            # After the cycle, or for a dry run after a failover.
            (
                TopicPartition(row.target_topic, row.partition),
                row.target_offset if row.outcome in _MOVED else row.current_target_offset,
            )
            for row in rows
            if row.target_topic is not None and row.partition is not None
        ),
        words(
            (TopicPartition(row.source_topic, row.partition), row.source_offset)
            for row in rows
            if row.source_topic is not None and row.partition is not None
        ),
        as_of,
        0,
        " ".join(obstacles) or None,
        next(iter(obstacles.values()), None),
    )


def _obstacles(rows: Sequence[Row], source_active: bool) -> Iterator[tuple[str, str | None]]:
    if source_active:
        yield (
            SOURCE_ACTIVE,
            "it has active consumers on the source, or a broker did not say whether it has;"
            " offsets that they commit from now on do not reach the target: stop them, and run"
            " this command again",
        )
    for row in rows:
        if row.outcome not in IN_PLACE:
            yield row.reason or row.outcome, _explain(row)
        elif row.reread_bound is None:
            yield (
                UNPROVEN,
                "its target offset is not proven, so records may be skipped: remove"
                " translation.proof = timestamps",
            )


def _explain(row: Row) -> str | None:
    if row.reason not in (Reason.TARGET_AHEAD, Reason.SOURCE_REWOUND):
        return row.message
    ahead = (row.current_target_offset or 0) - (row.target_offset or 0)
    return (
        "its committed offset on the target,"
        f" {row.target_topic}-{row.partition}:{row.current_target_offset}, is {ahead} past what it"
        " has read on the source: if its consumers have read these records on the target, there is"
        " nothing to do; if not, move it back with `tsoffset sync --allow-rewind` for this group"
        " only"
    )


_STYLES = {
    FailoverVerdict.READY: "green",
    FailoverVerdict.BOUNDED: "yellow",
    FailoverVerdict.NOT_READY: "bold red",
    FailoverVerdict.UNVERIFIED: "yellow",
}


def failover_lines(
    flow: str,
    found: Sequence[GroupVerdict],
    steps: Sequence[str],
    command_for: Callable[[GroupVerdict], SuggestedCommand | None],
    width: int | None,
) -> Iterator[Text]:
    """The groups as a table, the messages with a command for each, the summary, and the next
    steps."""
    yield head(f"flow {flow}")
    if found:
        with_age = any(one.verdict is FailoverVerdict.UNVERIFIED for one in found)
        yield from table([one for one in _COLUMNS if with_age or one is not _AGE], found, width)
        yield Text()
        messages = (
            RowMessage(one.reason or one.verdict, one.message, command_for(one)) for one in found
        )
        yield from notes(messages, "group", width)
        yield from total(f"{flow}: {in_words(found)}", width)
    for number, step in enumerate(steps, start=1):
        yield from wrap(f"{number}. {step}", width, "  ", "     ")


def in_words(found: Sequence[GroupVerdict]) -> str:
    counts = Counter(one.verdict for one in found)
    words = [f"{counts[FailoverVerdict.READY]} ready"]
    if bounded := counts[FailoverVerdict.BOUNDED]:
        again = sum(
            one.reread_bound or 0 for one in found if one.verdict is FailoverVerdict.BOUNDED
        )
        words.append(f"{bounded} ready, re-reading up to {plural(again, 'record')}")
    if unverified := counts[FailoverVerdict.UNVERIFIED]:
        words.append(f"{unverified} at their last committed offsets")
    reasons = Counter(one.reason or "" for one in found if one.verdict is FailoverVerdict.NOT_READY)
    words.append(f"{counts[FailoverVerdict.NOT_READY]} not ready{by_name(reasons)}")
    return f"{plural(len(found), 'group')}: {', '.join(words)}"


_AGE: Column[GroupVerdict] = Column(
    "AGE", lambda one: None if one.age_seconds is None else f"{one.age_seconds} s", right=True
)
_COLUMNS: tuple[Column[GroupVerdict], ...] = (
    Column("GROUP", lambda one: one.group, elastic=True),
    Column("VERDICT", lambda one: Cell(one.verdict, _STYLES[one.verdict])),
    Column("RE-READ", lambda one: one.reread_bound, right=True, drops=4),
    _AGE,
    Column("PARTITIONS", lambda one: one.partitions, right=True, drops=2),
    Column("RESUMES AT", lambda one: one.resumes_at or None, elastic=True, drops=3),
    Column("SOURCE OFFSETS", lambda one: one.source_commits or None, elastic=True, drops=1),
    Column("REASON", lambda one: one.reason),
)
