"""The comparison as one HTML file that needs nothing else: no script, no font, no address."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.plots import MARKS, Plot, distribution, over_time, reread_over_lag
from tsoffset.commands.compare.report import at_words
from tsoffset.commands.compare.totals import ComparisonTotals, PastTotals, Sum, sums
from tsoffset.printable import printable
from tsoffset.terminal.tables import place
from tsoffset.version import __version__

# Of pairs, groups and topics the worst; all are in the totals and in the plots.
ROWS = 50
_SEVERITY = {
    CheckpointVerdict.FAILED: 0,
    CheckpointVerdict.UNSAFE: 1,
    CheckpointVerdict.BEYOND: 2,
    CheckpointVerdict.REREAD: 3,
}


@dataclass(frozen=True, slots=True)
class _Flow:
    """What the page shows of one flow."""

    name: str
    at: str
    known_at: str | None
    totals: ComparisonTotals
    plots: Sequence[Plot]
    comparisons: int
    worst: Sequence[ComparedPair]
    groups: Sequence[Sum]
    group_count: int
    topics: Sequence[Sum]
    topic_count: int
    reasons: Sequence[tuple[str, int]]
    warnings: Sequence[str]


def html_report(
    found: Sequence[FlowComparison], course: PastTotals, options: CompareOptions
) -> str:
    """The page: what was found of each flow last, and its course so far. With `every_seconds` it
    loads itself anew that often."""
    return _template().render(
        flows=[_flow(one, course, options) for one in found],
        other=options.other_name,
        recorded=options.recorded,
        file=options.file,
        every_seconds=options.every_seconds,
        version=__version__,
        rows=ROWS,
        marks=MARKS,
        verdicts=CheckpointVerdict,
    )


def _flow(compared: FlowComparison, course: PastTotals, options: CompareOptions) -> _Flow:
    pairs = compared.pairs
    by_group, by_topic = sums(By.GROUP, pairs), sums(By.TOPIC, pairs)
    moments = course.moments.get(compared.flow, ())
    plots = (
        reread_over_lag(compared.flow, pairs, options.other_name),
        distribution(compared.flow, pairs, options.other_name),
        over_time(compared.flow, moments, options.other_name),
    )
    why = Counter(
        str(pair.ours_reason or "no committed offset on the source")
        for pair in pairs
        if pair.ours is None
    )
    return _Flow(
        compared.flow,
        at_words(compared.at_ms),
        None if compared.known_at_ms is None else at_words(compared.known_at_ms),
        ComparisonTotals.of(pairs),
        [plot for plot in plots if plot is not None],
        len(moments),
        sorted(
            (pair for pair in pairs if pair.verdict in _SEVERITY),
            key=lambda pair: (_SEVERITY[pair.verdict], -(pair.records or 0)),
        )[:ROWS],
        by_group[:ROWS],
        len(by_group),
        by_topic[:ROWS],
        len(by_topic),
        why.most_common(),
        compared.warnings,
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["name"] = lambda text: "" if text is None else printable(text)
    environment.filters["number"] = lambda value: "" if value is None else f"{value:,}"
    environment.globals["place"] = place
    page = files("tsoffset.commands.compare").joinpath("report.html")
    return environment.from_string(page.read_text(encoding="utf-8"))
