"""What the tasks of a step send to clusters."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace

from tests.kafka.test_clients import A, connect
from tsoffset.kafka.clients import Traffic
from tsoffset.model import Side
from tsoffset.spark.spent import Spent
from tsoffset.testing.memory_cluster import MemoryCluster


class Busy(MemoryCluster):
    """Counts what it sends."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.requests = Counter(fetch=7)
        self.retries = 3
        self.throttle_seconds = 0.5


def test_what_a_client_sends_while_it_is_leased_is_counted():
    """Not what it had sent before, and also where the block fails; a client that does not count
    sends nothing."""
    spent = Spent()
    one = replace(A, alias="busy")
    with suppress(OSError), spent.lease(Side.SOURCE, Busy, one) as busy:
        busy.requests["fetch"] += 2
        busy.retries += 1
        busy.throttle_seconds += 1.5
        raise OSError("in the middle")
    with spent.lease(Side.TARGET, connect, A):
        pass
    assert spent.traffic == {Side.SOURCE: Traffic(2, 1, 1.5), Side.TARGET: Traffic()}
