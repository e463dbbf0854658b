"""Ordinary positions of many partitions, answered at once.

A strict subset of what the conversation (`tsoffset.rule.translate`) answers: wherever this says
yes, `prove` would say yes to the same pair, after one question or none (but where a record is
malformed in the same bytes on both sides, which it would refuse to look at). All else is left to
the conversation. What a position must show, each condition named for what `prove` asks:

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

from typing import NamedTuple

import numpy as np

from tsoffset.columns import RecordColumns
from tsoffset.model import Basis, Precision, Proof, Reason, Safety, Skipped, Translated
from tsoffset.records import ALL, NO_TIMESTAMP, Flags, Numbers
from tsoffset.rule.translate import Translation


class Answers(NamedTuple):
    """Positions answered at once, as columns: each resumes at the copy of the record that stands
    at its offset and bears this timestamp."""

    offset: Numbers
    copy: Numbers
    timestamp: Numbers

    def only(self, wanted: Flags) -> "Answers":
        """Those that are wanted."""
        return Answers(*(column[wanted] for column in self))


NO_ANSWERS = Answers(*[np.zeros(0, np.int64)] * 3)


def ordinary(
    source: RecordColumns,
    target: RecordColumns,
    log: Numbers,
    offset: Numbers,
    distance: Numbers,
    match: frozenset[str],
) -> tuple[Flags, Answers]:
    """Which positions are answered, and the answers to these.

    `log` and `offset` are the positions; a log has one number on both sides, and `distance` is
    that of proven pairs below and above each (condition 1 is the caller's).
    """
    at, ok = source.find(log, offset)
    stamps = np.full(len(offset), NO_TIMESTAMP)
    stamps[ok] = source.timestamp[at[ok]]
    ok &= stamps != NO_TIMESTAMP
    ok[ok] = source.run_ends[at[ok]]
    for step in (0, 1, -1):
        here = offset[ok] + step
        ok[ok] = _equal(source, target, log[ok], here, here + distance[ok], match)
    ok[ok] = source.alone(at[ok], match)
    image, _ = target.find(log[ok], offset[ok] + distance[ok])
    ok[ok] = target.alone(image, match)
    ok[ok] = _tells(source, at[ok], match)
    return ok, Answers(offset[ok], offset[ok] + distance[ok], stamps[ok])


def next_record(
    offset: int, copy: int, timestamp_ms: int, above: tuple[int, int] | None
) -> Translation:
    """The translation of such a position: it resumes at the copy of its next record. `above` is the
    safe pair that shows it."""
    pairs = ((offset, copy),)
    safety = Safety(Proof.FRONTIER, above)
    outcome = Translated(copy, Precision.EXACT, 0, copy, copy, Basis.NEXT_RECORD, pairs, safety)
    return Translation(outcome, timestamp_ms)


def differs(at_once: Translated, conversed: Translated | Skipped) -> bool:
    """Whether a conversation about such a position contradicts what was answered at once: it is
    exact and resumes at another record; it is not, and resumes further below than its bound says;
    or it has no answer. Of a target that stamps records itself no answer counts."""
    if isinstance(conversed, Skipped):
        return conversed.reason is not Reason.TARGET_REWRITES_TIMESTAMPS
    at = at_once.target_offset
    if conversed.precision is Precision.EXACT:
        return not conversed.equivalent_from <= at <= conversed.equivalent_to
    return at > conversed.equivalent_to + (conversed.reread_bound or 0)


def _tells(records: RecordColumns, at: Numbers, match: frozenset[str]) -> Flags:
    """Whether what counts of each record's key and value is not null."""
    if match == ALL:
        # Of nulls there are no bytes; nor of records whose bytes are gone.
        found = np.array([one is not None for one in records.encoded(at)], bool)
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
    """Whether there is a record at each of these source offsets, and an equal one on the target."""
    at, there = source.find(log, original)
    image, mirrored = target.find(log, copy)
    same = there & mirrored
    same[same] = source.timestamp[at[same]] == target.timestamp[image[same]]
    both = np.flatnonzero(same)
    if match == ALL:
        # The same bytes tell without digests; that they differ tells nothing.
        encoded = zip(source.encoded(at[both]), target.encoded(image[both]), strict=True)
        both = both[[one is None or one != other for one, other in encoded]]
    contents = source.contents(at[both], match), target.contents(image[both], match)
    same[both] = [one is not None and one == other for one, other in zip(*contents, strict=True)]
    return same
