"""Judges by the rows of a cycle whether each group can move to the target now (pure)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tsoffset.model import OutcomeKind, Reason, Row, TopicPartition
from tsoffset.terminal.output import IN_PLACE


class FailoverVerdict(StrEnum):
    """Whether a group can move to the target."""

    READY = "ready"
    """The group resumes at its first unread record in each partition."""
    BOUNDED = "bounded"
    """The group is ready, and re-reads at most `reread_bound` records."""
    NOT_READY = "not_ready"
    """`reason` and `message` say why."""
    UNVERIFIED = "unverified"
    """The source is unreachable: the group resumes at its last committed offsets, of the time
    `as_of`."""


SOURCE_ACTIVE = "SOURCE_ACTIVE"
"""The reason of a group that has members on the source."""
UNPROVEN = "UNPROVEN"
"""The reason of a translation by `translation.proof = timestamps`."""


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """One group of the flow; `group` is None for a failure before groups were known.

    `partitions` counts those with a committed offset. `reread_bound` is the most records that are
    re-read, None if unknown. `resumes_at` are the target offsets from which consumers resume now,
    `source_commits` the source offsets that these translate, as words `topic-partition:offset`.
    `as_of` is when they were last known correct (UTC), `age_seconds` how long ago that is.
    """

    flow: str
    group: str | None
    verdict: FailoverVerdict
    reread_bound: int | None
    partitions: int
    resumes_at: str
    source_commits: str
    as_of: str | None
    age_seconds: int | None
    reason: str | None = None
    message: str | None = None


def verdicts(
    flow: str, rows: Iterable[Row], source_active: Collection[str], as_of: str
) -> list[GroupVerdict]:
    """The verdicts on the groups of a cycle's rows. `source_active` are groups that may have had
    members on the source before the cycle: its rows lack what they commit later."""
    by_group: dict[str | None, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    return [
        _verdict(flow, group, of_group, group in source_active, as_of)
        for group, of_group in by_group.items()
    ]


def words(places: Iterable[tuple[TopicPartition, int | None]]) -> str:
    """Partitions with their offsets as one text, without those that have no offset."""
    return " ".join(f"{place}:{offset}" for place, offset in places if offset is not None)


def _verdict(
    flow: str, group: str | None, rows: Sequence[Row], source_active: bool, as_of: str
) -> GroupVerdict:
    obstacles = dict(_obstacles(rows, source_active))
    bounds = [row.reread_bound for row in rows if row.reread_bound is not None]
    bound = sum(bounds) if len(bounds) == len(rows) else None
    verdict = FailoverVerdict.BOUNDED if bound else FailoverVerdict.READY
    return GroupVerdict(
        flow,
        group,
        FailoverVerdict.NOT_READY if obstacles else verdict,
        bound,
        sum(row.partition is not None for row in rows),
        words(
            (TopicPartition(row.target_topic, row.partition), _resumes_at(row))
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


def _resumes_at(row: Row) -> int | None:
    """The target offset after the cycle, or for a dry run after a failover."""
    if row.outcome in (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT):
        return row.target_offset
    return row.current_target_offset


def _obstacles(rows: Sequence[Row], source_active: bool) -> Iterator[tuple[str, str | None]]:
    """What keeps a group from moving: reasons, each with a sentence."""
    if source_active:
        yield (
            SOURCE_ACTIVE,
            "it has active consumers on the source, or a broker did not say whether it has;"
            " offsets that they commit from now on do not reach the target: stop them, and run"
            " this command again",
        )
    for row in rows:
        if row.outcome not in IN_PLACE:
            yield row.reason or row.outcome, _explained(row)
        elif row.reread_bound is None:
            yield (
                UNPROVEN,
                "its target offset is not proven, so records may be skipped: remove"
                " translation.proof = timestamps",
            )


def _explained(row: Row) -> str | None:
    if row.reason not in (Reason.TARGET_AHEAD, Reason.SOURCE_REWOUND):
        return row.message
    ahead = (row.current_target_offset or 0) - (row.target_offset or 0)
    return (
        "its committed offset on the target,"
        f" {row.target_topic}-{row.partition}:{row.current_target_offset}, is {ahead} past what it"
        " has read on the source: if its consumers have read these records on the target, nothing"
        " is to do; if not, move it back with `tsoffset sync --allow-rewind` for this group only"
    )
