"""What all pairs of a flow come to."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

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
    """Counts over pairs; `reread`, `skipped` and `ours_reread` add up records at most.

    `older` counts checkpoints of an earlier commit than the group has now. `no_answer` counts
    why there is no translation of ours, by reason; `standing` whose the target groups' commits
    are, None for those without one.
    """

    pairs: int
    verdicts: Counter[Verdict]
    reread: int
    skipped: int
    older: int
    precisions: Counter[Precision]
    ours_reread: int
    no_answer: Counter[str]
    standing: Counter[Whose | None]

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
        return ", ".join(words)
