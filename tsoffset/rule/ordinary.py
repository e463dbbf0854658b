"""Ordinary positions of many partitions, answered at once.

A strict subset of what the conversation (`tsoffset.rule.translate`) answers: wherever this says
yes, `prove` would say yes to the same pair, after one question or none. All else is left to the
conversation. What a position must show, each condition named for what `prove` asks:

    source   ... o ... [C-1] [C] [C+1] ... o' ...      (o, q) and (o', q') are proven pairs of this
    target   ... q ... [X-1] [X] [X+1] ... q' ...      cycle, equally far apart; X = C + q - o

1. *Between two pairs of one distance.* The replicator walked once from the one to the other, so
   there is no lower copy; and X < q' <= f, the frontier: what follows C lies behind X.
2. *The three records are known on both sides, and nothing can lie between them*: so C is the next
   record to read itself, and the answer resumes at no earlier offset.
3. *All three are equal* in what `translation.match` names: X is a copy, and its neighbours tell it
   from that of an equal record elsewhere.
4. *The run of C's timestamp is known to its end*, for equal records mostly stand there; and *no
   other known record equals C*, on either side: no later one is meant, and no earlier one (which
   would come again).
5. *What counts of key and value is not null*, and the record bears a timestamp: else it tells
   nothing.

Whether the mirror was set back to before its first record (which costs re-reads, not safety) is
asked by the caller, once a partition: see `tsoffset.cycle.conversations`.
"""

import numpy as np

from tsoffset.columns import Flags, RecordColumns
from tsoffset.model import Basis, Precision, Translated
from tsoffset.records import NO_TIMESTAMP, Numbers
from tsoffset.rule.translate import Translation

# C and its neighbours.
_BESIDE = np.array([-1, 0, 1])
_ALL = frozenset({"timestamp", "key", "value"})


def ordinary(
    source: RecordColumns,
    target: RecordColumns,
    log: Numbers,
    offset: Numbers,
    distance: Numbers,
    match: frozenset[str],
) -> tuple[Flags, Numbers]:
    """Which positions are answered exactly by `offset + distance`, and the source timestamp of
    each (any where it is not).

    `log` and `offset` are the positions; a log has one number on both sides, and all of its
    positions one `distance`, that of proven pairs below and above them (condition 1 is the
    caller's).
    """
    at, there = source.find(log, offset)
    image, mirrored = target.find(log, offset + distance)
    ok = there & mirrored
    if not ok.any():
        return ok, np.zeros(len(offset), np.int64)
    ok &= _beside(source, at) & _beside(target, image)
    ok &= source.timestamp[at] != NO_TIMESTAMP
    ok &= source.run_ends[at]
    ok[ok] = _equal(source, target, at[ok], image[ok], match)
    ok[ok] = source.alone(at[ok], match) & target.alone(image[ok], match)
    return ok, source.timestamp[at]


def next_record(
    offset: int, copy: int, timestamp_ms: int, frontier: tuple[int, int] | None
) -> Translation:
    """The translation of such a position: it resumes at the copy of its next record."""
    pairs = ((offset, copy),)
    outcome = Translated(copy, Precision.EXACT, 0, copy, copy, Basis.NEXT_RECORD, pairs, frontier)
    return Translation(outcome, timestamp_ms)


def _beside(side: RecordColumns, at: Numbers) -> Flags:
    """Whether a record's neighbours are known, and nothing can lie between."""
    behind = np.append(side.follows, False)
    found: Flags = behind[at] & behind[at + 1]
    return found


def _equal(
    source: RecordColumns,
    target: RecordColumns,
    at: Numbers,
    image: Numbers,
    match: frozenset[str],
) -> Flags:
    """Whether the three records are equal on both sides and the middle one holds anything."""
    originals = (at[:, None] + _BESIDE).ravel()
    copies = (image[:, None] + _BESIDE).ravel()
    # Neighbours are shared: each pair is compared once. (A log has one distance.)
    each, where, back = np.unique(originals, return_index=True, return_inverse=True)
    theirs = copies[where]
    same, tells = np.zeros(len(each), bool), np.ones(len(each), bool)
    if match == _ALL:
        # The same bytes, which saves digests; that they differ says nothing.
        encoded = zip(source.encoded(each), target.encoded(theirs), strict=True)
        same[:] = [one is not None and one == other for one, other in encoded]
    left = np.flatnonzero(~same)
    contents = source.contents(each[left], match)
    pairs = zip(contents, target.contents(theirs[left], match), strict=True)
    same[left] = [one is not None and one == other for one, other in pairs]
    tells[left] = [content != (None, None) for content in contents]
    same &= source.timestamp[each] == target.timestamp[theirs]
    three = back.reshape(-1, len(_BESIDE))
    found: Flags = same[three].all(axis=1) & tells[three[:, 1]]
    return found
