"""Which batches to read next, where many positions of one partition want some.

One batch may answer the questions for many offsets. So a round does not ask for every offset. As
long as the size of batches is not known, it asks for every 64th; later for one in each span as
long as a batch; and where nearly every batch is wanted, it makes wide reads that do not overlap.
Offsets that are still not covered are asked for in the next round.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tsoffset.model import ReadFrom, Side, TopicPartition
from tsoffset.records import FetchedRange, Flags, Numbers, is_within
from tsoffset.rule.inquiry import Answer, Question

# As long as no batch is known, one in this many positions is asked for.
SPARSE = 64
# This many batches are read at once for each batch whose size is known.
TRUST = 8
WIDE_READ_BYTES = 262_144
# A wide read pays where at least this share of its batches is wanted.
WANTED_SHARE = 0.9
_FEWEST_BATCHES = 4
_USUAL_BATCH = 500


class SideReads:
    """The reads of single batches that one partition wants of one side, round by round.

    `sizes` are the sizes of the log's batches; several readers of the log may share them.
    """

    def __init__(self, sizes: "BatchSizes | None" = None) -> None:
        self.failed: set[int] = set()
        self.sizes = BatchSizes() if sizes is None else sizes
        self._asked: dict[int, Question] = {}
        self._starts: list[int] = []
        self._ranges: list[FetchedRange] = []
        self._fresh: list[FetchedRange] = []

    @property
    def batch_offsets(self) -> int:
        """Offsets in a batch, on average; as long as none was read, a guess."""
        return self.sizes.offsets if self.sizes.known else _USUAL_BATCH

    def choose(
        self,
        side: Side,
        partition: TopicPartition,
        wanted: Collection[int],
        *,
        sparse: int = SPARSE,
    ) -> set[Question]:
        """The reads of this round, for wanted offsets that nothing covers yet."""
        self._asked = {
            offset: Question(side, ReadFrom(partition, offset, max_bytes))
            for offset, max_bytes in next_reads(wanted, self.sizes, sparse)
        }
        return set(self._asked.values())

    def asked_as(self, question: Question) -> Question:
        """The question that was sent in place of one about a single batch; it may read more."""
        what = question.what
        if isinstance(what, ReadFrom) and what.max_bytes == 1:
            return self._asked.get(what.offset, question)
        return question

    def take(self, answers: Mapping[Question, Answer]) -> None:
        for offset, question in self._asked.items():
            fetched = answers[question]
            if isinstance(fetched, FetchedRange):
                assert isinstance(question.what, ReadFrom)
                if question.what.max_bytes == 1 and fetched.start < fetched.end:
                    self.sizes.note(fetched.end - fetched.start, fetched.bytes_read)
                self.keep(fetched)
            if self.range_with(offset) is None:
                self.failed.add(offset)

    def keep(self, fetched: FetchedRange) -> None:
        """Keep a range unless a kept one covers it; kept ones that it covers are dropped."""
        first = bisect_left(self._starts, fetched.start)
        if first and self._ranges[first - 1].end >= fetched.end:
            return
        behind = first
        while behind < len(self._starts) and self._ranges[behind].end <= fetched.end:
            behind += 1
        if behind < len(self._starts) and self._starts[behind] == fetched.start:
            return
        self._starts[first:behind] = [fetched.start]
        self._ranges[first:behind] = [fetched]
        self._fresh.append(fetched)

    def range_with(self, offset: int) -> FetchedRange | None:
        """The kept range that holds an offset; None if there is none."""
        at = bisect_right(self._starts, offset) - 1
        return self._ranges[at] if at >= 0 and self._ranges[at].end > offset else None

    def holds(self, offsets: Numbers) -> Flags:
        return is_within(offsets, self._starts, [one.end for one in self._ranges])

    @property
    def kept(self) -> Sequence[FetchedRange]:
        """All that was read and not dropped."""
        return self._ranges

    def fresh(self) -> list[FetchedRange]:
        """The kept ranges that are not empty and are new since the last call; after
        `drop_above`, all that are left."""
        fresh, self._fresh = self._fresh, []
        return [fetched for fetched in fresh if self.range_with(fetched.start) is fetched]

    def drop_above(self, above: int) -> None:
        """Keep only what begins at an offset or before it."""
        behind = bisect_right(self._starts, above)
        del self._starts[behind:], self._ranges[behind:]
        self._fresh = [*self._ranges]


class BatchSizes:
    """How large the batches of one log are, as far as reads of single batches have shown."""

    def __init__(self) -> None:
        self.batches = 0
        self._offsets = 0
        self._bytes = 0

    def note(self, offsets: int, read_bytes: int) -> None:
        self.batches += 1
        self._offsets += offsets
        self._bytes += read_bytes

    @property
    def known(self) -> bool:
        """True once a batch was read."""
        return self.batches > 0

    @property
    def offsets(self) -> int:
        """Offsets in a batch, on average; at least 1."""
        return max(1, self._offsets // self.batches)

    @property
    def in_a_wide_read(self) -> int:
        """Batches that a wide read holds, on average."""
        return WIDE_READ_BYTES * self.batches // max(1, self._bytes)

    def bytes_of(self, batches: int) -> int:
        """Bytes in this many average batches, rounded up so that equal ones are read whole."""
        return -(-self._bytes * batches // max(1, self.batches))


def next_reads(
    wanted: Collection[int], sizes: BatchSizes, sparse: int = SPARSE
) -> Iterator[tuple[int, int]]:
    """The reads of this round, as (offset, max_bytes), for offsets that nothing covers yet."""
    offsets = sorted(wanted)
    if not sizes.known:
        # Starts half a step in: near the outermost offsets other questions may read.
        step = max(sparse, len(offsets) // TRUST)
        yield from ((offset, 1) for offset in offsets[min(step, len(offsets)) // 2 :: step])
        return
    of_batch, column = sizes.offsets, np.array(offsets, np.int64)
    reads: list[tuple[int, int]] = []
    at = 0
    while at < len(offsets):
        first, max_bytes = offsets[at], 1
        behind = bisect_left(offsets, first + of_batch, at)
        for batches in _wide_reads(first, offsets[-1], sizes):
            end = bisect_left(offsets, first + batches * of_batch, at)
            if end - at < WANTED_SHARE * batches:
                continue  # fewer offsets than batches: no need to count
            held = np.count_nonzero(np.diff((column[at:end] - first) // of_batch)) + 1
            if held >= WANTED_SHARE * batches:
                # The first batch may begin before what is wanted of it.
                behind, max_bytes = end, sizes.bytes_of(batches + 1)
                break
        reads.append((first, max_bytes))
        at = behind
    # Few known batches may not be typical. So read fewer, spread over all, and learn from these.
    yield from reads[:: max(1, -(-len(reads) // (TRUST * sizes.batches)))]


def _wide_reads(first: int, last: int, sizes: BatchSizes) -> Iterator[int]:
    """How many batches a wide read from the first of some offsets on may bring, most first: as many
    as may be read at once, or as there are up to the last offset."""
    batches = sizes.in_a_wide_read - 1
    if batches >= _FEWEST_BATCHES:
        yield batches
    rest = (last - first) // sizes.offsets + 1
    if _FEWEST_BATCHES <= rest < batches:
        yield rest
