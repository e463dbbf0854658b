"""Sums over compared group-partitions: of a flow, or by group or topic."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import By
from tsoffset.model import Precision
from tsoffset.terminal.output import by_name, plural

T = TypeVar("T")

_ORIGINS: Mapping[CommitOrigin | None, str] = {
    CommitOrigin.BOTH: "equal to both",
    CommitOrigin.CHECKPOINT: "of the checkpoint",
    CommitOrigin.EARLIER: "of an earlier checkpoint",
    CommitOrigin.TSOFFSET: "of tsoffset",
    CommitOrigin.OTHER: "of another origin",
    None: "without a committed offset",
}
_VERDICTS: Mapping[CheckpointVerdict, str] = {
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


class ComparisonTotals:
    """Counts over group-partitions. `reread`, `skipped`, `ours_reread` and `target_reread` are
    sums of upper bounds, in records; `reread_most` is the largest bound of one group-partition.

    `older` counts checkpoints of an older source offset than the group has committed now.
    `no_answer` counts missing translations by reason, `origins` the target groups' committed
    offsets by origin (None: no committed offset).
    """

    def __init__(self, pairs: Sequence[ComparedPair]) -> None:
        self.pairs = len(pairs)
        self.verdicts = Counter(pair.verdict for pair in pairs)
        reread = [p.records or 0 for p in pairs if p.verdict is CheckpointVerdict.REREAD]
        self.reread = sum(reread)
        self.reread_most = max(reread, default=0)
        self.skipped = sum(p.records or 0 for p in pairs if p.verdict is CheckpointVerdict.UNSAFE)
        self.older = sum(
            pair.theirs_source_offset < pair.source_offset
            for pair in pairs
            if pair.theirs_source_offset is not None and pair.source_offset is not None
        )
        self.precisions = Counter(p.ours_precision for p in pairs if p.ours_precision is not None)
        self.ours_reread = sum(pair.ours_reread_bound or 0 for pair in pairs)
        self.no_answer = Counter(
            str(pair.ours_reason or "no committed offset") for pair in pairs if pair.ours is None
        )
        self.origins = Counter(p.target_commit_is for p in pairs if p.partition is not None)
        self.target_reread = sum(pair.target_commit_reread or 0 for pair in pairs)

    def in_words(self, other: str) -> dict[str, str]:
        """A phrase each for `other` (the name of what tsoffset is compared with), tsoffset and the
        target groups."""
        verdicts = {
            **_VERDICTS,
            CheckpointVerdict.REREAD: f"re-read{_up_to(self.reread)}",
            CheckpointVerdict.UNSAFE: f"unsafe{_up_to(self.skipped, ' skipped')}",
        }
        of_other = _phrase(self.verdicts, verdicts, _ALWAYS)
        if self.older:
            of_other += (
                f"; {self.older} translated from an older committed offset than the current one"
            )
        precisions = {precision: precision.value for precision in Precision}
        of_tsoffset = _phrase(self.precisions, precisions, (Precision.EXACT,))
        of_tsoffset += _up_to(self.ours_reread, " re-read")
        of_tsoffset += f", {self.no_answer.total()} none{by_name(self.no_answer)}"
        origins = {**_ORIGINS, CommitOrigin.CHECKPOINT: f"of {other}"}
        of_target = _phrase(self.origins, origins, () if self.origins else (None,))
        if self.target_reread:
            of_target += f"; up to {plural(self.target_reread, 'record')} re-read"
        return {other: of_other, "tsoffset": of_tsoffset, "target groups": of_target}

    def in_fields(self) -> dict[str, int]:
        exact = self.precisions[Precision.EXACT]
        return {
            "pairs": self.pairs,
            **{verdict.value: self.verdicts[verdict] for verdict in CheckpointVerdict},
            "reread_records": self.reread,
            "reread_most": self.reread_most,
            "unsafe_records": self.skipped,
            "ours_exact": exact,
            "ours_inexact": self.precisions.total() - exact,
            "ours_none": self.no_answer.total(),
            "ours_reread_bound": self.ours_reread,
            "target_commit_reread": self.target_reread,
        }


def _phrase(counts: Counter[T], words: Mapping[T, str], always: Collection[T]) -> str:
    """The counts by name. Zeros are omitted, except those of `always`."""
    return ", ".join(
        f"{counts[one]} {name}" for one, name in words.items() if counts[one] or one in always
    )


def _up_to(records: int, words: str = "") -> str:
    return f" (up to {plural(records, 'record')}{words})" if records else ""


def sums(by: By, compared: FlowComparison) -> list[dict[str, Any]]:
    """The group-partitions summed by group or source topic (`name`; None if unknown), the worst
    first: by records skipped, then by records re-read. docs/commands.md has the fields."""
    pairs_of: defaultdict[str | None, list[ComparedPair]] = defaultdict(list)
    for pair in compared.pairs:
        pairs_of[pair.group if by is By.GROUP else pair.source_topic].append(pair)
    of: dict[str, Any] = {"flow": compared.flow, "compared_at_ms": compared.at_ms}
    return sorted(
        (
            of | {"name": name} | ComparisonTotals(pairs).in_fields()
            for name, pairs in pairs_of.items()
        ),
        key=lambda one: (
            -one["unsafe_records"],
            -one["unsafe"],
            -one["reread_records"],
            one["name"] or "",
        ),
    )


SUM_FIELDS = ("flow", "compared_at_ms", "name", *ComparisonTotals(()).in_fields())


_MOMENTS_KEPT = 500
Moments = list[tuple[int, ComparisonTotals]]
"""The times and totals of a flow's comparisons, the oldest first."""
PastTotals = defaultdict[str, Moments]
"""The moments of each flow."""


def add_totals(moments: Moments, compared: FlowComparison) -> None:
    """Add a comparison. If there are too many, every second one between the first and the last is
    dropped."""
    moments.append((compared.at_ms, ComparisonTotals(compared.pairs)))
    if len(moments) > _MOMENTS_KEPT:
        del moments[1:-1:2]
