"""Clients of clusters, kept open by the process that uses them.

A Spark worker is one process for many tasks and cycles, and the next task reuses the clients of the
one before. A client is made in the process that uses it (never inherited by a fork), is used by one
task at a time, and is closed when it was not used for a while.
"""

import hashlib
import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field
from operator import add, sub
from typing import Any

from tsoffset.cluster import Cluster, Connect
from tsoffset.flow.settings import ClusterSettings

IDLE_SECONDS = 150.0


@dataclass(slots=True)
class _Idle:
    client: Cluster
    since: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic to a cluster: requests sent by kind, retries, and seconds of waiting for brokers that
    throttle."""

    requests: int = 0
    retries: int = 0
    throttle_seconds: float = 0.0

    @classmethod
    def of(cls, client: Cluster) -> "Traffic":
        """The client's counts; zero for a client without counts."""
        counting: Any = client
        if not hasattr(client, "throttle_seconds"):
            return cls()
        return cls(sum(counting.requests.values()), counting.retries, counting.throttle_seconds)

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(*map(sub, astuple(self), astuple(other)))


def settings_digest(settings: ClusterSettings) -> str:
    """Identifies the resolved settings, including secrets, without revealing any."""
    text = json.dumps(asdict(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Clients:
    """Open clients of this process that wait to be reused.

    A thread closes them after `idle_seconds`.
    """

    idle_seconds: float = IDLE_SECONDS
    clock: Callable[[], float] = time.monotonic
    _idle: defaultdict[tuple[Connect, str], list[_Idle]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer: threading.Timer | None = None

    @contextmanager
    def lease(self, connect: Connect, settings: ClusterSettings) -> Iterator[Cluster]:
        """A client for these settings, for this task alone; it stays open for the next one."""
        key = (connect, settings_digest(settings))
        with self._lock:
            waiting = self._idle[key]
            client = waiting.pop().client if waiting else None
        if client is None:
            client = connect(settings)
        try:
            yield client
        except BaseException:
            # A failed task leaves the client in an unknown state, so it is not reused.
            client.close()
            raise
        with self._lock:
            self._idle[key].append(_Idle(client, self.clock()))
            self._watch()

    def close_idle(self, *, all_of_them: bool = False) -> None:
        """Close those that have waited long enough, or all that wait."""
        now = self.clock()
        closing: list[Cluster] = []
        with self._lock:
            for key, waiting in list(self._idle.items()):
                over = [
                    one for one in waiting if all_of_them or now - one.since >= self.idle_seconds
                ]
                closing += [one.client for one in over]
                waiting[:] = [one for one in waiting if one not in over]
                if not waiting:
                    del self._idle[key]
            self._timer = None
            if self._idle:
                self._watch()
        for client in closing:
            client.close()

    def forget(self) -> None:
        """Start empty in a forked process: the connections belong to its parent."""
        self._lock = threading.Lock()
        self._idle = defaultdict(list)
        self._timer = None

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self.idle_seconds, self.close_idle)
            self._timer.daemon = True
            self._timer.start()


CLIENTS = Clients()
os.register_at_fork(after_in_child=CLIENTS.forget)
