"""The comparison as one self-contained HTML file: no script, no font, no address."""

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from io import BytesIO
from math import isnan, nan
from typing import Any

from jinja2 import Environment, StrictUndefined
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from tsoffset.commands.compare.columns import pair_columns, sum_columns
from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgment import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.totals import ComparisonTotals, Moments, PastTotals, sums
from tsoffset.printable import printable
from tsoffset.terminal.output import in_utc
from tsoffset.terminal.tables import Column
from tsoffset.version import __version__

# The worst pairs, groups and topics that are listed; the totals and the plots include all.
ROWS = 50
_SEVERITY = (
    CheckpointVerdict.FAILED,
    CheckpointVerdict.UNSAFE,
    CheckpointVerdict.BEYOND,
    CheckpointVerdict.REREAD,
)
_REREADS = (CheckpointVerdict.EQUAL, CheckpointVerdict.REREAD)


def html_report(found: Sequence[FlowComparison], past: PastTotals, options: CompareOptions) -> str:
    """The page: the last comparison of each flow, and the totals of all comparisons. It reloads
    itself at the interval of the comparisons."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_text_of,
    )
    page = files("tsoffset.commands.compare").joinpath("report.html")
    return environment.from_string(page.read_text(encoding="utf-8")).render(
        flows=[_flow(one, past, options) for one in found],
        other=options.other_name,
        file=options.file,
        every_seconds=options.every_seconds,
        version=__version__,
        most=ROWS,
        verdicts=CheckpointVerdict,
    )


def _text_of(value: Any) -> Any:
    """A value of the page: names without control characters, numbers with separators."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return printable(str(value))


def _flow(compared: FlowComparison, past: PastTotals, options: CompareOptions) -> dict[str, Any]:
    pairs, moments, other = compared.pairs, past[compared.flow], options.other_name
    worst = sorted(
        (pair for pair in pairs if pair.verdict in _SEVERITY),
        key=lambda pair: (_SEVERITY.index(pair.verdict), -(pair.records or 0)),
    )
    with rc_context(_STYLE):
        plots = reread_over_lag(pairs, other), distribution(pairs, other), over_time(moments, other)
    tables: list[tuple[str, Sequence[Column[Any]], Sequence[Any]]] = [
        ("Worst group-partitions", pair_columns(other), worst)
    ]
    for by in (By.GROUP, By.TOPIC):
        tables.append((f"By {by}, worst first", sum_columns(by), sums(by, compared)))
    return {
        "name": compared.flow,
        "at": in_utc(compared.at_ms),
        "totals": ComparisonTotals(pairs),
        "plots": [plot for plot in plots if plot is not None],
        "comparisons": len(moments),
        "tables": tables,
        "warnings": compared.warnings,
    }


# Above this number, the marks are drawn as one bitmap, which keeps the file small.
MARKS = 1_500
_QUIET, _OTHER, _TSOFFSET, _UNSAFE = "#55606e", "#b3500a", "#0c62ad", "#b8231a"
_OURS = "tsoffset (upper bound)"
_TARGETS = "target groups' committed offsets"
_SKIPPED = "records skipped (unsafe)"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dde3e9",
    "lines.markersize": 5,
    "legend.frameon": False,
}
# Logarithmic from 1 on, with a place of its own for 0.
_LOGARITHMIC: dict[str, Any] = {"value": "symlog", "linthresh": 1, "linscale": 0.6}


_Plot = Mapping[str, str]
"""The `address` of an SVG picture (`data:`), its `title`, and what it shows in `words`."""


def reread_over_lag(pairs: Sequence[ComparedPair], other: str) -> _Plot | None:
    """Records re-read by consumer lag, for `other` and tsoffset; None if nothing can be drawn."""
    figure, axes = _figure(4.4)
    numbers = []
    for name, color, marker, points in (
        (other, _OTHER, "o", [(p.lag, p.records) for p in pairs if p.verdict in _REREADS]),
        (_OURS, _TSOFFSET, ".", [(p.lag, p.ours_reread_bound) for p in pairs]),
        (
            _SKIPPED,
            _UNSAFE,
            "X",
            [(p.lag, p.records) for p in pairs if p.verdict is CheckpointVerdict.UNSAFE],
        ),
    ):
        points_drawn = sorted({(x, y) for x, y in points if x is not None and y is not None})
        numbers.append(len(points_drawn))
        if points_drawn:
            axes.plot(
                *zip(*points_drawn, strict=True),
                marker,
                color=color,
                label=name,
                alpha=0.8,
                markerfacecolor="none" if marker == "o" else color,
                clip_on=False,
                rasterized=len(points_drawn) > MARKS,
            )
    if not any(numbers):
        return None
    axes.set_xscale(**_LOGARITHMIC)
    axes.set_yscale(**_LOGARITHMIC)
    top = max(10, axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([1, top], [1, top], "--", color=_QUIET, linewidth=0.9, label="whole consumer lag")
    axes.set(xlim=(-0.35, top), ylim=(-0.35, top))
    axes.set(xlabel="consumer lag on the source, in offsets", ylabel="records re-read (or skipped)")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    words = f"{numbers[0]} marks for {other}, {numbers[1]} for tsoffset; both axes are logarithmic"
    return _plot(figure, "Records re-read by consumer lag", words)


def distribution(pairs: Sequence[ComparedPair], other: str) -> _Plot | None:
    """A histogram of records re-read, by decades; None if nothing can be drawn."""
    of_other = Counter(_decade(pair.records or 0) for pair in pairs if pair.verdict in _REREADS)
    of_tsoffset = Counter(
        _decade(pair.ours_reread_bound) for pair in pairs if pair.ours_reread_bound is not None
    )
    if not (of_other or of_tsoffset):
        return None
    decades = range(max((*of_other, *of_tsoffset)) + 1)
    number = EngFormatter(sep="")
    titles = [f"{number(10 ** (at - 1))}+" if at else "0" for at in decades]
    figure, axes = _figure(4.4)
    for counts, name, color, shift in (
        (of_other, other, _OTHER, -0.21),
        (of_tsoffset, _OURS, _TSOFFSET, 0.21),
    ):
        heights = [counts[at] for at in decades]
        bars = axes.bar([at + shift for at in decades], heights, 0.4, color=color, label=name)
        axes.bar_label(bars, [f"{one:,}" if one else "" for one in heights], color=_QUIET)
    axes.set_xticks(decades, titles)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="records re-read", ylabel="group-partitions")
    words = "; ".join(
        f"{titles[at]}: {of_other[at]} for {other}, {of_tsoffset[at]} for tsoffset"
        for at in decades
    )
    return _plot(figure, "Group-partitions by number of records re-read", words)


def over_time(moments: Moments, other: str) -> _Plot | None:
    """All records re-read in each comparison; None if there was only one comparison."""
    if len(moments) < 2:
        return None
    times = [at_ms / 86_400_000 for at_ms, _ in moments]
    figure, axes = _figure(3.4)
    for name, color, line, values in (
        (other, _OTHER, ".-", [one.reread for _, one in moments]),
        (_OURS, _TSOFFSET, ".-", [one.ours_reread for _, one in moments]),
        (_TARGETS, _QUIET, ".--", [one.target_reread for _, one in moments]),
        (_SKIPPED, _UNSAFE, "X", [one.skipped or nan for _, one in moments]),
    ):
        if not all(map(isnan, values)):
            axes.plot(times, values, line, color=color, label=name)
    axes.set_yscale(**_LOGARITHMIC)
    axes.set_ylim(bottom=-0.35)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set(xlabel="time (UTC)", ylabel="records re-read")
    # matplotlib has no types for dates.
    dates = AutoDateLocator(minticks=2, maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(dates)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(dates))  # type: ignore[no-untyped-call]
    first, last = in_utc(moments[0][0]), in_utc(moments[-1][0])
    words = f"{len(moments)} comparisons from {first} to {last}"
    return _plot(figure, "Records re-read over time", words)


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.4, height), layout="constrained")
    return figure, figure.add_subplot()


def _decade(value: int) -> int:
    """0 for none, 1 for 1 to 9, 2 for 10 to 99, and so on."""
    return len(str(value)) if value else 0


def _plot(figure: Figure, title: str, words: str) -> _Plot:
    figure.legend(loc="outside upper left", ncols=2, borderaxespad=0)
    out = BytesIO()
    figure.savefig(out, format="svg", dpi=150)
    address = f"data:image/svg+xml;base64,{b64encode(out.getvalue()).decode()}"
    return {"title": title, "words": words, "address": address}
