"""How every record of a round was read, by content."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum, auto

from tests.scenarios.rounds.playing import GoneOver, Played
from tests.scenarios.rounds.stage import Synced
from tsoffset.model import OutcomeKind, Reason, Row


class Fate(StrEnum):
    """How one group read a record.

    All but `GOT`, `PROCESSED` and `MISSED` were read twice: on the source, and on the target.
    """

    PROCESSED = auto()  # on the source only
    GOT = auto()  # on the target only
    MISSED = auto()  # never, or not again though its processing was never committed
    NOT_COMMITTED = auto()  # again, since it was processed, but not committed
    REPEATED = auto()  # again, since the mirror copied it again; its first copy was passed by
    COMMITTED_LATER = auto()  # again, since it was committed after the last sync had begun
    MIRRORED_LATER = auto()  # again, since it was copied after the last sync had begun
    SETTLED = auto()  # again, though committed and mirrored before the last sync


def fates(played: Played) -> Iterator[tuple[GoneOver, int, int, Fate]]:
    """Each record of the round for each group, by partition and source offset."""
    for group in played.groups:
        for partition, logs in played.logs.items():
            for value, offset in logs.written.items():
                first_copy = logs.copies[value][0]
                yield group, partition, offset, _fate(group, partition, value, offset, first_copy)


def _fate(group: GoneOver, partition: int, value: bytes, offset: int, first_copy: int) -> Fate:
    got = group.got[partition]
    committed = group.committed.get(partition, 0)
    if value not in got:
        done = value in group.processed[partition] and offset < committed
        return Fate.PROCESSED if done else Fate.MISSED
    if value not in group.processed[partition]:
        return Fate.GOT
    sync = group.last_sync
    if offset >= committed:
        return Fate.NOT_COMMITTED
    if first_copy < min(got.values()):
        return Fate.REPEATED
    if sync is None or offset >= sync.committed.get((group.group, partition), 0):
        return Fate.COMMITTED_LATER
    if first_copy >= sync.mirrored.get(partition, 0):
        return Fate.MIRRORED_LATER
    return Fate.SETTLED


def settled(played: Played) -> int:
    """How many records were committed and mirrored before the last sync, for all groups: those
    that may not be read again."""
    return sum(
        offset < group.last_sync.committed.get((group.group, partition), 0)
        and logs.copies[value][0] < group.last_sync.mirrored.get(partition, 0)
        for group in played.groups
        if group.last_sync is not None
        for partition, logs in played.logs.items()
        for value, offset in logs.written.items()
    )


def wrong_rows(played: Played) -> Iterator[str]:
    """Of every cycle the rows that failed, that named a reason which cannot be, that would have
    skipped a record, or whose bound was too low: also those that later syncs moved on from."""
    for number, cycle in enumerate(played.cycles):
        for row in cycle.rows:
            for wrong in _wrong(played, row):
                yield f"cycle {number}: {wrong}: {row}"


# Nothing is deleted, recreated, truncated, rewound or stamped by a broker in a round.
_FALSE_ALARMS = frozenset(
    {
        Reason.DIVERGED,
        Reason.EXPIRED,
        Reason.NO_TIMESTAMP,
        Reason.PAST_LOG_END,
        Reason.SEVERAL_SOURCES,
        Reason.SOURCE_REWOUND,
        Reason.TARGET_PAST_LOG_END,
        Reason.TARGET_REWRITES_TIMESTAMPS,
        Reason.UNSUPPORTED_GROUP,
    }
)


def _wrong(played: Played, row: Row) -> Iterator[str]:
    if row.outcome is OutcomeKind.FAILED:
        yield "failed"
    if row.reason in _FALSE_ALARMS:
        yield "a false alarm"
    if row.target_offset is None or row.partition is None or row.source_offset is None:
        return
    logs = played.logs[row.partition]
    if skipped := logs.skipped(row.source_offset, row.target_offset):
        yield f"it would skip {len(skipped)} records"
    again = len(logs.reread(row.source_offset, row.target_offset))
    if row.reread_bound is None or again > row.reread_bound:
        yield f"{again} records would be read again"


def precisions(cycles: Sequence[Synced]) -> Counter[str]:
    """How many rows had which outcome, and which reason or else precision."""
    return Counter(
        f"{row.outcome}/{row.reason or row.precision}" for cycle in cycles for row in cycle.rows
    )
