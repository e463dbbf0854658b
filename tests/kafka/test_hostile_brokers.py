"""Whole cycles in which a broker of one side is hostile (tests/hostile_cases.py)."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_broker import Brokers
from tests.hostile_cases import (
    BEGIN,
    CALM,
    CASES,
    END,
    HIT,
    PAGE,
    QUIET,
    VICTIM,
    HostileCase,
    many_bombs,
    silent,
    table,
)
from tests.kafka.wire.test_records import batch, read, sent
from tests.memory_flows import Estate, flow, row_of
from tests.waiting import wait_until
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.cycle import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Row, TopicPartition

# Each is quick, but there are a hundred: half a minute in all.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("running_time")]

# Where the answer comes only when time is up, and where a busy machine is to be waited for.
SHORT_MS, LONG_MS = 1_000, 20_000
TIME_IS_UP = ("TIMEOUT", "UNREACHABLE", "unreachable", "NO_LEADER", "COORDINATOR")
CLIENT = {
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "60",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "60",
}
# What a busy machine adds to a call's deadline at most.
SLACK_SECONDS = 10.0
COMMITTED_AT, FIRST_OFFSET = 50, 7
PLAYED = [
    pytest.param(
        case,
        side,
        id=f"{side} {case.does}",
        # Those that wait for a deadline take most of the time, and differ little.
        marks=[pytest.mark.thorough] if case.waits or (side == "target" and case.source) else [],
    )
    for case in CASES
    for side in ("source", "target")
    if getattr(case, side) is not None
]


class Timed(KafkaCluster):
    """Knows how long the longest call took."""

    longest_seconds = 0.0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name in ("close", "together"):
            return found

        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.monotonic()
            try:
                return found(*args, **kwargs)
            finally:
                spent = time.monotonic() - began
                self.longest_seconds = max(self.longest_seconds, spent)

        return timed


class Skipping:
    """A clock for which time goes by where somebody sleeps, and at once."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def time(self) -> float:
        return time.time() + self._skipped

    def sleep(self, seconds: float, /) -> None:
        self._skipped += 10 * seconds  # what groups are waited for is not what is tested


@pytest.fixture
def estate() -> Estate:
    """Two topics on A with their copies on B, a group in the midst of each."""
    made = Estate(brokers=2)
    for topic, leader, group in ((QUIET, 0, CALM), (VICTIM, 1, HIT)):
        made.write(topic)
        copy = made.mirror(topic, first_offset=FIRST_OFFSET)
        for alias, name in (("A", topic), ("B", copy)):
            made[alias].elect_leader(TopicPartition(name, 0), leader)
        made.commit(group, topic, COMMITTED_AT)
    return made


Play = Callable[[HostileCase, str], list[Row]]


@pytest.fixture
def clusters() -> list[Timed]:
    return []


@pytest.fixture
def play(estate, clusters) -> Iterator[Play]:
    """A function that runs a cycle in which a case is played on one side."""
    with ExitStack() as stack:

        def run(case, side):
            for alias, here in (("A", "source"), ("B", "target")):
                brokers = Brokers(estate[alias])
                if side == here:
                    brokers.lies.append((case.node, case.api, case.lie))
                address = stack.enter_context(brokers.open())
                settings = settings_of(alias, address, deadline_ms(case, side))
                clusters.append(stack.enter_context(Timed(settings)))
            return cycle(flow(), clusters[-2], clusters[-1], clock=Skipping())

        yield run


def deadline_ms(case: HostileCase, side: str) -> int:
    hangs = case.lie is silent or any(word in getattr(case, side) for word in TIME_IS_UP)
    return SHORT_MS if hangs else LONG_MS


def settings_of(alias: str, address: str, deadline: int) -> ClusterSettings:
    """A client that asks twice within its deadline."""
    timeout = str(deadline * 2 // 5)
    timeouts = dict.fromkeys(
        (
            "request.timeout.ms",
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
        ),
        timeout,
    )
    return ClusterSettings(
        alias, (address,), CLIENT | timeouts, admin_timeout_ms=deadline, poll_timeout_ms=50
    )


def verdicts(play: Play, case: HostileCase, side: str) -> tuple[set[str], list[Row]]:
    """The result of the group that the case is about, and all rows."""
    try:
        rows = play(case, side)
    except ClusterUnreachable:
        return {"cluster unreachable"}, []
    hit = [row for row in rows if row.group in (HIT, None)]
    return {f"{row.outcome} {row.reason or ''}".strip() for row in hit} or {"no row"}, rows


@pytest.mark.parametrize(("case", "side"), PLAYED)
def test_a_hostile_broker_harms_nobody_else(case, side, play, estate, clusters):
    """The group that it is about has a named result, the other one its offset; nothing wrong is
    committed, and no call outlasts its deadline."""
    found, rows = verdicts(play, case, side)
    expected = getattr(case, side)
    if " or " in expected:
        assert found <= set(expected.split(" or "))
    else:
        assert found == set(expected.split(" and "))
    right = COMMITTED_AT + FIRST_OFFSET
    committed = {(group, tp.topic): it.offset for group, tp, it in estate["B"].commits}
    if rows and not case.everybody:
        assert row_of(rows, CALM).outcome is OutcomeKind.COMMITTED
        assert committed[CALM, f"A.{QUIET}"] == right
    assert set(committed) <= {(CALM, f"A.{QUIET}"), (HIT, f"A.{VICTIM}")}
    assert committed.get((HIT, f"A.{VICTIM}"), 0) <= right
    longest = max(each.longest_seconds for each in clusters)
    assert longest < deadline_ms(case, side) / 1000 + SLACK_SECONDS


def test_the_table_of_the_docs_is_that_of_the_cases():
    """`python -m tests.hostile_cases` writes it."""
    assert f"{BEGIN}{table()}{END}" in PAGE.read_text()


def test_an_address_that_refuses_leaves_no_socket_open():
    """Neither until it is forgotten: a daemon tries for days."""
    sockets = Path("/proc/self/fd")
    settings = settings_of("A", "127.0.0.1:1", SHORT_MS)
    gc.disable()
    try:
        before = len(list(sockets.iterdir()))
        with KafkaCluster(settings) as cluster, pytest.raises(ClusterUnreachable):
            cluster.groups()
        # The client's thread may end a little later.
        wait_until(lambda: len(list(sockets.iterdir())) <= before)
    finally:
        gc.enable()


def test_many_small_batches_that_unpack_to_much_are_not_held_at_once():
    """The fetched range ends once it holds enough, and the rest is requested again."""
    raw = many_bombs(batch(sent(3)))
    found = read(raw, 0)
    assert found.end == 2 * 300_000
