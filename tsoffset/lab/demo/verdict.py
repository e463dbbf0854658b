"""The result of a failover, judged by content.

The judge knows what each group had processed, the content of both logs in the end, and what its
consumer got; it does not know how tsoffset computed its offsets.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tsoffset.lab.demo.topics import DemoRecord
from tsoffset.model import OutcomeKind, Row


@dataclass(frozen=True, slots=True)
class Count:
    """Records that a consumer got, re-read, and never gets."""

    read: int = 0
    reread: int = 0
    skipped: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(
            self.read + other.read, self.reread + other.reread, self.skipped + other.skipped
        )


@dataclass(frozen=True, slots=True)
class Logs:
    """The content of one partition of the source and of its copy, in the end.

    In a `compacted` topic, a record may be missing from the copy if a newer one has its key.
    """

    source: Sequence[DemoRecord]
    target: Sequence[DemoRecord]
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """The records that a consumer got of one partition from the offset `start` on, and the metadata
    of its first committed offset."""

    start: int
    entries: Sequence[DemoRecord]
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a group continued in one partition.

    `row` is that of the sync, `processed` are the values that the group had processed before,
    `read` is what its consumer got on the target.
    """

    row: Row
    logs: Logs
    processed: AbstractSet[bytes]
    read: Read

    @property
    def moved(self) -> bool:
        """Whether tsoffset is responsible for where it began."""
        return self.row.outcome in (OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED)

    @property
    def stands_at(self) -> int | None:
        committed = self.row.outcome is OutcomeKind.COMMITTED
        return self.row.target_offset if committed else self.row.current_target_offset

    @property
    def count(self) -> Count:
        return judge(self.logs, self.processed, self.read)

    def count_from(self, start: int) -> Count:
        got = [entry for entry in self.logs.target if entry.offset >= start]
        return judge(self.logs, self.processed, Read(start, got))

    @property
    def copied(self) -> int | None:
        """The source's offset; None if the target's log is shorter: then no such commit is
        valid."""
        offset, log = self.row.source_offset, self.logs.target
        end = log[-1].offset + 1 if log else 0
        return offset if offset is not None and offset <= end else None


def judge(logs: Logs, processed: AbstractSet[bytes], read: Read) -> Count:
    """The records that the consumer got, re-reads and never gets.

    A record is lost if it is on the source, was not processed and did not come; in a compacted
    topic, a newer record of its key replaces it. A second copy by the replicator is no re-read
    unless the consumer also got the first copy.
    """
    came = {entry.value for entry in read.entries}
    first_copies: dict[bytes, int] = {}
    for entry in logs.target:
        first_copies.setdefault(entry.value, entry.offset)
    again = [
        value for value in came & processed if first_copies.get(value, read.start) >= read.start
    ]
    known = came | processed
    made_up_for: set[bytes | None] = set()
    skipped = 0
    for entry in reversed(logs.source):
        if entry.value in known:
            if logs.compacted:
                made_up_for.add(entry.key)
        elif entry.key not in made_up_for:
            skipped += 1
    return Count(len(read.entries), len(again), skipped)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of one group.

    `announced` is the sum of the re-read bounds in its rows; `moved` is true if tsoffset is
    responsible for where it began, in all its partitions. `faults` has a sentence for each broken
    promise.
    """

    group: str
    count: Count
    announced: int
    moved: bool
    faults: tuple[str, ...] = ()


def group_verdict(group: str, resumed: Sequence[Resumed], metadata: str = "") -> GroupResult:
    """Judge one group by all its partitions; its commits on the source carry `metadata`."""
    count = sum((one.count for one in resumed), Count())
    ours = [one for one in resumed if one.moved]
    announced = sum(one.row.reread_bound or 0 for one in ours)
    moved = len(ours) == len(resumed)
    faults = []
    if count.skipped:
        faults.append(f"{group} skipped {in_words(count.skipped)}")
    if moved and count.reread > announced:
        faults.append(
            f"{group} re-read {in_words(count.reread)}, more than its bound of {announced:,}"
        )
    for one in ours:
        partition = f"{one.row.source_topic}-{one.row.partition}"
        if one.read.start != one.stands_at:
            faults.append(f"{group} did not start {partition} at the offset in its row")
        if one.read.metadata != metadata:
            faults.append(f"{group} has lost its commit's metadata on {partition}")
    return GroupResult(group, count, announced, moved, tuple(faults))


def conclusion(verdicts: Sequence[GroupResult], cluster: str) -> tuple[int, list[str]]:
    """The exit status and the closing sentences, for consumers that resumed on `cluster`."""
    faults = [fault for verdict in verdicts for fault in verdict.faults]
    total = sum((verdict.count for verdict in verdicts), Count())
    if faults:
        wrong = "The result differs from the table"
        if total.skipped:
            wrong = f"{in_words(total.skipped)} skipped, which must never happen"
        return 1, [f"{wrong}; please report it.", *(f"{fault}." for fault in faults)]
    moved = [verdict for verdict in verdicts if verdict.moved]
    again = sum(verdict.count.reread for verdict in moved)
    announced = sum(verdict.announced for verdict in moved)
    return 0, [
        f"No record was skipped. {len(verdicts)} groups resumed on {cluster} and read "
        f"{in_words(total.read)}; the {len(moved)} groups whose offsets tsoffset committed re-read "
        f"{again:,} of them (the table promised at most {announced:,})."
    ]


@dataclass(frozen=True, slots=True)
class ResumeWay:
    """The result of one way to find target offsets; `silent` counts source offsets without an
    answer."""

    name: str
    count: Count
    positions: int
    silent: int


def way(name: str, resumed: Sequence[Resumed], start: Callable[[Resumed], int | None]) -> ResumeWay:
    """The result if groups had begun at `start`; None is no answer."""
    found = [(one, start(one)) for one in resumed]
    counts = [one.count_from(at) for one, at in found if at is not None]
    return ResumeWay(name, sum(counts, Count()), len(found), len(found) - len(counts))


def in_words(number: int) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} record" if number == 1 else f"{number:,} records"
