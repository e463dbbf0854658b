"""Partitions whose source is read twice: it has transactions, and names do not tell which side is
the mirror.

If the source is the original, a replicator that reads uncommitted records copies aborted ones, too,
and a group may have yet to read them. If it is the replica, aborted records are what an
exactly-once replicator left when it failed, and a group that has passed them has not read their
originals. So the second reading omits aborted records, and the lower answer counts: it skips
nothing, whichever side is the mirror. Both readings have the records of open transactions.
"""

from dataclasses import replace
from operator import attrgetter

from tsoffset.cycle.cache_update import Learned
from tsoffset.cycle.translated_partition import TranslatedPartition
from tsoffset.model import Precision, Translated
from tsoffset.rule.translate import Translation


def lower_of(first: TranslatedPartition, second: TranslatedPartition) -> TranslatedPartition:
    """The partition with the lower answer of both readings at each offset. An answer is cached if
    both readings have it, and both hold for as long. The pairs are cached as predictions alone: the
    next cycle reads their records again, and so notices the transactions."""
    first, second = first.one_by_one(), second.one_by_one()
    translations = {
        offset: _lower(one, second.translations[offset])
        for offset, one in first.translations.items()
    }
    holds = {
        offset: held
        for offset, held in first.learned.holds.items()
        if held == second.learned.holds.get(offset)
        and translations[offset].outcome == first.translations[offset].outcome
    }
    cache = first.learned.cache
    if cache is not None:
        cache = replace(cache, frontier=None, first_from=None)
    rewrites = first.target_rewrites_timestamps or second.target_rewrites_timestamps
    return replace(
        first,
        translations=translations,
        learned=Learned(cache, holds),
        target_rewrites_timestamps=rewrites,
    )


def _lower(first: Translation, second: Translation) -> Translation:
    """The lower answer, with a bound that holds in both readings; no answer, if one has none."""
    one, other = first.outcome, second.outcome
    if not isinstance(one, Translated):
        return first
    if not isinstance(other, Translated):
        return replace(first, outcome=other)
    low, high = sorted((one, other), key=attrgetter("target_offset"))
    precision = low.precision
    if low.reread_bound is None or high.reread_bound is None:
        # By timestamps alone (`translation.proof`): nothing is proven.
        bound, precision = None, Precision.UNPROVEN
    else:
        between = high.target_offset - low.target_offset
        bound = max(low.reread_bound, high.reread_bound + between)
        if bound and precision is Precision.EXACT:
            precision = Precision.BOUNDED
    return replace(first, outcome=replace(low, reread_bound=bound, precision=precision))
