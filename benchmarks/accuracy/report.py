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
    """What tsoffset says of its answers, and whether that holds: a row for each kind in which it
    has other answers than safe and exact ones."""
    stated = (Precision.EXACT, Precision.FRONTIER, Precision.BOUNDED)
    head = (
        "kind of log",
        *map(str, stated),
        "none",
        "unsafe",
        "bound too low",
        "re-reads mean / max",
        "exact together",
    )
    rows = []
    for kind, of_rules in tallies.items():
        tally, together = of_rules[TSOFFSET], of_rules[TOGETHER]
        if _is_exact(tally) and _is_exact(together):
            continue
        rows.append(
            (
                kind,
                *(share(tally.precisions[precision], tally.positions) for precision in stated),
                share(tally.without_answer, tally.positions),
                alarming(tally.unsafe),
                f"{tally.too_low:,}",
                rereads(tally),
                _together(together),
            )
        )
    missing = (
        f"{len(tallies) - len(rows)} of the {len(tallies)} kinds have no row: there, every position"
        " has an exact and safe answer, alone and together."
    )
    return f"{missing}\n\n{table(head, rows)}"


def _is_exact(tally: Tally) -> bool:
    return tally.positions == tally.without_rereads == tally.precisions[Precision.EXACT]


def _together(tally: Tally) -> str:
    exact = share(tally.precisions[Precision.EXACT], tally.positions)
    return f"{exact}, {alarming(tally.unsafe)} unsafe" if tally.unsafe else exact


def unsafe_table(small: Tallies, long: Tallies) -> str:
    """The unsafe answers of each rule, in short / long logs, per kind that has any."""
    rows = []
    for kind in small:
        counts = [(small[kind][rule].unsafe, long[kind][rule].unsafe) for rule in COMPARED]
        if any(map(any, counts)):
            cells = (" / ".join(map(alarming, both)) if any(both) else "0" for both in counts)
            rows.append((kind, *cells))
    return table(("kind of log", *COMPARED), rows)


def comparison_table(tallies: Tallies) -> str:
    """Per kind and rule: the share of answers without re-reads, and what the others cost. Apart
    from the first kind, those have no row in which timestamps alone cost nothing, either."""
    first, *_ = tallies
    rows = [
        (kind, *(_cost(of_rules[r]) for r in COMPARED))
        for kind, of_rules in tallies.items()
        if kind == first or not all(_costs_nothing(of_rules[r]) for r in COMPARED[:2])
    ]
    missing = (
        f"{len(tallies) - len(rows)} of the {len(tallies)} kinds have no row: there, every answer"
        f" of {COMPARED[0]} and {COMPARED[1]} is safe and re-reads nothing."
    )
    return f"{missing}\n\n{table(('kind of log', *COMPARED), rows)}"


def _costs_nothing(tally: Tally) -> bool:
    return tally.positions == tally.without_rereads


def _cost(tally: Tally) -> str:
    without = share(tally.without_rereads, tally.positions)
    mean = f" ({_mean(tally)})" if tally.most_rereads else ""
    none = tally.without_answer
    return f"{without}{mean}" + (f", none {share(none, tally.positions)}" if none else "")


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
    return f"{_mean(tally)} / {tally.most_rereads:,}" if tally.most_rereads else "0"


def _mean(tally: Tally) -> str:
    mean = tally.mean_rereads
    return f"{mean:,.0f}" if mean >= 10 else f"{mean:.2g}"
