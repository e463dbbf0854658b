"""What can befall a running daemon: each a block within which it lasts."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import count, cycle

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.faults.stage import THREE, FaultTestbed, elect_preferred, set_names
from tests.processes import own_mounts, stopped
from tests.producing import numbered
from tests.waiting import wait_until
from tsoffset.lab.embedded import EmbeddedBroker

Fault = Callable[[FaultTestbed], AbstractContextManager[None]]


# --- clusters -----------------------------------------------------------------------------------


@contextmanager
def source_down(stage: FaultTestbed) -> Iterator[None]:
    """All three nodes of the source are killed at once, and started again."""
    for node in stage.a.nodes:
        node.kill()
    try:
        yield
    finally:
        # At once: none of them has all groups for itself.
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(node.start) for node in stage.a.nodes]:
                started.result()
        stage.leads(2)


@contextmanager
def target_down(stage: FaultTestbed) -> Iterator[None]:
    """The target's only broker is killed, and started again: its coordinator loads then."""
    stage.singles["B"].kill()
    try:
        yield
    finally:
        stage.singles["B"].start()


@contextmanager
def node_down(stage: FaultTestbed) -> Iterator[None]:
    """One of the source's three nodes, which leads and coordinates, is killed."""
    stage.leads(2)
    stage.a.nodes[1].kill()
    try:
        yield
    finally:
        stage.a.nodes[1].start()
        stage.leads(2)


@contextmanager
def node_hung(stage: FaultTestbed) -> Iterator[None]:
    """One of the source's three nodes stands still with its connections open."""
    stage.leads(2)
    with _hung(stage.a.nodes[1]):
        yield
    stage.leads(2)


def target_hung(stage: FaultTestbed) -> AbstractContextManager[None]:
    """The target's only broker stands still with its connections open."""
    return _hung(stage.singles["B"])


def _hung(broker: EmbeddedBroker) -> AbstractContextManager[None]:
    assert broker.pid is not None
    return stopped(broker.pid)


@contextmanager
def _all_the_time(
    work: Callable[[threading.Event], None], pause_seconds: float = 0.2
) -> Iterator[None]:
    """Repeat this while the block lasts; the event is set when it ends."""
    over = threading.Event()

    def again() -> None:
        while not over.wait(pause_seconds):
            work(over)

    working = threading.Thread(target=again)
    working.start()
    try:
        yield
    finally:
        over.set()
        working.join()


@contextmanager
def _moving(stage: FaultTestbed, topic: str, partitions: int) -> Iterator[None]:
    """Each partition is led by one node after the other, without a pause, while the block lasts."""
    admin = stage.contents["A"].admin
    orders = cycle([[2, 3, 1], [3, 1, 2], [1, 2, 3]])

    def move(order: list[int]) -> None:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        with suppress(KafkaError):
            admin.alter_partition_reassignments(dict.fromkeys(places, order))
            wait_until(lambda: not admin.list_partition_reassignments(), "all is moved")
            elect_preferred(stage.contents["A"])

    with _all_the_time(lambda _: move(next(orders)), 0.3):
        yield
    move([2, 3, 1])


# About each second the leaders of the source change, or the coordinators, which load then.
leaders_move: Fault = partial(_moving, topic="orders", partitions=3)
coordinators_move: Fault = partial(_moving, topic="__consumer_offsets", partitions=4)


@contextmanager
def topics_deleted(stage: FaultTestbed) -> Iterator[None]:
    """A topic in which groups have committed offsets is deleted on the source, and then its copy,
    repeatedly and in the middle of cycles."""
    source, target = stage.contents["A"], stage.contents["B"]
    numbers = count()
    group = "billing-passing"
    # The daemon lists groups every ten seconds: a group that it has not listed is in no cycle.
    source.commit_offsets(group, {(stage.traffic[THREE].links[0].topic, 0): 1})
    wait_until(lambda: bool(target.committed_offsets(group)), "the flow syncs the group")

    def work(over: threading.Event) -> None:
        topic = f"passing-{next(numbers)}"
        for contents, name in ((target, f"A.{topic}"), (source, topic)):
            contents.create_topic(name)
            contents.produce(name, numbered(50))
        source.commit_offsets(group, {(topic, 0): 25})
        over.wait(0.5)
        for contents, name in ((source, topic), (target, f"A.{topic}")):
            contents.delete_topic(name)

    with _all_the_time(work, 0):
        yield


@contextmanager
def open_transaction(stage: FaultTestbed) -> Iterator[None]:
    """Somebody has committed for a group of the target, in a transaction that stays open."""
    group, link = "billing-open", stage.traffic[THREE].links[0]
    stage.contents["A"].commit_offsets(group, {(link.topic, 0): 1})
    with closing(
        KafkaProducer(bootstrap_servers=[link.target], transactional_id="open")
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        there = TopicPartition(link.remote, 0)
        producer.send_offsets_to_transaction({there: OffsetAndMetadata(0, "", -1)}, group)
        yield
        producer.abort_transaction()


# --- the network --------------------------------------------------------------------------------


@contextmanager
def _nameless(stage: FaultTestbed, *, answers: bool) -> Iterator[None]:
    """Brokers' names are not known any more, and all connections to them end."""
    if not own_mounts():
        pytest.skip("a process cannot have a resolv.conf of its own here")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        # Where a resolver asks; nothing of the system's listens at this address.
        try:
            server.bind(("127.0.0.77", 53))
        except OSError as error:
            pytest.skip(f"the test cannot run a name server here: {error}")
        replying = threading.Thread(target=_no_such_name, args=(server, answers), daemon=True)
        replying.start()
        (stage.folder / "resolv.conf").write_text("nameserver 127.0.0.77\noptions timeout:30\n")
        set_names(stage.folder, known=False)
        stage.proxies["B"].end_connections()
        try:
            yield
        finally:
            set_names(stage.folder, known=True)
            server.sendto(b"", server.getsockname())
            replying.join()


def _no_such_name(server: socket.socket, answers: bool) -> None:
    while True:
        question, peer = server.recvfrom(1500)
        if not question:
            return
        if answers:
            # An answer, recursion available, NXDOMAIN; the question as it was.
            server.sendto(question[:2] + b"\x81\x83" + question[4:], peer)


# --- Spark and the machine ----------------------------------------------------------------------


@contextmanager
def all_workers_killed(stage: FaultTestbed) -> Iterator[None]:
    """All of Spark's Python is killed at once, what starts workers with them."""
    for worker in stage.workers():
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    yield


@contextmanager
def python_hung(stage: FaultTestbed) -> Iterator[None]:
    """All of Spark's Python stands still, what starts workers with them."""
    with ExitStack() as still:
        for worker in stage.workers():
            still.enter_context(stopped(worker))
        yield


@contextmanager
def java_killed(stage: FaultTestbed) -> Iterator[None]:
    """Spark's Java is killed."""
    os.kill(stage.java, signal.SIGKILL)
    yield


def java_hung(stage: FaultTestbed) -> AbstractContextManager[None]:
    """Spark's Java stands still."""
    return stopped(stage.java)


@contextmanager
def disk_full(stage: FaultTestbed) -> Iterator[None]:
    """There is no room left where the state is kept."""
    if not own_mounts():
        pytest.skip("a process cannot have a disk of its own here")
    filler = stage.state / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1024))
    try:
        yield
    finally:
        filler.unlink()


names_fail: Fault = partial(_nameless, answers=True)
names_hang: Fault = partial(_nameless, answers=False)
