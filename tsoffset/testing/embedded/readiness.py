"""Waiting by asking: a broker is ready when it answers, not when time has passed."""

import logging
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TransactionalIdNotFoundError

from tsoffset.testing.embedded.ports import HOST

# The pause between two questions, so that asking takes nothing from what is asked.
PAUSE_SECONDS = 0.05
_PATIENCE_SECONDS = 5.0

# The client reports every refused connection; here that is the expected answer, and
# without a handler of the program's own it would land on the terminal.
logging.getLogger("kafka").addHandler(logging.NullHandler())


Question = Callable[[], str | None]


class NotReady(Exception):
    """The deadline passed; the text says what the last answer was."""


class Deadline:
    """A total time, from now on, for any number of questions."""

    def __init__(self, seconds: float) -> None:
        """Allow `seconds` from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())


def ask_until(question: Question, deadline: Deadline) -> None:
    """Ask again and again until `question` is answered by None.

    The answer is what is still missing otherwise; a question may raise to give up at
    once. Raises `NotReady` with the last answer when the deadline has passed.
    """
    while (missing := question()) is not None:
        if not deadline.left:
            raise NotReady(missing)
        time.sleep(PAUSE_SECONDS)


def listening(port: int) -> str | None:
    """None if somebody listens on `port`."""
    try:
        socket.create_connection((HOST, port), timeout=_PATIENCE_SECONDS).close()
    except OSError as error:
        return f"{HOST}:{port} does not answer: {error}"
    return None


def serving(port: int, cluster_id: str, node_id: int, group_partitions: int) -> str | None:
    """None if node `node_id` of cluster `cluster_id` serves groups and transactions at `port`.

    All partitions of the topic that holds group offsets are asked for, so that no later
    request of a group meets a coordinator that is still loading; the same question makes
    the cluster create this topic, and likewise that of the transactions.
    """
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=f"{HOST}:{port}",
            bootstrap_timeout_ms=_PATIENCE_SECONDS * 1000,
            request_timeout_ms=_PATIENCE_SECONDS * 1000,
        )
    except KafkaError as error:
        return f"{HOST}:{port} knows no brokers yet: {error}"
    with closing(admin):
        try:
            cluster = admin.describe_cluster()
            if cluster["cluster_id"] != cluster_id:
                return f"{HOST}:{port} belongs to another cluster, {cluster['cluster_id']}"
            if node_id not in {broker["broker_id"] for broker in cluster["brokers"]}:
                return f"node {node_id} has not joined the cluster yet"
            # A group belongs to the partition that the hash of its name leads to, and the
            # hash of a name of one letter is the letter's code: these meet every partition.
            admin.list_group_offsets([chr(ord("0") + n) for n in range(group_partitions)])
            # Nobody has such a transaction: to be told so is the answer wanted.
            with suppress(TransactionalIdNotFoundError):
                admin.describe_transactions(["readiness"])
        except KafkaError as error:
            return f"node {node_id} at {HOST}:{port}: {error!r}"
    return None
