"""Equal records: the record of one side that may be an image, or the original, of another's.

Any copy has the record's own timestamp, so none lies below the time lookup for it.
"""

from collections.abc import Generator

from tsoffset.evidence import GROWING_READ_BYTES, Answer, Edge, Inquiry, Question, Search
from tsoffset.log_view import Identity
from tsoffset.model import Side
from tsoffset.records import Record


class Equals:
    """Looks for equal records on behalf of one position."""

    def __init__(self, ask: Inquiry) -> None:
        self.ask = ask
        self.evidence = ask.evidence

    def equal(self, one: Record | Edge | None, other: Record | Edge | None) -> bool:
        """True where the first is a source record, the second a target record, and they match."""
        return (
            isinstance(one, Record)
            and isinstance(other, Record)
            and self.evidence.source.identity(one) == self.evidence.target.identity(other)
        )

    def lowest_from(self, side: Side, identity: Identity, first: int, *, scan: bool) -> Search:
        """The lowest record of `side` from `first` on with this identity, read without a gap;
        without `scan` no further than one batch (or what is known). LOG_END where there is
        none, UNKNOWN where it was not read so far."""
        view = self.evidence.view(side)
        growing = iter(GROWING_READ_BYTES)
        max_bytes = next(growing)
        while True:
            known_to = view.covered_to(first)
            for offset in view.equals(identity):
                if first <= offset < known_to:
                    return view.at(offset) or Edge.UNKNOWN
            scanning = view.next_known(first) is not None
            if known_to >= view.end:
                return Edge.LOG_END
            if scanning and not scan:
                return Edge.UNKNOWN
            if not (yield from self.ask.read(side, known_to, max_bytes, scan=scanning)):
                return Edge.UNKNOWN
            max_bytes = next(growing, max_bytes)

    def original_of(self, copy: Record) -> Search:
        """The lowest source record that equals a target record; LOG_END where the source has
        none (or it cannot be looked up), UNKNOWN where it was not found within the budget."""
        if self.evidence.by_header:
            named = yield from self._named_by(copy)
            if not isinstance(named, Record) or self.evidence.check_headers(named, copy):
                return named
        if copy.timestamp_ms is None:
            return Edge.LOG_END
        first = yield from self.ask.first_at_time(Side.SOURCE, copy.timestamp_ms)
        # That none is answered proves nothing.
        start = self.evidence.source.start if first is None else first.offset
        identity = self.evidence.target.identity(copy)
        return (yield from self.lowest_from(Side.SOURCE, identity, start, scan=True))

    def _named_by(self, copy: Record) -> Search:
        offset, source = copy.source_offset, self.evidence.source
        if offset is None or not source.start <= offset < source.end:
            return Edge.LOG_END
        if not (yield from self.ask.read(Side.SOURCE, offset)):
            return Edge.UNKNOWN
        return source.at(offset) or Edge.LOG_END

    def reach(self, side: Side, offset: int) -> Generator[Question, Answer, bool]:
        """Have the record at `offset` of `side` known, if it is in the log; one fetch at most."""
        view = self.evidence.view(side)
        if not view.start <= offset < view.end:
            return False
        return (yield from self.ask.read(side, offset))
