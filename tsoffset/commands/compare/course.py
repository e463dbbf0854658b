"""How comparisons of one run came out, one after the other (pure)."""

from dataclasses import dataclass, field

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.totals import Totals

_MOMENTS_KEPT = 500


@dataclass(frozen=True, slots=True)
class Moment:
    """What the pairs of a flow came to at a time."""

    at_ms: int
    totals: Totals


@dataclass(slots=True)
class Course:
    """The moments of each flow, the oldest first; of many only every other one is kept, and
    again, so that they stay a few hundred."""

    moments: dict[str, list[Moment]] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def add(self, compared: FlowComparison) -> None:
        """Take in the comparison that ended last."""
        flow = compared.flow
        every, seen = self._kept.get(flow, 1), self._seen.get(flow, 0)
        self._seen[flow] = seen + 1
        moments = self.moments.setdefault(flow, [])
        # The last one is there whether it stays or not.
        if moments and (seen - 1) % every:
            moments.pop()
        moments.append(Moment(compared.at_ms, Totals.of(compared.pairs)))
        if len(moments) > _MOMENTS_KEPT:
            del moments[1::2]
            self._kept[flow] = every * 2
