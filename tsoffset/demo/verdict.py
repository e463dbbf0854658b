"""What a failover cost, judged by content (pure).

The judge knows what each group had processed, what lies in both logs in the end, and what
its consumer got; it does not know how tsoffset came to its offsets.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tsoffset.demo.logs import Entry, Place
from tsoffset.model import OutcomeKind, Reason, Row

_MOVED = (OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Count:
    """Records that a consumer got, got again, and never gets."""

    read: int = 0
    reread: int = 0
    skipped: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(
            self.read + other.read, self.reread + other.reread, self.skipped + other.skipped
        )


@dataclass(frozen=True, slots=True)
class Logs:
    """What lies in one partition of the source and in its copy, in the end.

    In a `compacted` topic a record may be gone from the copy for a newer one of its key.
    """

    source: Sequence[Entry]
    target: Sequence[Entry]
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a group went on in one partition.

    `processed` are the values that it had done before, `start` is the target offset at which
    its consumer began, `got` what it got from there on. `metadata` is that of the commit there.
    """

    processed: AbstractSet[bytes]
    start: int
    got: Sequence[Entry]
    metadata: str = ""


def judge(logs: Logs, resumed: Resumed) -> Count:
    """What the consumer got, what of it the group had processed, and what is lost to it.

    Lost is a record that lies on the source, was not processed and did not come; in a
    compacted topic a newer record of its key makes up for it. A copy that the replicator
    made by repeating itself is no re-read unless the first copy was got too.
    """
    came = {entry.value for entry in resumed.got}
    first_copies: dict[bytes, int] = {}
    for entry in logs.target:
        first_copies.setdefault(entry.value, entry.offset)
    again = [
        value
        for value in came & resumed.processed
        if first_copies.get(value, resumed.start) >= resumed.start
    ]
    known = came | resumed.processed
    made_up_for: set[bytes | None] = set()
    skipped = 0
    for entry in reversed(logs.source):
        if entry.value in known:
            if logs.compacted:
                made_up_for.add(entry.key)
        elif entry.key not in made_up_for:
            skipped += 1
    return Count(len(resumed.got), len(again), skipped)


def imagined(logs: Logs, processed: AbstractSet[bytes], start: int) -> Count:
    """What the group would get if its consumer began at `start` on the target."""
    got = [entry for entry in logs.target if entry.offset >= start]
    return judge(logs, Resumed(processed, start, got))


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """What became of one group.

    `announced` is the most re-reads that its rows had stated; `moved` is true where tsoffset
    answers for where it began, in all its partitions. `misplaced` are the partitions in which
    the consumer began elsewhere than its row says, `bare` those where the source's commit
    metadata is missing.
    """

    group: str
    count: Count
    announced: int
    moved: bool
    misplaced: tuple[Place, ...] = ()
    bare: tuple[Place, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """A sentence for each promise that was not kept."""
        found = []
        if self.count.skipped:
            found.append(f"{self.group} never gets {in_words(self.count.skipped)}")
        if self.moved and self.count.reread > self.announced:
            found.append(
                f"{self.group} read {in_words(self.count.reread)} again, and at most "
                f"{self.announced:,} had been announced"
            )
        for topic, partition in self.misplaced:
            found.append(f"{self.group} did not begin {topic}-{partition} where its row says")
        for topic, partition in self.bare:
            found.append(f"{self.group} has lost its commit's metadata on {topic}-{partition}")
        return tuple(found)


def group_verdict(
    group: str,
    rows: Sequence[Row],
    logs: Mapping[Place, Logs],
    resumed: Mapping[Place, Resumed],
    metadata: str = "",
) -> GroupVerdict:
    """Judge one group by its rows of the sync and its way on in each partition.

    `metadata` is what its commits on the source carry.
    """
    count = Count()
    announced = 0
    misplaced, bare = [], []
    for row in rows:
        assert row.source_topic is not None
        assert row.partition is not None
        place = (row.source_topic, row.partition)
        count += judge(logs[place], resumed[place])
        if row.outcome in _MOVED:
            announced += row.reread_bound or 0
            at = row.target_offset
            if row.outcome is OutcomeKind.UNCHANGED:
                at = row.current_target_offset
            if at != resumed[place].start:
                misplaced.append(place)
            if row.outcome is OutcomeKind.COMMITTED and resumed[place].metadata != metadata:
                bare.append(place)
    moved = all(row.outcome in _MOVED for row in rows)
    return GroupVerdict(group, count, announced, moved, tuple(misplaced), tuple(bare))


# --- other ways to translate, on the same logs ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Way:
    """What a way to find target offsets comes to; `silent` counts positions without answer."""

    name: str
    count: Count
    positions: int
    silent: int


def way(
    name: str,
    starts: Mapping[tuple[str, Place], int | None],
    logs: Mapping[Place, Logs],
    processed: Mapping[tuple[str, Place], AbstractSet[bytes]],
) -> Way:
    """What groups would get that began at `starts`, by group and partition; None is no answer."""
    count = Count()
    for (group, place), start in starts.items():
        if start is not None:
            count += imagined(logs[place], processed[group, place], start)
    silent = sum(start is None for start in starts.values())
    return Way(name, count, len(starts), silent)


# --- what may surprise ------------------------------------------------------------------------


def surprises(
    rows: Sequence[Row],
    verdicts: Mapping[str, GroupVerdict],
    at_translation: Mapping[str, Count],
    logs: Mapping[Place, Logs],
) -> list[str]:
    """One sentence for each thing that a reader of the tables may not expect.

    `at_translation` says of groups that were left alone what they would have got at the
    offsets that their rows translate to.
    """
    found: dict[str, str] = {}
    for group, verdict in verdicts.items():
        own = [row for row in rows if row.group == group]
        for sentence in (
            *_left_alone(group, own, verdict, at_translation.get(group)),
            *_inexact(group, own, verdict),
            *_vanished(group, own, logs),
        ):
            found.setdefault(sentence, group)
    return list(found)


def _left_alone(
    group: str, rows: Sequence[Row], verdict: GroupVerdict, at_translation: Count | None
) -> list[str]:
    reasons = {row.reason for row in rows}
    said = []
    if Reason.GROUP_ACTIVE in reasons:
        sentence = (
            f"{group} was not moved, since it had a consumer on the target, which moves its "
            f"offsets itself: it resumed from its own and read {in_words(verdict.count.reread)} "
            "again"
        )
        if at_translation is not None:
            sentence += (
                f"; from the offsets in the table it would have been {at_translation.reread:,}"
            )
        said.append(f"{sentence}.")
    if Reason.TARGET_AHEAD in reasons:
        ahead = sum(
            (row.current_target_offset or 0) - (row.target_offset or 0)
            for row in rows
            if row.reason is Reason.TARGET_AHEAD
        )
        said.append(
            f"{group} stands {ahead:,} offsets further on the target than on the source, for it "
            "has read there already: no group is moved backwards."
        )
    if Reason.EXPIRED in reasons:
        said.append(
            f"{group} had stopped at records that the source has deleted since, so there is "
            "nothing to translate: on either cluster its consumers begin by their "
            "auto.offset.reset (here earliest, and it gets all that is left)."
        )
    for reason in (Reason.NO_TIMESTAMP, Reason.NOT_MIRRORED, Reason.NO_PROOF):
        if reason not in reasons:
            continue
        number = sum(row.reason is reason for row in rows)
        said.append(
            f"{group} got no offset in {number} of {len(rows)} partitions ({reason}, see above), "
            f"and began there by its auto.offset.reset: it read {in_words(verdict.count.reread)} "
            "again."
        )
    return said


def _inexact(group: str, rows: Sequence[Row], verdict: GroupVerdict) -> list[str]:
    bound = [row for row in rows if row.outcome in _MOVED and row.reread_bound]
    if not bound:
        return []
    return [
        f"{group} could not be placed exactly in {len(bound)} of {len(rows)} partitions, and "
        f"the table says so: at most {in_words(verdict.announced)} again, and it was "
        f"{verdict.count.reread:,}."
    ]


def _vanished(group: str, rows: Sequence[Row], logs: Mapping[Place, Logs]) -> list[str]:
    """Groups that stand exactly although the record they stand at is not there."""
    gone = {False: 0, True: 0}
    for row in rows:
        if row.outcome not in _MOVED or row.source_topic is None or row.partition is None:
            continue
        log = logs[row.source_topic, row.partition]
        offsets = {entry.offset for entry in log.source}
        if row.source_offset not in offsets and any(o > (row.source_offset or 0) for o in offsets):
            gone[log.compacted] += 1
    said = []
    if gone[True]:
        said.append(
            f"{group} had stopped at records that compaction has removed since: it went on with "
            "the next ones that are left."
        )
    if gone[False]:
        said.append(
            f"{group} stood at offsets that hold no record (the end of a transaction, an aborted "
            "one): these take offsets on the source and are not copied, and it went on with the "
            "next record."
        )
    return said


def in_words(number: int) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} record" if number == 1 else f"{number:,} records"
