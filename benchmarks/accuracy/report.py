"""The tables of docs/accuracy.md as Markdown, put between its two marks."""

from collections.abc import Mapping, Sequence

from benchmarks.accuracy.judging import RULES, TOGETHER, TSOFFSET, Tally
from tsoffset.model import Precision

BEGIN = "<!-- made by `python -m benchmarks.accuracy`: begin -->"
END = "<!-- made by `python -m benchmarks.accuracy`: end -->"

COMPARED = (TSOFFSET, *RULES)

Tallies = Mapping[str, Mapping[str, Tally]]


class MarksMissing(ValueError):
    """The page has no place for the text."""


def placed(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with what lies between the two marks replaced. Raises MarksMissing."""
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise MarksMissing(f"the page needs the lines {begin} and {end}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def precision_table(tallies: Tallies) -> str:
    """Per kind: what tsoffset says of its answers, and whether that holds."""
    head = (
        "kind of log",
        "positions",
        *(str(p) for p in (Precision.EXACT, Precision.FRONTIER, Precision.BOUNDED)),
        "none",
        "unsafe",
        "bound too low",
        "re-reads mean / max",
        "exact together",
        "questions a position alone / together",
    )
    rows = []
    for kind, of_rules in tallies.items():
        tally = of_rules[TSOFFSET]
        shares = [
            share(tally.precisions[precision], tally.positions)
            for precision in (Precision.EXACT, Precision.FRONTIER, Precision.BOUNDED)
        ]
        rows.append(
            (
                kind,
                f"{tally.positions:,}",
                *shares,
                share(tally.without_answer, tally.positions),
                alarming(tally.unsafe),
                f"{tally.too_low:,}",
                rereads(tally),
                _together(of_rules[TOGETHER]),
                f"{tally.mean_questions:.2f} / {of_rules[TOGETHER].mean_questions:.2f}",
            )
        )
    return table(head, rows)


def _together(tally: Tally) -> str:
    exact = share(tally.precisions[Precision.EXACT], tally.positions)
    return f"{exact}, {alarming(tally.unsafe)} unsafe" if tally.unsafe else exact


def comparison_tables(tallies: Tallies) -> str:
    """Per kind and rule: exact answers with the unsafe ones, and what the rest costs."""
    parts = (
        (
            "Share of positions whose answer re-reads nothing. Bold: number of unsafe answers.",
            _exact,
        ),
        ("Re-reads of the safe answers (mean / max), and positions without an answer.", _cost),
    )
    blocks = []
    for title, cell in parts:
        rows = [
            (kind, *(cell(of_rules[r]) for r in COMPARED)) for kind, of_rules in tallies.items()
        ]
        blocks.append(f"{title}\n\n{table(('kind of log', *COMPARED), rows)}")
    return "\n\n".join(blocks)


def _exact(tally: Tally) -> str:
    exact = share(tally.without_rereads, tally.positions)
    return f"{exact}, {alarming(tally.unsafe)} unsafe" if tally.unsafe else exact


def _cost(tally: Tally) -> str:
    none = tally.without_answer
    return rereads(tally) + (f", none {share(none, tally.positions)}" if none else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def share(count: int, total: int) -> str:
    """A share in percent; 100 and 0 only where it is all or none."""
    if count in (0, total):
        return "100 %" if count else "0"
    return f"{min(99.9, max(0.1, 100 * count / total)):.1f} %"


def alarming(count: int) -> str:
    """A count that ought to be 0."""
    return f"**{count:,}**" if count else "0"


def rereads(tally: Tally) -> str:
    """Mean and maximum over the safe answers."""
    mean = tally.mean_rereads
    return f"{mean:,.0f} / {tally.most_rereads:,}" if mean >= 10 else _small(tally)


def _small(tally: Tally) -> str:
    if not tally.most_rereads:
        return "0"
    return f"{tally.mean_rereads:.2g} / {tally.most_rereads:,}"
