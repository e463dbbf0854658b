"""Sums over compared group-partitions: of a flow, or by group or topic."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

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
}


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
        return {
            other: self._other_in_words(),
            "tsoffset": self._tsoffset_in_words(),
            "target groups": self._target_in_words(other),
        }

    def in_fields(self) -> dict[str, int]:
        """The numbers as fields of a log event."""
        return {
            "pairs": self.pairs,
            **{
                f"mirrormaker_{verdict.value}": self.verdicts[verdict]
                for verdict in CheckpointVerdict
            },
            "mirrormaker_reread_records": self.reread,
            "mirrormaker_unsafe_records": self.skipped,
            **{
                f"tsoffset_{precision.value}": self.precisions[precision] for precision in Precision
            },
            "tsoffset_none": self.no_answer.total(),
            "tsoffset_reread_bound": self.ours_reread,
            "target_commits_reread_records": self.target_reread,
        }

    def _other_in_words(self) -> str:
        reread = f" (up to {counted(self.reread, 'record')})" if self.reread else ""
        skipped = f" (up to {counted(self.skipped, 'record')} skipped)" if self.skipped else ""
        words = [
            f"{self.verdicts[verdict]} {name}"
            for verdict, name, is_rare in (
                (CheckpointVerdict.EQUAL, "equal", False),
                (CheckpointVerdict.REREAD, f"re-read{reread}", False),
                (CheckpointVerdict.UNSAFE, f"unsafe{skipped}", False),
                (CheckpointVerdict.NONE, "none", False),
                (
                    CheckpointVerdict.BEYOND,
                    "past tsoffset's offset, not known to be unsafe",
                    True,
                ),
                (
                    CheckpointVerdict.UNJUDGED,
                    "not comparable (no translation by tsoffset)",
                    True,
                ),
                (CheckpointVerdict.FAILED, "failed", True),
            )
            if self.verdicts[verdict] or not is_rare
        ]
        older = f"; {self.older} of an older committed offset than the group has now"
        return ", ".join(words) + (older if self.older else "")

    def _tsoffset_in_words(self) -> str:
        words = [f"{self.precisions[Precision.EXACT]} exact"]
        words += [
            f"{self.precisions[precision]} {precision.value}"
            for precision in Precision
            if precision is not Precision.EXACT and self.precisions[precision]
        ]
        if self.ours_reread:
            words[-1] += f" (up to {counted(self.ours_reread, 'record')} re-read)"
        return ", ".join([*words, f"{self.no_answer.total()} none{by_name(self.no_answer)}"])

    def _target_in_words(self, other: str) -> str:
        words = [
            f"{self.origins[origin]} {name.format(other=other)}"
            for origin, name in _ORIGINS.items()
            if self.origins[origin]
        ]
        if self.origins[None] or not words:
            words.append(f"{self.origins[None]} without a committed offset")
        again = f"; up to {counted(self.target_reread, 'record')} re-read"
        return ", ".join(words) + (again if self.target_reread else "")


@dataclass(frozen=True, slots=True)
class Sum:
    """The group-partitions of one group or one source topic (`name`; None if unknown).

    `reread_records`, `unsafe_records`, `ours_reread_bound` and `target_commit_reread` are sums of
    upper bounds; `reread_most` is the largest of one group-partition.
    """

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


class PastTotals:
    """The times and totals of each flow's comparisons, the oldest first; of many, fewer of the
    older ones."""

    def __init__(self) -> None:
        self.moments: defaultdict[str, list[tuple[int, ComparisonTotals]]] = defaultdict(list)

    def add(self, compared: FlowComparison) -> None:
        moments = self.moments[compared.flow]
        moments.append((compared.at_ms, ComparisonTotals.of(compared.pairs)))
        if len(moments) > _MOMENTS_KEPT:
            del moments[1:-1:2]
