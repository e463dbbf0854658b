"""Pairs: finding the image of a source record on the target, and proving that it is one.

Equal content makes a candidate. It is a pair once no other source record can be meant (the
twin test) and no earlier copy exists (first images): docs/design.md section 1.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from tsoffset.evidence import GROWING_READ_BYTES, Answer, Edge, Inquiry, Question, Search
from tsoffset.model import Record, Side, TimedOffset

SOURCE, TARGET = Side.SOURCE, Side.TARGET


@dataclass(frozen=True, slots=True)
class Pair:
    """The target record at `target_offset` is the first image of the source record.

    `earliest_equal` is the lowest source offset whose image it may be instead: lower than
    `source_offset` where an equal record stands before it. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int


class Pairs:
    """Looks for pairs on behalf of one position."""

    def __init__(self, ask: Inquiry) -> None:
        self.ask = ask
        self.evidence = ask.evidence

    def pair_of(
        self, record: Record, *, scan: bool = False
    ) -> Generator[Question, Answer, Pair | None]:
        """The first image of a source record; None where it is not found or not proven.

        Any copy has the record's own timestamp, so none lies below the target's time
        lookup, and the lowest one met from there on without a gap is the first.
        """
        if record.timestamp_ms is None:
            return None
        first = yield from self.ask.first_at_time(TARGET, record.timestamp_ms)
        if first is None:
            return None
        copy = yield from self._lowest_equal(TARGET, record, first, scan=scan)
        if copy is None:
            return None
        if not (yield from self.unmistakable(record, copy)):
            return None
        if self.evidence.target.start > 0 and not (yield from self._begins_before(record)):
            return None
        # Where the lookup names the copy itself, compaction cannot have taken one before it.
        may_be_later = self.evidence.target.start > 0 or copy.offset != first.offset
        if may_be_later and not (yield from self._looked_for_repeat()):
            return None
        if self.evidence.contradicted(record.offset, copy.offset):
            return None
        earliest = yield from self._earliest_equal(record, copy)
        return Pair(record.offset, copy.offset, earliest)

    def _lowest_equal(
        self, side: Side, record: Record, first: TimedOffset, *, scan: bool
    ) -> Generator[Question, Answer, Record | None]:
        """The lowest record of `side` that equals `record`, read without a gap from `first`."""
        view = self.evidence.view(side)
        identity = view.identity(record)
        growing = iter(GROWING_READ_BYTES)
        max_bytes = next(growing)
        while True:
            known_to = view.covered_to(first.offset)
            for offset in view.equals(identity):
                if first.offset <= offset < known_to:
                    return view.at(offset)
            scanning = view.next_known(first.offset) is not None
            if known_to >= view.end or (scanning and not scan):
                return None
            if not (yield from self.ask.read(side, known_to, max_bytes, scan=scanning)):
                return None
            max_bytes = next(growing, max_bytes)

    def unmistakable(
        self, record: Record, copy: Record, *, among: Sequence[int] | None = None
    ) -> Generator[Question, Answer, bool]:
        """The twin test: True where no source record but `record` can be what `copy` is of.

        A later equal record is dangerous: if its copy outlived the first one's, what lies
        between would be skipped. So the run of the timestamp is read to its end on the
        right. A record out of order may have a twin far away: it counts only if a direct
        neighbour is equal on both sides. `among` are known equal records that will do as well.
        """
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
            and not (record.key is None and record.value is None)
        ):
            return True
        return self.equal(after, copy_after) or (yield from self._same_before(record, copy))

    def _same_before(self, record: Record, copy: Record) -> Generator[Question, Answer, bool]:
        before = yield from self.ask.previous_data(SOURCE, record.offset)
        copy_before = yield from self.ask.previous_data(TARGET, copy.offset)
        return self.equal(before, copy_before)

    def _earliest_equal(self, record: Record, copy: Record) -> Generator[Question, Answer, int]:
        """The lowest source offset whose image the copy may be instead of the record's."""
        source, target = self.evidence.source, self.evidence.target
        identity = source.identity(record)
        equals = source.equals(identity)
        if equals[0] < record.offset:
            return equals[0]
        before = source.previous_known(record.offset)
        after = source.next_known(record.offset + 1)
        beside = self.equal(after, target.next_known(copy.offset + 1))
        if len(target.equals(identity)) > 1 and not beside:
            beside = yield from self._same_before(record, copy)
            if not beside:
                # The copy may be of an equal record that the source no longer has.
                return source.start
        at_start = before is None and source.covered_from(record.offset) <= source.start
        if at_start or (
            before is not None
            and before.timestamp_ms is not None
            and before.timestamp_ms < (record.timestamp_ms or 0)
            and (after is None or (after.timestamp_ms or 0) >= (record.timestamp_ms or 0))
        ):
            return record.offset
        # An earlier equal record has the same timestamp: none lies below the time lookup.
        first = yield from self.ask.first_at_time(SOURCE, record.timestamp_ms or 0)
        if first is None:
            return source.start
        earliest = yield from self._lowest_equal(SOURCE, record, first, scan=True)
        return first.offset if earliest is None else earliest.offset

    def _run_end(self, record: Record) -> Generator[Question, Answer, int | None]:
        """Where the run of this timestamp ends: the offset of the first later data record with
        another one, or the readable end; None where it could not be read."""
        assert record.timestamp_ms is not None
        known = self.evidence.run_ends.get(record.timestamp_ms)
        if known is not None and known[0] <= record.offset < known[1]:
            return known[1]
        at = record.offset + 1
        while True:
            own = at == record.offset + 1
            following = yield from self.ask.next_data(SOURCE, at, scan=not own)
            if following is Edge.UNKNOWN:
                return None
            if not isinstance(following, Record):
                end = self.evidence.source.end
                break
            if following.timestamp_ms != record.timestamp_ms:
                end = following.offset
                break
            at = following.offset + 1
        self.evidence.run_ends[record.timestamp_ms] = (record.offset, end)
        return end

    def equal(self, one: Record | Edge | None, other: Record | Edge | None) -> bool:
        """True where both are records and each may be the other's image."""
        view = self.evidence.source
        return (
            isinstance(one, Record)
            and isinstance(other, Record)
            and view.identity(one) == view.identity(other)
        )

    def stands_alone(self, record: Record) -> bool:
        """True where no other known source record equals it, and its time can be looked up."""
        source = self.evidence.source
        alone = source.equals(source.identity(record)) == [record.offset]
        return alone and record.timestamp_ms is not None

    def _begins_before(self, record: Record) -> Generator[Question, Answer, bool]:
        """False where the lowest copy left in a trimmed log need not be the first image.

        First images lie in order: where what is left begins with a copy of a later record,
        the first image of this one is gone.
        """
        beginning = yield from self.beginning()
        if not isinstance(beginning, Record):
            return beginning is not Edge.UNKNOWN
        source = self.evidence.source
        return source.equals(source.identity(beginning))[-1] <= record.offset

    def beginning(self) -> Search:
        """The first data record on the target that the source has, too; LOG_END where none of
        the first few is, UNKNOWN where the budget does not allow a look."""
        target = self.evidence.target
        at = target.start
        for _ in range(self.evidence.settings.budget):
            copy = yield from self.ask.next_data(TARGET, at, scan=True)
            if not isinstance(copy, Record):
                return copy
            if (yield from self.original_of(copy)) is not None:
                return copy
            at = copy.offset + 1  # of a record that the source has lost, or of others
        return Edge.LOG_END

    def _looked_for_repeat(self) -> Generator[Question, Answer, bool]:
        """Have seen whether the log ends inside a repeat: then the source record after the last
        one copied is on the target already, and `contradicted` knows. Retention and compaction
        can take a first image and leave a later copy. False where the budget did not allow it.
        """
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end, scan=True)
        if not isinstance(last, Record):
            return False
        original = yield from self.original_of(last)
        if original is None:
            return True  # a copy of what the source has lost: nothing to go by
        following = yield from self.ask.next_data(SOURCE, original.offset + 1, scan=True)
        if not isinstance(following, Record):
            return following is Edge.LOG_END
        if following.timestamp_ms is not None:
            first = yield from self.ask.first_at_time(TARGET, following.timestamp_ms)
            if first is not None:
                yield from self._lowest_equal(TARGET, following, first, scan=False)
        return True

    def original_of(self, copy: Record) -> Generator[Question, Answer, Record | None]:
        """The lowest source record that equals a target record."""
        if copy.timestamp_ms is None:
            return None
        first = yield from self.ask.first_at_time(SOURCE, copy.timestamp_ms)
        if first is None:
            return None
        return (yield from self._lowest_equal(SOURCE, copy, first, scan=True))

    def at_both_ends(self, last: Record) -> Generator[Question, Answer, Pair | None]:
        """The last record of the source with the last one on the target, if they are a pair:
        the mirror is complete. That copy need not be the first, so it answers for nothing
        but the end itself."""
        target = self.evidence.target
        copy = yield from self.ask.previous_data(TARGET, target.end)
        if not (isinstance(copy, Record) and self.equal(last, copy)):
            return None
        if not (yield from self.unmistakable(last, copy)):
            return None
        return Pair(last.offset, copy.offset, (yield from self._earliest_equal(last, copy)))

    def last_on_target(self) -> Generator[Question, Answer, Pair | None]:
        """The pair of the last data record on the target, if it is the first image: so far
        the mirror has come."""
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end)
        if not isinstance(last, Record):
            return None
        original = yield from self.original_of(last)
        if original is None:
            return None
        return (yield from self.pair_of(original, scan=True))


def _in_order(before: Record | Edge | None, record: Record, after: Record | Edge | None) -> bool:
    """True where the timestamp lies between those of its neighbours, as far as there are any;
    a neighbour that is not known, or carries no timestamp, is none to rely on."""
    stamp = record.timestamp_ms
    assert stamp is not None
    for neighbour, sign in ((before, 1), (after, -1)):
        if neighbour is Edge.UNKNOWN:
            return False
        if isinstance(neighbour, Record):
            other = neighbour.timestamp_ms
            if other is None or sign * (stamp - other) < 0:
                return False
    return True
