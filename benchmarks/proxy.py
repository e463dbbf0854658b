"""Clusters that are far away: TCP connections through processes that delay everything.

Data is forwarded half a round trip later, in both directions. Each broker advertises its proxy's
port, so that clients connect to no other.
"""

import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from benchmarks.estates import Clusters
from tests.faults.proxy import Proxy
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST


class _OwnProcess(BaseManager):
    """Runs a proxy apart from what is measured. Ctrl-C is for the benchmark, which ends it."""


_OwnProcess.register("Proxy", Proxy)


@dataclass(frozen=True, slots=True)
class FarClusters(Clusters):
    """Clusters behind proxies."""

    proxies: Sequence[Any]

    @contextmanager
    def moved_away(self, round_trip_ms: float) -> Iterator[None]:
        """Delay everything that is sent within the block by this round trip."""
        for proxy in self.proxies:
            proxy.delay(round_trip_ms / 2000)
        try:
            yield
        finally:
            for proxy in self.proxies:
                proxy.delay(0.0)


@contextmanager
def far_brokers() -> Iterator[FarClusters]:
    """Two new clusters behind proxies, at first without delay."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tsoffset-bench-")))
        addresses, brokers, proxies = [], [], []
        for name in ("source", "target"):
            proxy = running.enter_context(_OwnProcess(ctx=spawn)).Proxy()
            front, back = proxy.open()
            addresses.append(f"{HOST}:{front}")
            advertised = {"advertised.listeners": f"PLAINTEXT://{addresses[-1]}"}
            broker = EmbeddedBroker(folder / name, name=name, port=back, properties=advertised)
            brokers.append(running.enter_context(broker))
            proxies.append(proxy)
        yield FarClusters(folder, *addresses, brokers, proxies)
