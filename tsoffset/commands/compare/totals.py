"""What pairs come to: all of a flow, or those of each group or topic."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tsoffset.commands.compare.asked import By
from tsoffset.commands.compare.judgement import ComparedPair, Verdict, Whose
from tsoffset.model import Precision
from tsoffset.terminal.output import by_name, counted

_WHOSE = {
    Whose.BOTH: "as both say",
    Whose.THEIRS: "as theirs",
    Whose.EARLIER: "as an earlier checkpoint said",
    Whose.OURS: "as ours",
    Whose.OTHER: "from elsewhere",
}


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over pairs; `reread`, `skipped`, `ours_reread` and `target_reread` add up records at
    most, `reread_most` is the most of one pair.

    `older` counts checkpoints of an earlier commit than the group has now. `no_answer` counts
    why there is no translation of ours, by reason; `standing` whose the target groups' commits
    are, None for those without one.
    """

    pairs: int
    verdicts: Counter[Verdict]
    reread: int
    reread_most: int
    skipped: int
    older: int
    precisions: Counter[Precision]
    ours_reread: int
    no_answer: Counter[str]
    standing: Counter[Whose | None]
    target_reread: int

    @classmethod
    def of(cls, pairs: Iterable[ComparedPair]) -> "Totals":
        """Count the pairs."""
        pairs = list(pairs)
        records: Counter[Verdict] = Counter()
        no_answer: Counter[str] = Counter()
        for pair in pairs:
            records[pair.verdict] += pair.records or 0
            if pair.ours is None:
                no_answer[pair.ours_reason.value if pair.ours_reason else "no commit"] += 1
        return cls(
            len(pairs),
            Counter(pair.verdict for pair in pairs),
            records[Verdict.REREAD],
            max((p.records or 0 for p in pairs if p.verdict is Verdict.REREAD), default=0),
            records[Verdict.UNSAFE],
            sum(
                pair.theirs_source_offset < pair.source_offset
                for pair in pairs
                if pair.theirs_source_offset is not None and pair.source_offset is not None
            ),
            Counter(pair.ours_precision for pair in pairs if pair.ours_precision is not None),
            sum(pair.ours_reread_bound or 0 for pair in pairs),
            no_answer,
            Counter(pair.target_commit_is for pair in pairs if pair.partition is not None),
            sum(pair.target_commit_reread or 0 for pair in pairs),
        )

    def in_words(self) -> dict[str, str]:
        """Theirs, ours, and what is on the target: a phrase each, by its name."""
        return {"theirs": self._theirs(), "ours": self._ours(), "target": self._target()}

    def in_fields(self) -> dict[str, int]:
        """The numbers as a log's fields."""
        return {
            "pairs": self.pairs,
            **{f"theirs_{verdict.value}": self.verdicts[verdict] for verdict in Verdict},
            "theirs_reread_records": self.reread,
            "theirs_unsafe_records": self.skipped,
            **{f"ours_{precision.value}": self.precisions[precision] for precision in Precision},
            "ours_none": self.no_answer.total(),
            "ours_reread_bound": self.ours_reread,
            "target_commits_reread_records": self.target_reread,
        }

    def _theirs(self) -> str:
        counts = self.verdicts
        reread = f"{counts[Verdict.REREAD]} re-read"
        if self.reread:
            reread += f" (at most {counted(self.reread, 'record')} in all)"
        unsafe = f"{counts[Verdict.UNSAFE]} unsafe"
        if self.skipped:
            unsafe += f" (at most {counted(self.skipped, 'record')} skipped in all)"
        words = [f"{counts[Verdict.EQUAL]} equal", reread, unsafe, f"{counts[Verdict.NONE]} none"]
        words += [
            f"{counts[verdict]} {name}"
            for verdict, name in (
                (Verdict.BEYOND, "beyond ours and not known to be unsafe"),
                (Verdict.UNJUDGED, "without ours to judge by"),
                (Verdict.FAILED, "failed"),
            )
            if counts[verdict]
        ]
        older = f"; {self.older} for an older commit than the group has now" if self.older else ""
        return ", ".join(words) + older

    def _ours(self) -> str:
        words = [f"{self.precisions[Precision.EXACT]} exact"]
        words += [
            f"{self.precisions[precision]} {precision.value}"
            for precision in Precision
            if precision is not Precision.EXACT and self.precisions[precision]
        ]
        if self.ours_reread:
            words[-1] += f" (at most {counted(self.ours_reread, 'record')} again in all)"
        return ", ".join([*words, f"{self.no_answer.total()} none{by_name(self.no_answer)}"])

    def _target(self) -> str:
        words = [
            f"{self.standing[whose]} {name}"
            for whose, name in _WHOSE.items()
            if self.standing[whose]
        ]
        if self.standing[None] or not words:
            words.append(f"{self.standing[None]} without a commit")
        again = f"; at most {counted(self.target_reread, 'record')} again in all"
        return ", ".join(words) + (again if self.target_reread else "")


@dataclass(frozen=True, slots=True)
class Sum:
    """The pairs of one group or one source topic (`name`; None where that is not known).

    Beside the number of pairs by verdict: `reread_records` and `unsafe_records` at most, the
    most of one pair, and what ours come to. `target_commit_reread` adds up what would be read
    again from what the target groups have now.
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
    """The pairs of one comparison added up by group or topic, the worst first: those with records
    that are skipped, then by records that are read again."""
    of: defaultdict[str | None, list[ComparedPair]] = defaultdict(list)
    for pair in pairs:
        of[pair.group if by is By.GROUP else pair.source_topic].append(pair)
    found = [_sum(name, some) for name, some in of.items()]
    return sorted(
        found,
        key=lambda one: (-one.unsafe_records, -one.unsafe, -one.reread_records, one.name or ""),
    )


def _sum(name: str | None, pairs: list[ComparedPair]) -> Sum:
    total = Totals.of(pairs)
    exact = total.precisions[Precision.EXACT]
    return Sum(
        flow=pairs[0].flow,
        compared_at_ms=pairs[0].compared_at_ms,
        name=name,
        pairs=total.pairs,
        **{verdict.value: total.verdicts[verdict] for verdict in Verdict},
        reread_records=total.reread,
        reread_most=total.reread_most,
        unsafe_records=total.skipped,
        ours_exact=exact,
        ours_inexact=total.precisions.total() - exact,
        ours_none=total.no_answer.total(),
        ours_reread_bound=total.ours_reread,
        target_commit_reread=total.target_reread,
    )
