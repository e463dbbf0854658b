"""What the two ends of a target log tell: how it begins, how far the mirror has come, and
whether the replicator was in the middle of a repeat.
"""

from collections.abc import Generator

from tsoffset.equals import Equals
from tsoffset.evidence import Answer, Edge, Pair, Question, Repeat, Search
from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.twins import Twins

SOURCE, TARGET = Side.SOURCE, Side.TARGET


class Ends:
    """Looks at the ends of the target's log on behalf of one position."""

    def __init__(self, equals: Equals, twins: Twins) -> None:
        self.equals = equals
        self.twins = twins
        self.ask = equals.ask
        self.evidence = equals.evidence

    def beginning(self) -> Search:
        """The first data record on the target that the source has, too; LOG_END where none of
        the first few is, UNKNOWN where the budget does not allow a look."""
        target = self.evidence.target
        at = target.start
        for _ in range(self.evidence.settings.budget):
            copy = yield from self.ask.next_data(TARGET, at, scan=True)
            if not isinstance(copy, Record):
                return copy
            original = yield from self.equals.original_of(copy)
            if original is Edge.UNKNOWN:
                return original
            if isinstance(original, Record):
                return copy
            at = copy.offset + 1  # of a record that the source has lost, or of others
        return Edge.LOG_END

    def begins_before(self, record: Record) -> Generator[Question, Answer, bool]:
        """False where the lowest copy left in a trimmed log need not be the first image.

        First images lie in order: where what is left begins with a copy of a later record,
        the first image of this one is gone.
        """
        beginning = yield from self.beginning()
        if not isinstance(beginning, Record):
            return beginning is not Edge.UNKNOWN
        source = self.evidence.source
        equals = source.equals(self.evidence.target.identity(beginning))
        return equals[-1] <= record.offset

    def repeat(self) -> Generator[Question, Answer, Repeat]:
        """Whether the log ends inside a repeat.

        Then the source record after the last one copied is on the target already. Once it is
        known to lie there, the contradiction test knows, too. NONE where the last record
        copied is the source's last, or no record can lie there that may be a copy of the next.
        UNSEEN where the budget did not allow a look.
        """
        if self.evidence.repeat_at_end is None:
            found = yield from self._repeat()
            if found is Repeat.UNSEEN:
                return found
            self.evidence.repeat_at_end = found
        return self.evidence.repeat_at_end

    def _repeat(self) -> Generator[Question, Answer, Repeat]:
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end, scan=True)
        if not isinstance(last, Record):
            return Repeat.UNSEEN
        original = yield from self.equals.original_of(last)
        if original is Edge.UNKNOWN:
            return Repeat.UNSEEN
        if not isinstance(original, Record):
            return Repeat.POSSIBLE  # a copy of what the source has lost: nothing to go by
        following = yield from self.ask.next_data(SOURCE, original.offset + 1, scan=True)
        if following is Edge.UNKNOWN:
            return Repeat.UNSEEN
        clear = yield from self.twins.unmistakable(original, last)
        if not isinstance(following, Record):
            # Nothing is left to be copied: what is on the target ends with it.
            if not clear:
                return Repeat.POSSIBLE
            earliest = yield from self.twins.earliest_equal(original, last)
            self.evidence.prove(Pair(original.offset, last.offset, earliest))
            return Repeat.NONE
        if following.timestamp_ms is None:
            return Repeat.POSSIBLE
        first = yield from self.ask.first_at_time(TARGET, following.timestamp_ms)
        if first is None:
            return Repeat.POSSIBLE  # none proves nothing
        identity = self.evidence.source.identity(following)
        yield from self.equals.lowest_from(TARGET, identity, first.offset, scan=False)
        return Repeat.POSSIBLE

    def both(self, last: Record) -> Generator[Question, Answer, Pair | None]:
        """The last record of the source with the last one on the target, if they are a pair:
        the mirror is complete. That copy need not be the first, so it answers for nothing
        but the end itself."""
        target = self.evidence.target
        copy = yield from self.ask.previous_data(TARGET, target.end)
        if not (isinstance(copy, Record) and self.equals.equal(last, copy)):
            return None
        if not self.evidence.check_headers(last, copy):
            return None
        if not (yield from self.twins.unmistakable(last, copy)):
            return None
        pair = Pair(last.offset, copy.offset, (yield from self.twins.earliest_equal(last, copy)))
        # Nothing follows on the source: below it any copy answers.
        self.evidence.prove(pair)
        return pair
