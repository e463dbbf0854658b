"""A translated offset with its basis, its pairs, and the target offsets that resume at the same
record."""

from dataclasses import replace

from tsoffset.model import Basis, Precision, Safety, Translated
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.pairs import Pair


def make_answer(
    evidence: Evidence,
    target_offset: int,
    reread_bound: int,
    basis: Basis | None,
    *pairs: Pair | tuple[int, int] | None,
    precision: Precision | None = None,
    safety: Safety | None = None,
) -> Translated:
    """Exact if nothing is re-read, unless `precision` says otherwise. `safety` is the proof if no
    pair has one. The range of equivalent offsets comes from the known target records."""
    if precision is None:
        precision = Precision.EXACT if reread_bound == 0 else Precision.BOUNDED
    target = evidence.target
    before = target.previous_known(target_offset)
    at_or_after = target.next_known(target_offset)
    return Translated(
        target_offset,
        precision,
        reread_bound,
        target.covered_from(target_offset) if before is None else before.offset + 1,
        target.covered_to(target_offset) if at_or_after is None else at_or_after.offset,
        basis,
        tuple(
            (pair.source_offset, pair.target_offset) if isinstance(pair, Pair) else pair
            for pair in pairs
            if pair is not None
        ),
        next((it.safety for it in pairs if isinstance(it, Pair) and it.safety is not None), safety),
    )


def with_more(answer: Translated, rereads: int) -> Translated:
    """The answer with a bound that is higher by this many re-reads."""
    if not rereads:
        return answer
    bound = (answer.reread_bound or 0) + rereads
    exact = answer.precision is Precision.EXACT
    return replace(
        answer,
        reread_bound=bound,
        precision=Precision.BOUNDED if exact else answer.precision,
    )
