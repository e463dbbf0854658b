"""The twin test: whether an equal record can be the image of another source record.

An earlier equal record costs re-reads, never safety. A later one whose own copy outlived the
first one's is dangerous: what lies between would be skipped (docs/design.md section 1).
"""

from collections.abc import Generator, Sequence

from tsoffset.equals import Equals
from tsoffset.evidence import Answer, Edge, Question, Run
from tsoffset.model import Side, TimedOffset
from tsoffset.records import Record

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# Target records before a copy that are looked at until the source is seen to have one.
NEIGHBOURS = 3

# How far back records that are equal on both sides are compared, one by one; and where the
# distance to a known pair says the same.
LONGEST_STRETCH = 16
LONGEST_STRETCH_BY_A_PAIR = 2


class Twins:
    """Tells equal records apart on behalf of one position."""

    def __init__(self, equals: Equals) -> None:
        self.equals = equals
        self.ask = equals.ask
        self.evidence = equals.evidence

    def unmistakable(
        self, record: Record, copy: Record, *, among: Sequence[int] | None = None
    ) -> Generator[Question, Answer, bool]:
        """True where no later source record than `record` can be what `copy` is of.

        The run of the timestamp is read to its end on the right. A record out of order may
        have a twin far away: it counts only if a direct neighbour is equal on both sides.
        `among` are known equal records that will do as well.
        """
        if self.evidence.by_header:
            return True
        if record.timestamp_ms is None or (yield from self._run_end(record)) is None:
            return False
        source, target = self.evidence.source, self.evidence.target
        equals = source.equals(source.identity(record))
        if equals[-1] > (record.offset if among is None else among[-1]):
            return False
        before = yield from self.ask.previous_data(SOURCE, record.offset)
        after = source.next_known(record.offset + 1)
        # What lies before the copy is older (it is the answer of the time lookup) or known.
        copy_before = target.previous_known(copy.offset)
        copy_after = yield from self.ask.next_data(TARGET, copy.offset + 1)
        if (
            _in_order(before, record, after)
            and _in_order(copy_before, copy, copy_after)
            and not self._begins_later(record, copy)
            and not (record.key is None and record.value is None)
        ):
            return True
        return self.equals.equal(after, copy_after) or (yield from self._same_before(record, copy))

    def _begins_later(self, record: Record, copy: Record) -> bool:
        """True where nothing is left on a trimmed target that the copy could be out of order
        with, while the source has records before its own."""
        source, target = self.evidence.source, self.evidence.target
        return (
            target.covered_from(copy.offset) <= target.start
            and target.previous_known(copy.offset) is None
            and not (
                source.covered_from(record.offset) <= source.start
                and source.previous_known(record.offset) is None
            )
        )

    def _same_before(self, record: Record, copy: Record) -> Generator[Question, Answer, bool]:
        before = yield from self.ask.previous_data(SOURCE, record.offset)
        copy_before = yield from self.ask.previous_data(TARGET, copy.offset)
        return self.equals.equal(before, copy_before)

    def in_place(
        self, record: Record, copy: Record, first: TimedOffset | None
    ) -> Generator[Question, Answer, bool]:
        """False where a later source record is seen before the copy on the target.

        First images lie in order. So where compaction, retention or a gap took the first image
        of a record, and its copy is really that of a later equal one (an application that
        wrote a whole stretch anew, with its old timestamps), what lies before the copy tells:
        the nearest record before the stretch that is equal on both sides, and the answer of
        the time lookup (`first`) where that is younger.
        """
        if self.evidence.by_header:
            return True
        target = self.evidence.target
        if first is not None and first.offset < copy.offset:
            passed = yield from self.ask.next_data(TARGET, first.offset)
            if (
                isinstance(passed, Record)
                and (passed.timestamp_ms or 0) > (record.timestamp_ms or 0)
                and (yield from self._is_of_earlier(passed, record)) is False
            ):
                return False
        before: Record | Edge = yield from self.ask.previous_data(SOURCE, record.offset)
        copy_before: Record | Edge = yield from self.ask.previous_data(TARGET, copy.offset)
        read_further = False
        by_a_pair = self._as_far_as_a_pair(record, copy)
        for _ in range(LONGEST_STRETCH_BY_A_PAIR if by_a_pair else LONGEST_STRETCH):
            if not self.equals.equal(before, copy_before):
                break
            assert isinstance(before, Record)
            assert isinstance(copy_before, Record)
            known_pair = self.evidence.pairs.at(before.offset)
            if known_pair is not None and known_pair.target_offset == copy_before.offset:
                return True
            known = target.previous_known(copy_before.offset)
            if known is None:
                return True
            copy_before, at = known, before.offset
            before = self.evidence.source.previous_known(at) or Edge.UNKNOWN
            if before is Edge.UNKNOWN and not read_further:
                # One more batch of the source spares a time lookup and its batch.
                read_further = True
                before = yield from self.ask.previous_data(SOURCE, at)
        for _ in range(NEIGHBOURS):
            if not isinstance(copy_before, Record):
                return copy_before is Edge.LOG_START
            is_of_earlier = yield from self._is_of_earlier(copy_before, record)
            if is_of_earlier is False:
                return False
            if is_of_earlier and by_a_pair and target.previous_known(copy_before.offset) is None:
                return True
            nearer = yield from self.ask.previous_data(TARGET, copy_before.offset)
            if is_of_earlier and _in_order(nearer, copy_before, copy):
                return True
            copy_before = nearer  # of a record with a later twin, or of one the source has lost
        return True

    def _is_of_earlier(
        self, copy: Record, record: Record
    ) -> Generator[Question, Answer, bool | None]:
        """Whether a target record is seen to be a copy of the source record or one before it;
        None where the source does not have it."""
        source, identity = self.evidence.source, self.evidence.target.identity(copy)
        if not source.equals(identity):
            original = yield from self.equals.original_of(copy)
            if original is Edge.UNKNOWN:
                return False
        equals = source.equals(identity)
        return equals[0] <= record.offset if equals else None

    def earliest_equal(self, record: Record, copy: Record) -> Generator[Question, Answer, int]:
        """The lowest source offset whose image the copy may be instead of the record's."""
        if self.evidence.by_header:
            return record.offset
        source, target = self.evidence.source, self.evidence.target
        identity = source.identity(record)
        if source.equals(identity)[0] == record.offset:
            before = source.previous_known(record.offset)
            after = source.next_known(record.offset + 1)
            beside = self.equals.equal(after, target.next_known(copy.offset + 1))
            alone = len(target.equals(identity)) == 1
            if not alone and not beside:
                beside = yield from self._same_before(record, copy)
                if not beside:
                    # The copy may be of an equal record that the source no longer has.
                    return source.start
            at_start = before is None and source.covered_from(record.offset) <= source.start
            # Of several copies another one may be this record's, and offsets without data on one
            # side only may make a distance the same by chance.
            if at_start or (alone and self._as_far_as_a_pair(record, copy)):
                return record.offset
        # An earlier equal record has the same timestamp: none lies below the time lookup. But
        # that none is answered proves nothing.
        first = yield from self.ask.first_at_time(SOURCE, record.timestamp_ms or 0)
        start = source.start if first is None else first.offset
        earliest = yield from self.equals.lowest_from(SOURCE, identity, start, scan=True)
        return earliest.offset if isinstance(earliest, Record) else start

    def _as_far_as_a_pair(self, record: Record, copy: Record) -> bool:
        """True where the distance to a known pair is the same on both sides, or that to the
        beginning of two logs that were never trimmed: an earlier equal record's image would lie
        nearer to the pair below, or further from the one above."""
        distance = record.offset - copy.offset
        if distance == self.evidence.source.start == self.evidence.target.start == 0:
            return True
        pairs = self.evidence.pairs
        return any(
            pair is not None and pair.source_offset - pair.target_offset == distance
            for pair in (pairs.below(record.offset), pairs.above(record.offset))
        )

    def _run_end(self, record: Record) -> Generator[Question, Answer, int | None]:
        """Where the run of this timestamp ends: the offset of the first later data record with
        another one, or the readable end; None where it could not be read."""
        assert record.timestamp_ms is not None
        runs = self.evidence.runs
        known = runs.get(record.timestamp_ms)
        if known is None or not known.start <= record.offset < known.read_to:
            run = Run(record.offset, record.offset + 1)
        else:
            run = known
        while not run.ended:
            if known is not None and run.start < known.start <= run.read_to <= known.read_to:
                run = Run(run.start, known.read_to, known.ended)
                known = None
                continue
            own = run.read_to == record.offset + 1
            following = yield from self.ask.next_data(SOURCE, run.read_to, scan=not own)
            if following is Edge.UNKNOWN:
                break
            if not isinstance(following, Record):
                run = Run(run.start, self.evidence.source.end, ended=True)
            elif following.timestamp_ms != record.timestamp_ms:
                run = Run(run.start, following.offset, ended=True)
            else:
                run = Run(run.start, following.offset + 1)
        runs[record.timestamp_ms] = run
        return run.read_to if run.ended else None

    def stands_alone(self, record: Record) -> bool:
        """True where no other known source record equals it, and its time can be looked up."""
        source = self.evidence.source
        alone = len(source.equals(source.identity(record))) == 1
        return alone and record.timestamp_ms is not None


def _in_order(before: Record | Edge | None, record: Record, after: Record | Edge | None) -> bool:
    """True where the timestamp lies between those of its neighbours, as far as there are any;
    a neighbour that is not known, or carries no timestamp, is none to rely on."""
    stamp = record.timestamp_ms
    if stamp is None:
        return False
    for neighbour, sign in ((before, 1), (after, -1)):
        if neighbour is Edge.UNKNOWN:
            return False
        if isinstance(neighbour, Record):
            other = neighbour.timestamp_ms
            if other is None or sign * (stamp - other) < 0:
                return False
    return True
