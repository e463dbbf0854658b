"""The cost of a cycle over a very large estate, computed from unit costs.

Nothing here is measured at that size. A cycle without a cache over `groups` with ten partitions
each; brokers share their load evenly, and executors do nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.results import Result


@dataclass(frozen=True, slots=True)
class Estate:
    """Sizes of what is estimated; `cores` are those of all executors."""

    groups: int = 1_000_000
    partitions: int = 100_000
    each: int = 10
    brokers: int = 50
    cores: int = 50

    @property
    def pairs(self) -> int:
        """Pairs of a group and a partition."""
        return self.groups * self.each


@dataclass(frozen=True, slots=True)
class Share:
    """The work of one part of the estate: how often, at what rate, divided among how many."""

    what: str
    amount: float
    unit: str
    rate: float
    over: int

    @property
    def seconds(self) -> float:
        """How long it is busy."""
        return self.amount / self.rate / self.over


def shares(units: Result, growth: Result, estate: Estate) -> Iterator[Share]:
    """Each part of the estate."""
    rates = {name: one["median"] for name, one in units["a_second"].items()}
    small, large = growth["series"]["dataflow"][0], growth["series"]["dataflow"][-1]
    cold, nodes = large["cold"], estate.brokers
    positions = estate.pairs * large["positions"] / large["pairs"]
    fetches = positions * cold["source_fetches"] / large["positions"]
    lookups = estate.partitions * cold["lookups"] / large["partitions"]
    yield Share("source coordinators, read", estate.pairs, "pairs", rates["offset_fetch"], nodes)
    yield Share("target coordinators, read", estate.pairs, "pairs", rates["offset_fetch"], nodes)
    yield Share(
        "target coordinators, commit", estate.groups, "groups", rates["offset_commit"], nodes
    )
    # The driver lists the groups of both sides.
    yield Share("list groups", 2 * estate.groups, "groups", rates["list_groups"], 1)
    yield Share("source leaders", fetches, "reads", rates["fetch"], nodes)
    yield Share("target leaders, lookups", lookups, "lookups", rates["list_offsets"], nodes)
    for what, key, over in (
        ("tasks (Python)", "worker_cpu", estate.cores),
        ("Spark (Java)", "java_cpu", estate.cores),
        ("driver", "driver_cpu", 1),
    ):
        a_pair = _slope(small, large, key)
        yield Share(what, estate.pairs, "pairs", 1 / a_pair, over)


def driver_gb(growth: Result, estate: Estate) -> float:
    """The driver's memory: its table of rows, cached partitions, and groups."""
    small, large = growth["series"]["dataflow"][0], growth["series"]["dataflow"][-1]
    return _slope(small, large, "driver_mb") * estate.pairs / 1024


def _slope(small: Result, large: Result, key: str) -> float:
    grown = large["cold"][key]["median"] - small["cold"][key]["median"]
    return max(1e-9, float(grown) / (large["pairs"] - small["pairs"]))
