"""The comparison as one self-contained HTML file: no script, no font, no address."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.plots import MARKS, Plot, distribution, over_time, reread_over_lag
from tsoffset.commands.compare.totals import ComparisonTotals, PastTotals, Sum, sums
from tsoffset.printable import printable
from tsoffset.terminal.output import in_utc
from tsoffset.terminal.tables import place
from tsoffset.version import __version__

# The worst pairs, groups and topics that are listed; the totals and the plots include all.
ROWS = 50
_SEVERITY = {
    CheckpointVerdict.FAILED: 0,
    CheckpointVerdict.UNSAFE: 1,
    CheckpointVerdict.BEYOND: 2,
    CheckpointVerdict.REREAD: 3,
}


@dataclass(frozen=True, slots=True)
class _Flow:
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


def html_report(found: Sequence[FlowComparison], past: PastTotals, options: CompareOptions) -> str:
    """The page: the last comparison of each flow, and the totals of all comparisons. It reloads
    itself at the interval of the comparisons."""
    return _template().render(
        flows=[_flow(one, past, options) for one in found],
        other=options.other_name,
        recorded=options.recorded,
        file=options.file,
        every_seconds=options.every_seconds,
        version=__version__,
        rows=ROWS,
        marks=MARKS,
        verdicts=CheckpointVerdict,
    )


def _flow(compared: FlowComparison, past: PastTotals, options: CompareOptions) -> _Flow:
    pairs = compared.pairs
    by_group, by_topic = sums(By.GROUP, pairs), sums(By.TOPIC, pairs)
    totals = ComparisonTotals.of(pairs)
    moments = past.moments.get(compared.flow, ())
    plots = (
        reread_over_lag(compared.flow, pairs, options.other_name),
        distribution(compared.flow, pairs, options.other_name),
        over_time(compared.flow, moments, options.other_name),
    )
    return _Flow(
        compared.flow,
        in_utc(compared.at_ms),
        None if compared.known_at_ms is None else in_utc(compared.known_at_ms),
        totals,
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
        totals.no_answer.most_common(),
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
