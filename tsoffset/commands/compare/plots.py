"""The plots of the HTML report, as SVG with the colors of the page."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import log10
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tsoffset.commands.compare.judgement import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.totals import ComparisonTotals
from tsoffset.printable import printable
from tsoffset.terminal.output import in_utc
from tsoffset.terminal.tables import elided, place

# The most marks of each kind; with more pairs, those that lie close share a mark.
MARKS = 1_500
_CELLS_PER_DECADE = (24, 12, 8, 6, 4)
_SIZES = ((1, 5.0), (10, 7.5), (100, 10.5), (1_000, 14.0), (10_000, 18.0))
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
_MARK = re.compile(r"(<use [^<>]*?)/>")
# Longest name of a group-partition in a tooltip, in characters.
_NAME = 60
# Names that nothing refers to, and that are the same in all plots.
_NAMES = re.compile(r'<g id="[^"]*"')


class PlotPoint(NamedTuple):
    """A group-partition in a plot."""

    x: int
    y: int
    pair: ComparedPair


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark for `pairs` group-partitions at the same place; `pair` is the first."""

    x: float
    y: float
    pairs: int
    pair: ComparedPair

    @property
    def words(self) -> str:
        """The tooltip."""
        pair = self.pair
        where = f"{pair.group}, {place(pair.source_topic, pair.partition)}"
        about = f"{self.y:,.0f} at a consumer lag of {self.x:,.0f}"
        name = elided(printable(where), _NAME)
        return (
            f"{about}, {name}"
            if self.pairs == 1
            else (f"about {about}, {self.pairs:,} group-partitions, such as {name}")
        )


@dataclass(frozen=True, slots=True)
class Plot:
    """An SVG element and its title."""

    title: str
    svg: Markup


def reread_over_lag(flow: str, pairs: Sequence[ComparedPair], other: str) -> Plot | None:
    """Records re-read by consumer lag, for `other` and tsoffset; None if nothing can be drawn."""

    def points(*verdicts: CheckpointVerdict) -> list[PlotPoint]:
        return [
            PlotPoint(pair.lag, pair.records, pair)
            for pair in pairs
            if pair.lag is not None and pair.records is not None and pair.verdict in verdicts
        ]

    again = points(CheckpointVerdict.EQUAL, CheckpointVerdict.REREAD)
    skipped = points(CheckpointVerdict.UNSAFE)
    bounds = [
        PlotPoint(pair.lag, pair.ours_reread_bound, pair)
        for pair in pairs
        if pair.lag is not None and pair.ours_reread_bound is not None
    ]
    if not (again or bounds or skipped):
        return None
    with rc_context(_STYLE | {"svg.hashsalt": f"lag {flow}"}):
        figure, axes = _figure(4.4)
        top = max(max(point.x, point.y) for point in (*again, *skipped, *bounds))
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
        tooltips = {
            **_marks(axes, again, other, _OTHER, "o", hollow=True),
            **_marks(axes, bounds, "tsoffset (upper bound)", _TSOFFSET, "o"),
            **_marks(axes, skipped, "records skipped (unsafe)", _UNSAFE, "X"),
        }
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("symlog", linthresh=1, linscale=0.6)
            axis.set_major_formatter(FuncFormatter(_number))
        axes.set_xlim(-0.35, ends[-1] * 1.3)
        axes.set_ylim(-0.35, ends[-1] * 1.3)
        axes.set_xlabel("consumer lag on the source, in offsets")
        axes.set_ylabel("records re-read (or skipped)" if skipped else "records re-read")
        _legend(figure, axes)
        return _plot(
            figure,
            "Records re-read by consumer lag",
            f"{len(again)} group-partitions for {other}, {len(bounds)} for tsoffset. Both axes are"
            " logarithmic above 1, with 0 at the bottom and at the left.",
            tooltips,
        )


def distribution(flow: str, pairs: Sequence[ComparedPair], other: str) -> Plot | None:
    """A histogram of records re-read, by decades; None if nothing can be drawn."""
    of_other = Counter(
        _decade(pair.records or 0)
        for pair in pairs
        if pair.verdict in (CheckpointVerdict.EQUAL, CheckpointVerdict.REREAD)
    )
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
        _legend(figure, axes)
        return _plot(
            figure,
            "Group-partitions by number of records re-read",
            "; ".join(
                f"{_decade_words(at)}: {of_other[at]} for {other}, {of_tsoffset[at]} for tsoffset"
                for at in decades
            ),
        )


def over_time(
    flow: str, moments: Sequence[tuple[int, ComparisonTotals]], other: str
) -> Plot | None:
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
        _legend(figure, axes)
        return _plot(
            figure,
            "Records re-read over time",
            f"{len(moments)} comparisons from {in_utc(moments[0][0])} to {in_utc(moments[-1][0])}",
        )


def grouped(points: Iterable[PlotPoint]) -> list[Mark]:
    """The marks for the points: one for each place, or, if there are too many, for each cell of a
    grid."""
    found = _united((one.x, one.y, 1, one.pair) for one in points)
    cells = iter(_CELLS_PER_DECADE)
    while len(found) > MARKS and (each := next(cells, 0)):
        found = _united(
            (_rounded(one.x, each), _rounded(one.y, each), one.pairs, one.pair) for one in found
        )
    return found


def _united(marks: Iterable[tuple[float, float, int, ComparedPair]]) -> list[Mark]:
    """One mark for each place, with the first pair there."""
    found: dict[tuple[float, float], Mark] = {}
    for x, y, number, pair in marks:
        known = found.get((x, y))
        found[x, y] = (
            Mark(x, y, number, pair)
            if known is None
            else replace(known, pairs=known.pairs + number)
        )
    return list(found.values())


def _rounded(value: float, cells: int) -> float:
    return 0.0 if value == 0 else float(10 ** (round(log10(value) * cells) / cells))


def _marks(
    axes: Axes,
    points: Sequence[PlotPoint],
    name: str,
    color: str,
    shape: str,
    hollow: bool = False,
) -> dict[str, Sequence[str]]:
    """Draw marks whose size shows the number of pairs; the first one gets the legend. Returns the
    tooltips by the names of their SVG elements."""
    label: str | None = name
    marks = grouped(points)
    tooltips: dict[str, Sequence[str]] = {}
    for (least, size), (below, _) in zip(_SIZES, (*_SIZES[1:], (1 << 62, 0.0)), strict=True):
        some = [one for one in marks if least <= one.pairs < below]
        if some:
            element = f"{color} {least}"
            axes.plot(
                [one.x for one in some],
                [one.y for one in some],
                linestyle="none",
                marker=shape,
                markersize=size,
                markerfacecolor="none" if hollow else color,
                markeredgecolor=color,
                markeredgewidth=1.3 if hollow else 0,
                alpha=0.8,
                label=label,
                clip_on=False,
                zorder=3,
                gid=element,
            )
            label = None
            tooltips[element] = [f"{name}: {one.words}" for one in some]
    return tooltips


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.4, height), layout="constrained")
    return figure, figure.add_subplot()


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, borderaxespad=0)


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


def _plot(
    figure: Figure, title: str, words: str, tooltips: Mapping[str, Sequence[str]] | None = None
) -> Plot:
    """The figure as an SVG element with `words` for screen readers. `tooltips` are those of the
    marks, by the names of their elements."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    _, element, text = out.getvalue().partition("<svg ")
    before, _, behind = text.partition("<metadata>")
    text = element + before.rstrip() + behind.partition("</metadata>")[2]
    for element, of_marks in (tooltips or {}).items():
        text = _with_titles(text, element, of_marks)
    text = _NAMES.sub("<g", text)
    for color, variable in _COLORS.items():
        text = text.replace(color, variable)
    head, _, rest = text.partition(">")
    says = f"<title>{escape(title)}</title><desc>{escape(words)}</desc>"
    # Made by matplotlib of numbers and our own words; names are escaped.
    return Plot(title, Markup(f'{head} role="img">{says}{rest}'))  # noqa: S704


def _with_titles(text: str, element: str, tooltips: Sequence[str]) -> str:
    """Add the tooltips to the marks of an element, in their order."""
    before, name, behind = text.partition(f'<g id="{element}"')
    titles = iter(tooltips)

    def titled(mark: re.Match[str]) -> str:
        return f"{mark[1]}><title>{escape(next(titles))}</title></use>"

    return before + name + _MARK.sub(titled, behind, count=len(tooltips))
