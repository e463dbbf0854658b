"""The comparison as one self-contained HTML file: no script, no font, no address."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import log10
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.totals import ComparisonTotals, Moments, PastTotals, sums
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
        file=options.file,
        every_seconds=options.every_seconds,
        version=__version__,
        rows=ROWS,
        marks=MARKS,
        verdicts=CheckpointVerdict,
    )


def _flow(compared: FlowComparison, past: PastTotals, options: CompareOptions) -> dict[str, Any]:
    pairs = compared.pairs
    by_group, by_topic = sums(By.GROUP, pairs), sums(By.TOPIC, pairs)
    totals = ComparisonTotals.of(pairs)
    moments = past.get(compared.flow, [])
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


# The most marks of each kind; with more places, those that lie close share a mark.
MARKS = 1_500
_CELLS_PER_DECADE = (24, 12, 8, 6, 4)
# Placeholders for the colors of the page; matplotlib uses none of them.
_COLORS = {
    "#010203": "var(--ink)",
    "#818283": "var(--quiet)",
    "#d1d2d3": "var(--line)",
    "#d55e01": "var(--other)",
    "#0072b3": "var(--tsoffset)",
    "#c00102": "var(--unsafe)",
}
_INK, _QUIET, _LINE, _OTHER, _TSOFFSET, _UNSAFE = _COLORS
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _QUIET,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": _LINE,
    "grid.linewidth": 0.7,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
}
_REREADS = (CheckpointVerdict.EQUAL, CheckpointVerdict.REREAD)
# Names that nothing refers to, and that are the same in all plots.
_NAMES = re.compile(r'<g id="[^"]*"')
Place = tuple[float, float]
"""A consumer lag, and a number of records."""


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    svg: Markup


def reread_over_lag(flow: str, pairs: Sequence[ComparedPair], other: str) -> Plot | None:
    """Records re-read by consumer lag, for `other` and tsoffset; None if nothing can be drawn."""
    known = [pair for pair in pairs if pair.lag is not None]
    of_other = marked_places((p.lag, p.records) for p in known if p.verdict in _REREADS)
    of_tsoffset = marked_places((pair.lag, pair.ours_reread_bound) for pair in known)
    unsafe = marked_places(
        (pair.lag, pair.records) for pair in known if pair.verdict is CheckpointVerdict.UNSAFE
    )
    if not (of_other or of_tsoffset or unsafe):
        return None
    with rc_context(_STYLE | {"svg.hashsalt": f"lag {flow}"}):
        figure, axes = _figure(4.4)
        top = max(map(max, of_other | of_tsoffset | unsafe))
        ends = [1, 10, 100] if top < 100 else [1, 10 ** (log10(top) + 0.15)]
        axes.plot(ends, ends, color=_QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            "whole consumer lag",
            (ends[-1], ends[-1]),
            xytext=(-6, -2),
            textcoords="offset points",
            color=_QUIET,
            ha="right",
            va="top",
            fontsize=10,
        )
        for places, name, color, shape, hollow in (
            (of_other, other, _OTHER, "o", True),
            (of_tsoffset, "tsoffset (upper bound)", _TSOFFSET, "o", False),
            (unsafe, "records skipped (unsafe)", _UNSAFE, "X", False),
        ):
            if not places:
                continue
            axes.plot(
                *zip(*sorted(places), strict=True),
                linestyle="none",
                marker=shape,
                markersize=5,
                markerfacecolor="none" if hollow else color,
                markeredgecolor=color,
                markeredgewidth=1.3 if hollow else 0,
                alpha=0.8,
                label=name,
                clip_on=False,
                zorder=3,
            )
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("symlog", linthresh=1, linscale=0.6)
            axis.set_major_formatter(FuncFormatter(_number))
        axes.set_xlim(-0.35, ends[-1] * 1.3)
        axes.set_ylim(-0.35, ends[-1] * 1.3)
        axes.set_xlabel("consumer lag on the source, in offsets")
        axes.set_ylabel("records re-read (or skipped)" if unsafe else "records re-read")
        return _plot(
            figure,
            axes,
            "Records re-read by consumer lag",
            f"{len(of_other)} marks for {other}, {len(of_tsoffset)} for tsoffset. Both axes are"
            " logarithmic above 1, with 0 at the bottom and at the left.",
        )


def distribution(flow: str, pairs: Sequence[ComparedPair], other: str) -> Plot | None:
    """A histogram of records re-read, by decades; None if nothing can be drawn."""
    of_other = Counter(_decade(pair.records or 0) for pair in pairs if pair.verdict in _REREADS)
    of_tsoffset = Counter(
        _decade(pair.ours_reread_bound) for pair in pairs if pair.ours_reread_bound is not None
    )
    if not (of_other or of_tsoffset):
        return None
    decades = range(max((*of_other, *of_tsoffset)) + 1)
    with rc_context(_STYLE | {"svg.hashsalt": f"distribution {flow}"}):
        figure, axes = _figure(4.4)
        for counts, name, color, shift in (
            (of_other, other, _OTHER, -0.21),
            (of_tsoffset, "tsoffset (upper bound)", _TSOFFSET, 0.21),
        ):
            bars = axes.bar(
                [at + shift for at in decades],
                [counts[at] for at in decades],
                width=0.4,
                color=color,
                label=name,
            )
            labels = [f"{counts[at]:,}" if counts[at] else "" for at in decades]
            axes.bar_label(bars, labels, padding=2, fontsize=9.5, color=_QUIET)
        axes.set_xticks(list(decades), [_decade_words(at) for at in decades])
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(_number))
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("records re-read")
        axes.set_ylabel("group-partitions")
        return _plot(
            figure,
            axes,
            "Group-partitions by number of records re-read",
            "; ".join(
                f"{_decade_words(at)}: {of_other[at]} for {other}, {of_tsoffset[at]} for tsoffset"
                for at in decades
            ),
        )


def over_time(flow: str, moments: Moments, other: str) -> Plot | None:
    """All records re-read in each comparison; None if there was only one comparison."""
    if len(moments) < 2:
        return None
    times = [at_ms / 86_400_000 for at_ms, _ in moments]
    with rc_context(_STYLE | {"svg.hashsalt": f"time {flow}"}):
        figure, axes = _figure(3.4)
        for values, name, color, dash in (
            ([one.reread for _, one in moments], other, _OTHER, "-"),
            ([one.ours_reread for _, one in moments], "tsoffset (upper bound)", _TSOFFSET, "-"),
            (
                [one.target_reread for _, one in moments],
                "target groups' committed offsets",
                _QUIET,
                (0, (3, 2)),
            ),
        ):
            axes.plot(
                times, values, color=color, label=name, linewidth=1.8, linestyle=dash, marker="."
            )
        unsafe = {
            at: one.skipped for at, (_, one) in zip(times, moments, strict=True) if one.skipped
        }
        if unsafe:
            axes.plot(
                list(unsafe),
                list(unsafe.values()),
                color=_UNSAFE,
                label="records skipped (unsafe)",
                linestyle="none",
                marker="X",
            )
        axes.xaxis_date()
        axes.set_yscale("symlog", linthresh=1, linscale=0.6)
        axes.yaxis.set_major_formatter(FuncFormatter(_number))
        axes.set_ylim(bottom=-0.35)
        axes.set_ylabel("records re-read")
        axes.set_xlabel("time (UTC)")
        # matplotlib has no types for dates.
        dates = AutoDateLocator(minticks=2, maxticks=6)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(dates)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(dates))  # type: ignore[no-untyped-call]
        return _plot(
            figure,
            axes,
            "Records re-read over time",
            f"{len(moments)} comparisons from {in_utc(moments[0][0])} to {in_utc(moments[-1][0])}",
        )


def marked_places(points: Iterable[tuple[int | None, int | None]]) -> set[Place]:
    """Where marks are drawn for the points that are known: at each place, or, if there are too
    many, in each cell of a grid."""
    found: set[Place] = {(x, y) for x, y in points if x is not None and y is not None}
    cells = iter(_CELLS_PER_DECADE)
    while len(found) > MARKS and (each := next(cells, 0)):
        found = {(_rounded(x, each), _rounded(y, each)) for x, y in found}
    return found


def _rounded(value: float, cells: int) -> float:
    return 0.0 if value == 0 else float(10 ** (round(log10(value) * cells) / cells))


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.4, height), layout="constrained")
    return figure, figure.add_subplot()


def _decade(value: int) -> int:
    """0 for none, 1 for 1 to 9, 2 for 10 to 99, and so on."""
    return len(str(value)) if value else 0


def _decade_words(at: int) -> str:
    if at == 0:
        return "0"
    low, high = 10 ** (at - 1), 10**at - 1
    return f"{_number(low)}-{_number(high) if high < 1_000 else _number(high + 1)}"


def _number(value: float, _: object = None) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _plot(figure: Figure, axes: Axes, title: str, words: str) -> Plot:
    """The figure with its legend as an SVG element, with `words` for screen readers."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, borderaxespad=0)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    _, element, text = out.getvalue().partition("<svg ")
    before, _, behind = text.partition("<metadata>")
    text = element + before.rstrip() + behind.partition("</metadata>")[2]
    text = _NAMES.sub("<g", text)
    for color, variable in _COLORS.items():
        text = text.replace(color, variable)
    head, _, rest = text.partition(">")
    says = f"<title>{escape(title)}</title><desc>{escape(words)}</desc>"
    # Made by matplotlib of numbers and our own words.
    return Plot(title, Markup(f'{head} role="img">{says}{rest}'))  # noqa: S704
