"""Pairs: finding the image of a source record on the target, and proving that it answers.

Equal content makes a candidate. It answers once no other source record can be meant (the
twin test) and everything that follows the record on the source is known to lie behind it:
it is the first image, or the replicator walked on from it in order to a pair above, or to
the end (docs/design.md section 1, "Copies and first images").
"""

from collections.abc import Generator

from tsoffset.ends import Ends
from tsoffset.equals import Equals
from tsoffset.evidence import Answer, Inquiry, Pair, Question, Repeat
from tsoffset.model import Side, TimedOffset
from tsoffset.records import Record
from tsoffset.twins import Twins

SOURCE, TARGET = Side.SOURCE, Side.TARGET

__all__ = ["Pair", "Pairs"]


class Pairs:
    """Looks for pairs on behalf of one position."""

    def __init__(self, ask: Inquiry) -> None:
        self.ask = ask
        self.evidence = ask.evidence
        self.equals = Equals(ask)
        self.twins = Twins(self.equals)
        self.ends = Ends(self.equals, self.twins)

    def pair_of(
        self, record: Record, *, scan: bool = False
    ) -> Generator[Question, Answer, Pair | None]:
        """The pair of a source record; None where its image is not found or not proven.

        Sought first where the distance to a known pair says (step 3), then at the target's
        time lookup (step 4), then as far past it as the record is past the source's own
        (step 5); with `scan`, then upward from the lookup.
        """
        known = self.evidence.pairs.at(record.offset)
        if known is not None:
            return known
        above = self.evidence.pairs.above(record.offset)
        if above is not None:
            pair = yield from self._below_a_pair(record, above)
            if pair is not None:
                return pair
        if record.timestamp_ms is None:
            return None
        first = yield from self.ask.first_at_time(TARGET, record.timestamp_ms)
        start = self._scan_from(record, first)
        copy = None
        if first is not None:
            copy = yield from self._lowest_copy(record, start, scan=False)
        if copy is None:
            yield from self._look_at_a_distance(record, first)
            copy = self._known_copy(record, start, self.evidence.target.end)
        unseen = copy is not None and self.evidence.target.covered_to(start) <= copy.offset
        if unseen and (yield from self.ends.repeat()) is Repeat.NONE:
            # Records before it were not seen; the replicator walked on from it to the end.
            assert copy is not None
            return (yield from self._proven(record, copy, first))
        if (copy is None or unseen) and scan:
            copy = yield from self._lowest_copy(record, start, scan=True)
        if copy is None or not (yield from self._first(copy, record, first)):
            return None
        return (yield from self._proven(record, copy, first))

    def last_on_target(self) -> Generator[Question, Answer, Pair | None]:
        """The pair of the last data record on the target, if it answers: so far the mirror
        has come."""
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end)
        if not isinstance(last, Record):
            return None
        original = yield from self.equals.original_of(last)
        if not isinstance(original, Record):
            return None
        pair = yield from self.pair_of(original, scan=True)
        if pair is not None and pair.target_offset == last.offset:
            self.evidence.frontier = pair
        return pair

    # --- where to look ------------------------------------------------------------------

    def _below_a_pair(
        self, record: Record, above: Pair
    ) -> Generator[Question, Answer, Pair | None]:
        """Step 3: below a pair any copy answers, for the replicator walked on from it in order."""
        below = self.evidence.pairs.below(record.offset)
        start = self.evidence.target.start if below is None else below.target_offset + 1
        for near in self._nearest_first(record.offset, above, below):
            guess = near.target_offset + record.offset - near.source_offset
            if not start <= guess < above.target_offset:
                continue
            known = self.evidence.target.covered_to(guess) > guess
            if not known:
                if not self.evidence.predictions_hold:
                    continue
                yield from self.equals.reach(TARGET, guess)
            copy = self._known_copy(record, start, above.target_offset)
            if not known:
                self.evidence.note_prediction(held=copy is not None)
            if copy is not None:
                return (yield from self._proven(record, copy, None))
        return None

    def _nearest_first(self, offset: int, above: Pair, below: Pair | None) -> list[Pair]:
        if below is None:
            return [above]
        near_below = offset - below.source_offset <= above.source_offset - offset
        return [below, above] if near_below else [above, below]

    def _look_at_a_distance(
        self, record: Record, first: TimedOffset | None
    ) -> Generator[Question, Answer, None]:
        """Read where the last cycle's pairs have the image; and, step 5, as far past the target's
        lookup as the record is past the source's: in a run of equal timestamps, or behind a
        record of the far future."""
        assert record.timestamp_ms is not None
        remembered = self.evidence.predicted(record.offset)
        if remembered is not None and self.evidence.predictions_hold:
            held = yield from self.equals.reach(TARGET, remembered)
            copies = self.evidence.target.equals(self.evidence.source.identity(record))
            self.evidence.note_prediction(held=bool(copies))
            if held and copies:
                return
        if first is None:
            return
        own = yield from self.ask.first_at_time(SOURCE, record.timestamp_ms)
        if own is not None and own.offset < record.offset:
            yield from self.equals.reach(TARGET, first.offset + record.offset - own.offset)

    def _known_copy(self, record: Record, start: int, end: int) -> Record | None:
        target = self.evidence.target
        for offset in target.equals(self.evidence.source.identity(record)):
            if start <= offset < end:
                return target.at(offset)
        return None

    def _scan_from(self, record: Record, first: TimedOffset | None) -> int:
        """Where to begin a scan: first images lie in order, and no copy is older than the time
        lookup's answer (none proves nothing)."""
        below = self.evidence.pairs.below(record.offset)
        start = self.evidence.target.start if first is None else first.offset
        return start if below is None else max(start, below.target_offset + 1)

    def _lowest_copy(
        self, record: Record, start: int, *, scan: bool
    ) -> Generator[Question, Answer, Record | None]:
        identity = self.evidence.source.identity(record)
        found = yield from self.equals.lowest_from(TARGET, identity, start, scan=scan)
        return found if isinstance(found, Record) else None

    # --- what proves --------------------------------------------------------------------

    def _first(
        self, copy: Record, record: Record, first: TimedOffset | None
    ) -> Generator[Question, Answer, bool]:
        """True where the copy is the lowest one, and neither retention nor compaction took an
        earlier one and left this one of a repeat that is not finished."""
        target = self.evidence.target
        if target.covered_to(self._scan_from(record, first)) <= copy.offset:
            return False
        if target.start > 0 and not (yield from self.ends.begins_before(record)):
            return False
        # Where the lookup names the copy itself, compaction cannot have taken one before it.
        if target.start > 0 or first is None or copy.offset != first.offset:
            return (yield from self.ends.repeat()) is not Repeat.UNSEEN
        return True

    def _proven(
        self, record: Record, copy: Record, first: TimedOffset | None
    ) -> Generator[Question, Answer, Pair | None]:
        if not self.evidence.check_headers(record, copy):
            return None
        if not (yield from self.twins.unmistakable(record, copy)):
            return None
        if not (yield from self.twins.in_place(record, copy, first)):
            return None
        if (yield from self._contradicted(record, copy)):
            return None
        earliest = yield from self.twins.earliest_equal(record, copy)
        pair = Pair(record.offset, copy.offset, earliest)
        self.evidence.prove(pair)
        return pair

    def _contradicted(self, record: Record, copy: Record) -> Generator[Question, Answer, bool]:
        """True where a later source record is known whose copies all lie before this one.

        What was seen may be the copy of an equal record far below. So where its own should be,
        at the same distance, is looked at before that is believed.
        """
        target = self.evidence.target
        for _ in range(self.evidence.settings.budget):
            later = self.evidence.contradiction(record.offset, copy.offset)
            if later is None:
                return False
            guess = copy.offset + later - record.offset
            if target.covered_to(guess) > guess:
                return True
            if not (yield from self.equals.reach(TARGET, guess)):
                return True
        return self.evidence.contradiction(record.offset, copy.offset) is not None
