"""Retries within the total deadline of a call.

A call has many items. Every round asks for those without an answer; an answer that may change is
`Again`. Only reads, and requests that were certainly not written, are retried: a commit that was
sent never is.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from kafka.errors import KafkaTimeoutError
from tenacity import RetryCallState, Retrying, retry_if_exception, retry_if_result
from tenacity.stop import stop_base
from tenacity.wait import wait_exponential, wait_random

from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.kafka.connections import BrokerConnections
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Remedy, Trouble, failure, rule
from tsoffset.model import Failed, FailureKind

K = TypeVar("K")
V = TypeVar("V")

# How long a partition without a leader is retried. More would delay every cycle.
LEADERLESS_RETRY_SECONDS = 2.0

# How often all addresses of a cluster are tried before it counts as unreachable: about two seconds
# if they refuse connections.
_UNREACHABLE_ATTEMPTS = 5


PLACE = attrgetter("topic", "partition")
"""The place of a partition (`in_order`)."""


@dataclass(frozen=True, slots=True)
class Again:
    """Worth a retry; `otherwise` is the answer when the time is up.

    With `refresh`, the leader or coordinator is looked up first. `retry_seconds`, from the first
    attempt, may end the retries before the call's deadline.
    """

    otherwise: Any
    refresh: bool = False
    retry_seconds: float = float("inf")


def answer_to(
    trouble: Trouble, operation: str, alias: str, *, missing_is_final: bool = False
) -> Failed | Again:
    """The meaning of an error or its code: final, or worth a retry.

    The error that a topic is missing is retried, because a broker that is not responsible for an
    existing topic also answers with it. With `missing_is_final`, it is not retried.
    """
    failed = failure(trouble, operation, alias)
    remedy = rule(trouble).remedy
    if remedy is Remedy.NONE or (failed.missing and missing_is_final):
        return failed
    return Again(failed, remedy is Remedy.REFRESH, failed.retry_seconds)


class _Stop(stop_base):
    """At the deadline, or after the cluster was unreachable often enough."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._unreachable = 0

    def __call__(self, state: RetryCallState) -> bool:
        failed = state.outcome is not None and state.outcome.failed
        self._unreachable = self._unreachable + 1 if failed else 0
        return (
            self._unreachable >= _UNREACHABLE_ATTEMPTS
            or state.upcoming_sleep >= self._deadline.seconds_left
        )


def in_order(items: Iterable[K], place: Callable[[K], Any]) -> list[K]:
    """Each item once, in the order of its place, which identifies it. (Places are plain tuples:
    hashing or comparing the items themselves takes several times as long.)"""
    found = {place(item): item for item in items}
    return [found[at] for at in sorted(found)]


def _is_timeout(otherwise: Any) -> bool:
    return isinstance(otherwise, Failed) and otherwise.kind is FailureKind.TIMEOUT


def in_rounds(
    connections: BrokerConnections,
    keys: Collection[K],
    attempt: Callable[[Collection[K]], Awaitable[Mapping[K, V | Failed | Again]]],
    operation: str,
    deadline: Deadline,
    *,
    single_attempt: bool = False,
    forget: Callable[[list[K]], None] = lambda keys: None,
) -> dict[K, V | Failed]:
    """Answers to all keys: `attempt` runs in the loop until none of them is `Again`.

    A key that an attempt omits is retried, too; `operation` is for the message. With
    `single_attempt` nothing is retried, and an `Again` becomes its `otherwise`. `forget` gets the
    keys whose leader or coordinator has to be looked up again. Raises ClusterUnreachable if no
    address of the cluster answers and nothing was answered before; otherwise a key without an
    answer is a `Failed`, of the last cause that is more than "no answer in time", if there was one.
    """
    answers: dict[K, V | Failed] = {}
    waiting: dict[K, Any] = dict.fromkeys(keys)
    since: dict[K, float] = {}

    async def ask() -> Mapping[K, V | Failed | Again]:
        return await attempt(tuple(waiting))

    def once() -> bool:
        found = connections.run(ask)
        forget([key for key, one in found.items() if isinstance(one, Again) and one.refresh])
        for key, answer in found.items():
            if key not in waiting:
                continue
            if isinstance(answer, Again):
                now = deadline.seconds_spent
                patience = 0.0 if single_attempt else answer.retry_seconds
                if now - since.setdefault(key, now) < patience:
                    if waiting[key] is None or not _is_timeout(answer.otherwise):
                        waiting[key] = answer.otherwise
                    continue
                answer = answer.otherwise
            answers[key] = answer
            del waiting[key]
        return bool(waiting) and not single_attempt

    if not waiting:
        return answers
    unreachable = _retrying(connections, deadline)(once)
    if isinstance(unreachable, ClusterUnreachable) and not answers:
        raise unreachable
    silence = unreachable if isinstance(unreachable, BaseException) else KafkaTimeoutError()
    for key, otherwise in waiting.items():
        if otherwise is None:
            otherwise = failure(silence, operation, connections.alias)
        answers[key] = otherwise
    return answers


def as_a_whole(
    connections: BrokerConnections, work: Callable[[], Coroutine[Any, Any, V]], deadline: Deadline
) -> V:
    """The one answer about a cluster, which cannot fail in part.

    Raises ClusterUnreachable.
    """
    found = _retrying(connections, deadline)(lambda: (connections.run(work),))
    if isinstance(found, BaseException):
        raise found
    answer: V = found[0]
    return answer


def _is_worth_a_retry(error: BaseException) -> bool:
    """Not after wrong credentials: five attempts may lock an account."""
    return isinstance(error, ClusterUnreachable) and not isinstance(error, ClusterRefused)


def _retrying(connections: BrokerConnections, deadline: Deadline) -> Retrying:
    """Repeats a function while it returns that something has no answer yet, or raises for an
    unreachable cluster. If that was the last result, returns the exception."""
    first = connections.client.backoff_ms / 1000
    longest = connections.client.backoff_max_ms / 1000
    return Retrying(
        stop=_Stop(deadline),
        wait=wait_exponential(multiplier=first, max=longest) + wait_random(0, first),
        retry=retry_if_result(lambda open_still: open_still is True)
        | retry_if_exception(_is_worth_a_retry),
        before_sleep=lambda _: connections.count_retry(),
        retry_error_callback=lambda state: state.outcome and state.outcome.exception(),
    )
