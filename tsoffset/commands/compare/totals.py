"""Sums over compared group-partitions: of a flow, or by group or topic."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import By
from tsoffset.model import Precision
from tsoffset.terminal.output import by_name, counted

_ORIGINS = {
    CommitOrigin.BOTH: "equal to both",
    CommitOrigin.CHECKPOINT: "of {other}",
    CommitOrigin.EARLIER: "of an earlier checkpoint",
    CommitOrigin.TSOFFSET: "of tsoffset",
    CommitOrigin.OTHER: "of another origin",
    None: "without a committed offset",
}
_VERDICTS = {
    CheckpointVerdict.EQUAL: "equal",
    CheckpointVerdict.REREAD: "re-read",
    CheckpointVerdict.UNSAFE: "unsafe",
    CheckpointVerdict.NONE: "none",
    CheckpointVerdict.BEYOND: "past tsoffset's offset, not known to be unsafe",
    CheckpointVerdict.UNJUDGED: "not comparable (no translation by tsoffset)",
    CheckpointVerdict.FAILED: "failed",
}
# Mentioned even if there are none.
_ALWAYS = tuple(_VERDICTS)[:4]


@dataclass(frozen=True, slots=True)
class ComparisonTotals:
    """Counts over group-partitions. `reread`, `skipped`, `ours_reread` and `target_reread` are
    sums of upper bounds, in records; `reread_most` is the largest bound of one group-partition.

    `older` counts checkpoints of an older source offset than the group has committed now.
    `no_answer` counts missing translations by reason, `origins` the target groups' committed
    offsets by origin (None: no committed offset).
    """

    pairs: int
    verdicts: Counter[CheckpointVerdict]
    reread: int
    reread_most: int
    skipped: int
    older: int
    precisions: Counter[Precision]
    ours_reread: int
    no_answer: Counter[str]
    origins: Counter[CommitOrigin | None]
    target_reread: int

    @classmethod
    def of(cls, pairs: Iterable[ComparedPair]) -> "ComparisonTotals":
        pairs = list(pairs)
        reread = [p.records or 0 for p in pairs if p.verdict is CheckpointVerdict.REREAD]
        return cls(
            pairs=len(pairs),
            verdicts=Counter(pair.verdict for pair in pairs),
            reread=sum(reread),
            reread_most=max(reread, default=0),
            skipped=sum(p.records or 0 for p in pairs if p.verdict is CheckpointVerdict.UNSAFE),
            older=sum(
                pair.theirs_source_offset < pair.source_offset
                for pair in pairs
                if pair.theirs_source_offset is not None and pair.source_offset is not None
            ),
            precisions=Counter(p.ours_precision for p in pairs if p.ours_precision is not None),
            ours_reread=sum(pair.ours_reread_bound or 0 for pair in pairs),
            no_answer=Counter(
                str(pair.ours_reason or "no committed offset")
                for pair in pairs
                if pair.ours is None
            ),
            origins=Counter(pair.target_commit_is for pair in pairs if pair.partition is not None),
            target_reread=sum(pair.target_commit_reread or 0 for pair in pairs),
        )

    def in_words(self, other: str) -> dict[str, str]:
        """A phrase each for `other` (the name of what tsoffset is compared with), tsoffset and the
        target groups."""
        bounds = {
            CheckpointVerdict.REREAD: _up_to(self.reread, ""),
            CheckpointVerdict.UNSAFE: _up_to(self.skipped, " skipped"),
        }
        of_other = [
            f"{self.verdicts[verdict]} {words}{bounds.get(verdict, '')}"
            for verdict, words in _VERDICTS.items()
            if self.verdicts[verdict] or verdict in _ALWAYS
        ]
        if self.older:
            of_other[-1] += (
                f"; {self.older} translated from an older committed offset than the current one"
            )
        of_tsoffset = [
            f"{self.precisions[precision]} {precision.value}"
            for precision in Precision
            if self.precisions[precision] or precision is Precision.EXACT
        ]
        of_tsoffset[-1] += _up_to(self.ours_reread, " re-read")
        of_tsoffset.append(f"{self.no_answer.total()} none{by_name(self.no_answer)}")
        of_target = [
            f"{self.origins[origin]} {words.format(other=other)}"
            for origin, words in _ORIGINS.items()
            if self.origins[origin]
        ]
        of_target = of_target or [f"0 {_ORIGINS[None]}"]
        if self.target_reread:
            of_target[-1] += f"; up to {counted(self.target_reread, 'record')} re-read"
        phrases = {other: of_other, "tsoffset": of_tsoffset, "target groups": of_target}
        return {name: ", ".join(words) for name, words in phrases.items()}

    def in_fields(self) -> dict[str, int]:
        return {
            "pairs": self.pairs,
            **{f"mirrormaker_{one.value}": self.verdicts[one] for one in CheckpointVerdict},
            "mirrormaker_reread_records": self.reread,
            "mirrormaker_unsafe_records": self.skipped,
            **{f"tsoffset_{one.value}": self.precisions[one] for one in Precision},
            "tsoffset_none": self.no_answer.total(),
            "tsoffset_reread_bound": self.ours_reread,
            "target_commits_reread_records": self.target_reread,
        }


def _up_to(records: int, words: str) -> str:
    return f" (up to {counted(records, 'record')}{words})" if records else ""


@dataclass(frozen=True, slots=True)
class Sum:
    """The group-partitions of one group or one source topic (`name`; None if unknown)."""

    flow: str
    compared_at_ms: int
    name: str | None
    pairs: int
    equal: int
    reread: int
    reread_records: int
    reread_most: int
    unsafe: int
    unsafe_records: int
    beyond: int
    none: int
    unjudged: int
    failed: int
    ours_exact: int
    ours_inexact: int
    ours_none: int
    ours_reread_bound: int
    target_commit_reread: int


def sums(by: By, pairs: Iterable[ComparedPair]) -> list[Sum]:
    """The pairs of one comparison summed by group or topic, the worst first: by records skipped,
    then by records re-read."""
    pairs_of: defaultdict[str | None, list[ComparedPair]] = defaultdict(list)
    for pair in pairs:
        pairs_of[pair.group if by is By.GROUP else pair.source_topic].append(pair)
    return sorted(
        (_sum(name, some) for name, some in pairs_of.items()),
        key=lambda one: (-one.unsafe_records, -one.unsafe, -one.reread_records, one.name or ""),
    )


def _sum(name: str | None, pairs: list[ComparedPair]) -> Sum:
    total = ComparisonTotals.of(pairs)
    exact = total.precisions[Precision.EXACT]
    return Sum(
        flow=pairs[0].flow,
        compared_at_ms=pairs[0].compared_at_ms,
        name=name,
        pairs=total.pairs,
        **{verdict.value: total.verdicts[verdict] for verdict in CheckpointVerdict},
        reread_records=total.reread,
        reread_most=total.reread_most,
        unsafe_records=total.skipped,
        ours_exact=exact,
        ours_inexact=total.precisions.total() - exact,
        ours_none=total.no_answer.total(),
        ours_reread_bound=total.ours_reread,
        target_commit_reread=total.target_reread,
    )


_MOMENTS_KEPT = 500
Moments = list[tuple[int, ComparisonTotals]]
"""The times and totals of a flow's comparisons, the oldest first."""
PastTotals = defaultdict[str, Moments]
"""The moments of each flow."""


def add_totals(moments: Moments, compared: FlowComparison) -> None:
    """Add a comparison; of many, fewer of the older ones are kept."""
    moments.append((compared.at_ms, ComparisonTotals.of(compared.pairs)))
    if len(moments) > _MOMENTS_KEPT:
        del moments[1:-1:2]
