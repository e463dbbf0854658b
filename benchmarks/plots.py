"""Line plots as SVG text, for pages with a light or a dark background."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _TOP, _BOTTOM = 70, 40, 50
# Space for the names of the lines: for the sample before one, and for a letter.
_SAMPLE, _LETTER = 44, 7
# Distinguishable with color blindness, on white and on black.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_GREY = "#808080"


@dataclass(frozen=True, slots=True)
class Point:
    """A median with its lowest and highest run."""

    x: float
    y: float
    low: float
    high: float

    @classmethod
    def of(cls, x: float, runs: Mapping[str, float]) -> "Point":
        """The spread of runs at `x`."""
        return cls(x, runs["median"], runs["low"], runs["high"])


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis from its lowest to its highest value; all above 0 if it is logarithmic."""

    name: str
    values: Sequence[float]
    logarithmic: bool

    def share(self, value: float) -> float:
        """Where the value lies, from 0 to 1."""
        low, high = self._scaled(self.ticks()[0]), self._scaled(self.ticks()[-1])
        return (self._scaled(value) - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round values around all."""
        if self.logarithmic:
            first = math.floor(math.log10(min(self.values)))
            last = max(first + 1, math.ceil(math.log10(max(self.values))))
            return [10.0**power for power in range(first, last + 1)]
        step = _round_step(max(self.values) / 5)
        return [step * number for number in range(math.ceil(max(self.values) / step) + 1)]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def plot(
    title: str, x_name: str, y_name: str, lines: Mapping[str, Sequence[Point]], *, log: bool = False
) -> str:
    """A plot of several lines, each with its runs as bars."""
    points = [point for line in lines.values() for point in line]
    x = _Axis(x_name, [point.x for point in points], log)
    y = _Axis(y_name, [value for point in points for value in (point.low, point.high)], log)
    right = _WIDTH - _SAMPLE - _LETTER * max(map(len, lines))

    def at(point_x: float, point_y: float) -> tuple[float, float]:
        wide, high = right - _LEFT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + wide * x.share(point_x), _HEIGHT - _BOTTOM - high * y.share(point_y)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12" fill="{_GREY}" role="img">',
        f"<title>{escape(title)}</title>",
        _text(_LEFT, _TOP - 18, title, "start", "bold"),
    ]
    for tick in x.ticks():
        left, bottom = at(tick, y.ticks()[0])
        parts += [_rule(left, bottom, left, _TOP), _text(left, bottom + 16, _label(tick), "middle")]
    for tick in y.ticks():
        left, height = at(x.ticks()[0], tick)
        parts += [
            _rule(left, height, right, height),
            _text(left - 6, height + 4, _label(tick), "end"),
        ]
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 12, x.name, "middle"))
    parts.append(
        f'<text transform="translate(16 {_HEIGHT / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y.name)}</text>'
    )
    for number, (name, points) in enumerate(lines.items()):
        color = _COLORS[number % len(_COLORS)]
        path = " ".join("{:.1f},{:.1f}".format(*at(point.x, point.y)) for point in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for point in points:
            middle, height = at(point.x, point.y)
            _, low = at(point.x, point.low)
            _, high = at(point.x, point.high)
            parts.append(_rule(middle, low, middle, high, color, 1.5))
            parts.append(f'<circle cx="{middle:.1f}" cy="{height:.1f}" r="3" fill="{color}"/>')
        line = _TOP + 16 * number + 8
        parts.append(_rule(right + 12, line, right + 30, line, color, 2))
        parts.append(_text(right + 36, line + 4, name, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )


def _rule(
    x1: float, y1: float, x2: float, y2: float, color: str = _GREY, width: float = 0.25
) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
        f'stroke-width="{width}"/>'
    )


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step)
