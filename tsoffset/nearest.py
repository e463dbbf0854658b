"""Steps 6 to 8: the pair below C to walk from, where neither R nor the record before it has one.

Compaction, a filter or a gap took their images, or nothing says where they are. So target
records are located on the source, first beside the time lookup, then halfway between the
nearest pairs on both sides of C; and source records further and further before C are tried.
"""

from collections.abc import Generator

from tsoffset.evidence import Answer, Edge, Pair, Question
from tsoffset.model import Side
from tsoffset.pairs import Pairs
from tsoffset.records import Record

SOURCE, TARGET = Side.SOURCE, Side.TARGET


class Nearest:
    """Looks for pairs of records before `offset`, better ones one after the other."""

    def __init__(self, pairs: Pairs, offset: int, timestamp_ms: int | None) -> None:
        self.pairs = pairs
        self.ask = pairs.ask
        self.evidence = pairs.evidence
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.tries = self.evidence.settings.budget
        self.start = self.evidence.target.start
        self.end = self.evidence.target.end
        self._halving = False

    def next_pair(self) -> Generator[Question, Answer, Pair | None]:
        """A pair of a record before C that is nearer than the last one; None where the budget
        or the log ends."""
        below = self.evidence.pairs.below(self.offset)
        if below is not None and below.target_offset >= self.start:
            self.start = below.target_offset + 1
            return below
        while self.start < self.end and self.tries > 0:
            self.tries -= 1
            at = yield from self._place()
            copy = yield from self.ask.previous_data(TARGET, at)
            if copy is Edge.LOG_START or (isinstance(copy, Record) and copy.offset < self.start):
                self.start = at
                continue
            pair = yield from self._nearest_pair(copy)
            if pair is None:
                self.end = at - 1
            elif pair.source_offset < self.offset:
                self.start = pair.target_offset + 1
                return pair
            else:
                self.end = pair.target_offset
        return None

    def _place(self) -> Generator[Question, Answer, int]:
        """Where to look next: before the time lookup's answer, then in the middle."""
        if not self._halving:
            self._halving = True
            if self.timestamp_ms is not None:
                first = yield from self.ask.first_at_time(TARGET, self.timestamp_ms)
                if first is not None and self.start < first.offset <= self.end:
                    return first.offset
        return (self.start + self.end + 1) // 2

    def _nearest_pair(self, copy: Record | Edge) -> Generator[Question, Answer, Pair | None]:
        """The pair of a target record, or of the nearest before it that can be told from others."""
        target = self.evidence.target
        for _ in range(self.evidence.settings.budget):
            if not isinstance(copy, Record) or copy.offset < self.start:
                return None
            original = yield from self.pairs.equals.original_of(copy)
            if isinstance(original, Record) and self.pairs.twins.stands_alone(original):
                pair = yield from self.pairs.pair_of(original)
                if pair is not None:
                    return pair
            copy = target.previous_known(copy.offset) or Edge.UNKNOWN
        return None

    def further_back(self, previous: Record) -> Generator[Question, Answer, Pair | None]:
        """Step 8: the pair of a source record 2, 4, 8, ... before C; the nearest first."""
        source = self.evidence.source
        step, tried = 2, previous.offset
        tries = self.evidence.settings.budget
        while tried > source.start and tries > 0:
            at = max(source.start, self.offset - step)
            step *= 2
            record = yield from self.ask.next_data(SOURCE, at)
            if record is Edge.UNKNOWN:
                return None
            candidate = record if isinstance(record, Record) and record.offset < tried else None
            while candidate is not None and not self.pairs.twins.stands_alone(candidate):
                candidate = source.previous_known(candidate.offset)
            tried = min(tried, at)
            if candidate is not None:
                tried = min(tried, candidate.offset)
                tries -= 1
                pair = yield from self.pairs.pair_of(candidate)
                if pair is not None:
                    return pair
        return None
