"""The fast path: offsets of many partitions, translated together from columns.

It answers a strict subset of what `tsoffset.rule.translate` answers: wherever the fast path has an
answer, `prove` would prove the same pair, with one question or none. (One exception: a record that
is malformed in the same bytes on both sides, which `prove` would refuse to decode.) The generator
answers everything else. The conditions for a source offset C, and what `prove` needs each for:

    source   ... o ... [C-1] [C] [C+1] ... o' ...      (o, q) and (o', q') are proven pairs of this
    target   ... q ... [X-1] [X] [X+1] ... q' ...      cycle, of equal distance; X = C + q - o

1. *Between two pairs of one distance.* The replicator went once from one to the other, so X is
   the lowest copy; and X < q' <= f, the frontier: everything that follows C lies behind X.
2. *The three records are known on both sides, and nothing can lie between them*: so C is the next
   record to read itself, and the answer resumes at no earlier offset.
3. *All three are equal* in what `translation.match` names: X is a copy, and its neighbors
   distinguish it from the copy of a duplicate elsewhere.
4. *The run of C's timestamp is known to its end*, because most duplicates lie in it; and *no other
   known record equals C*, on either side: neither a later one, nor an earlier one (a re-read).
5. *The compared parts of key and value are not null*, and the record has a timestamp: otherwise
   equality says nothing.

The caller checks, once a partition, whether the mirror was restarted before its first record, which
costs re-reads and not safety: see `tsoffset.cycle.partition`.
"""

from typing import NamedTuple

import numpy as np

from tsoffset.columns import RecordColumns
from tsoffset.model import Basis, Precision, Proof, Safety, Translated
from tsoffset.records import ALL, NO_TIMESTAMP, Flags, Numbers
from tsoffset.rule.translate import Translation


class Answers(NamedTuple):
    """Translated offsets as columns: each resumes at the copy of the record at its offset, which
    has this timestamp."""

    offset: Numbers
    copy: Numbers
    timestamp: Numbers


NO_ANSWERS = Answers(*[np.zeros(0, np.int64)] * 3)


def translate_columns(
    source: RecordColumns,
    target: RecordColumns,
    log: Numbers,
    offset: Numbers,
    distance: Numbers,
    match: frozenset[str],
) -> tuple[Flags, Answers]:
    """Which offsets are answered, and their answers.

    `log` and `offset` are the source offsets. A log has one number on both sides. `distance` is
    that of the proven pairs below and above each (condition 1 is the caller's).
    """
    at, ok = source.find(log, offset)
    stamps = np.full(len(offset), NO_TIMESTAMP)
    stamps[ok] = source.timestamp[at[ok]]
    ok &= stamps != NO_TIMESTAMP
    ok[ok] = source.run_ends[at[ok]]
    for step in (0, 1, -1):
        here = offset[ok] + step
        ok[ok] = _equal(source, target, log[ok], here, here + distance[ok], match)
    ok[ok] = source.is_unique(at[ok], match)
    copies, _ = target.find(log[ok], offset[ok] + distance[ok])
    ok[ok] = target.is_unique(copies, match)
    ok[ok] = _has_content(source, at[ok], match)
    return ok, Answers(offset[ok], offset[ok] + distance[ok], stamps[ok])


def next_record(
    offset: int, copy: int, timestamp_ms: int, above: tuple[int, int] | None
) -> Translation:
    """The translation of an offset that the fast path answers: it resumes at the copy of its next
    record. `above` is the safe pair that proves it."""
    pairs = ((offset, copy),)
    safety = Safety(Proof.FRONTIER, above)
    outcome = Translated(copy, Precision.EXACT, 0, copy, copy, Basis.NEXT_RECORD, pairs, safety)
    return Translation(outcome, timestamp_ms)


def _has_content(records: RecordColumns, at: Numbers, match: frozenset[str]) -> Flags:
    """Whether the compared parts of each record's key and value are not null."""
    if match == ALL:
        # Null parts have no bytes; nor do records whose bytes were dropped.
        found = np.array([one is not None for one in records.comparable_bytes(at)], bool)
    else:
        found = np.zeros(len(at), bool)
    rest = np.flatnonzero(~found)
    contents = records.contents(at[rest], match)
    found[rest] = [one not in (None, (None, None)) for one in contents]
    return found


def _equal(
    source: RecordColumns,
    target: RecordColumns,
    log: Numbers,
    original: Numbers,
    copy: Numbers,
    match: frozenset[str],
) -> Flags:
    """Whether the source has a record at each of these offsets, and the target an equal one."""
    at, found = source.find(log, original)
    copies, mirrored = target.find(log, copy)
    same = found & mirrored
    same[same] = source.timestamp[at[same]] == target.timestamp[copies[same]]
    both = np.flatnonzero(same)
    if match == ALL:
        # Equal bytes need no digests; different bytes prove nothing.
        encoded = zip(
            source.comparable_bytes(at[both]), target.comparable_bytes(copies[both]), strict=True
        )
        both = both[[one is None or one != other for one, other in encoded]]
    contents = source.contents(at[both], match), target.contents(copies[both], match)
    same[both] = [one is not None and one == other for one, other in zip(*contents, strict=True)]
    return same
