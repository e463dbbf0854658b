"""A cluster that is far away: TCP connections through a process that delays everything.

Data is forwarded half a round trip later, in both directions. The broker advertises the proxy's
port, so that clients connect to no other.
"""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from tests.faults.proxy import Proxy
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST


class _OwnProcess(BaseManager):
    """Runs a proxy apart from what is measured. Ctrl-C is for the benchmark, which ends it."""


_OwnProcess.register("Proxy", Proxy)


@dataclass(frozen=True, slots=True)
class FarBroker:
    """A broker behind a proxy."""

    broker: EmbeddedBroker
    bootstrap: str
    _proxy: Any

    @contextmanager
    def moved_away(self, round_trip_ms: float) -> Iterator[None]:
        """Delay everything that is sent within the block by this round trip."""
        self._proxy.delay(round_trip_ms / 2000)
        try:
            yield
        finally:
            self._proxy.delay(0.0)


@contextmanager
def far_broker(folder: Path, name: str) -> Iterator[FarBroker]:
    """A new broker behind a proxy, at first without delay."""
    with _OwnProcess(ctx=multiprocessing.get_context("spawn")) as process:
        proxy = process.Proxy()
        front, back = proxy.open()
        advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{front}"}
        with EmbeddedBroker(folder / name, name=name, port=back, properties=advertised) as broker:
            yield FarBroker(broker, f"{HOST}:{front}", proxy)
