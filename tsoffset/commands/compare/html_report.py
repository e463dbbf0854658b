"""The comparison as one self-contained HTML file: no script, no font, no address."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.plots import MARKS, distribution, over_time, reread_over_lag
from tsoffset.commands.compare.totals import ComparisonTotals, PastTotals, sums
from tsoffset.printable import printable
from tsoffset.terminal.output import in_utc
from tsoffset.terminal.tables import place
from tsoffset.version import __version__

# The worst pairs, groups and topics that are listed; the totals and the plots include all.
ROWS = 50
_SEVERITY = (
    CheckpointVerdict.FAILED,
    CheckpointVerdict.UNSAFE,
    CheckpointVerdict.BEYOND,
    CheckpointVerdict.REREAD,
)


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


def _flow(compared: FlowComparison, past: PastTotals, options: CompareOptions) -> dict[str, Any]:
    """The values that the template has for a flow."""
    pairs = compared.pairs
    by_group, by_topic = sums(By.GROUP, pairs), sums(By.TOPIC, pairs)
    totals = ComparisonTotals.of(pairs)
    moments = past.moments.get(compared.flow, ())
    plots = (
        reread_over_lag(compared.flow, pairs, options.other_name),
        distribution(compared.flow, pairs, options.other_name),
        over_time(compared.flow, moments, options.other_name),
    )
    worst = sorted(
        (pair for pair in pairs if pair.verdict in _SEVERITY),
        key=lambda pair: (_SEVERITY.index(pair.verdict), -(pair.records or 0)),
    )
    return {
        "name": compared.flow,
        "at": in_utc(compared.at_ms),
        "known_at": None if compared.known_at_ms is None else in_utc(compared.known_at_ms),
        "totals": totals,
        "plots": [plot for plot in plots if plot is not None],
        "comparisons": len(moments),
        "worst": worst[:ROWS],
        "groups": by_group[:ROWS],
        "group_count": len(by_group),
        "topics": by_topic[:ROWS],
        "topic_count": len(by_topic),
        "reasons": totals.no_answer.most_common(),
        "warnings": compared.warnings,
    }


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
