"""Clients of clusters, kept open by the process that uses them.

A Spark worker is one process for many tasks and cycles: what a task leaves here the next
one finds. A client is made in the process that uses it (never inherited by a fork), is used
by one task at a time, and is closed when nobody asks for it for a while.
"""

import hashlib
import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

from tsoffset.cluster import Cluster, Connect
from tsoffset.flow.settings import ClusterSettings

IDLE_SECONDS = 150.0


@dataclass(slots=True)
class _Idle:
    client: Cluster
    since: float


@runtime_checkable
class Counting(Protocol):
    """A client that counts what it sends."""

    @property
    def requests(self) -> Mapping[str, int]:
        """How many requests were sent so far, by kind."""

    @property
    def retries(self) -> int:
        """How often a call asked again so far."""

    @property
    def throttle_seconds(self) -> float:
        """For how many seconds brokers were left alone so far since they wanted it."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went to a cluster: `requests` that were sent, `retries` of calls that asked again, and
    the seconds for which brokers that throttle were left alone."""

    requests: int = 0
    retries: int = 0
    throttle_seconds: float = 0.0

    @classmethod
    def of(cls, client: Cluster) -> "Traffic":
        """What the client has counted so far; nothing of one that does not count."""
        if not isinstance(client, Counting):
            return cls()
        return cls(sum(client.requests.values()), client.retries, client.throttle_seconds)

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.requests + other.requests,
            self.retries + other.retries,
            self.throttle_seconds + other.throttle_seconds,
        )

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.requests - other.requests,
            self.retries - other.retries,
            self.throttle_seconds - other.throttle_seconds,
        )


def settings_digest(settings: ClusterSettings) -> str:
    """Stands for the resolved settings, secrets included, and tells none of them."""
    text = json.dumps(asdict(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Clients:
    """Open clients of this process that are waiting to be used again.

    `idle_seconds` is how long they wait; after that a thread of their own closes them.
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
        """A client for these settings, this task's alone; left open for the next one."""
        key = (connect, settings_digest(settings))
        with self._lock:
            waiting = self._idle[key]
            client = waiting.pop().client if waiting else None
        if client is None:
            client = connect(settings)
        try:
            yield client
        except BaseException:
            # Whatever it was in the middle of, the next task must not meet it.
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

    def waiting(self) -> int:
        """How many are open and not in use."""
        with self._lock:
            return sum(map(len, self._idle.values()))

    def forget(self) -> None:
        """Start empty in a forked process: the connections are its parent's."""
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
