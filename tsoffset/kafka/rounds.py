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


TOPIC_AND_PARTITION = attrgetter("topic", "partition")
"""The sort key of a partition (`in_order`)."""


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


class ClusterSilent(ClusterUnreachable):
    """No address of a cluster answered in time, and none gave another reason."""


class _Stop(stop_base):
    """At the deadline, or after the cluster was unreachable often enough.

    `unreachable` is why the last attempts failed, None after one with an answer: the last cause
    that is more than "no answer in time", if there was one. The deadline may end an attempt at any
    moment, and then nothing else is known of that attempt.
    """

    def __init__(self, deadline: Deadline) -> None:
        self.unreachable: BaseException | None = None
        self._deadline = deadline
        self._attempts = 0

    @property
    def often_enough(self) -> bool:
        return self._attempts >= _UNREACHABLE_ATTEMPTS

    def __call__(self, state: RetryCallState) -> bool:
        error = None if state.outcome is None else state.outcome.exception()
        self._attempts = 0 if error is None else self._attempts + 1
        says_less = isinstance(error, ClusterSilent) and self.unreachable is not None
        if not says_less or isinstance(self.unreachable, ClusterSilent):
            self.unreachable = error
        return self.often_enough or state.upcoming_sleep >= self._deadline.seconds_left


def in_order(items: Iterable[K], sort_key: Callable[[K], Any]) -> list[K]:
    """Each item once, in the order of its sort key, which identifies it. (Sort keys are plain
    tuples: hashing or comparing the items themselves takes several times as long.)"""
    found = {sort_key(item): item for item in items}
    return [found[at] for at in sorted(found)]


def _is_timeout(otherwise: Any) -> bool:
    return isinstance(otherwise, Failed) and otherwise.kind is FailureKind.TIMEOUT


def _outlasts_silence(otherwise: Any) -> bool:
    """Whether it is still the answer if no further one comes in time. "Missing" is not: a broker
    that is not responsible for an existing topic says so, too, and has to say it again."""
    return otherwise is not None and not (isinstance(otherwise, Failed) and otherwise.missing)


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
    Such a cause is an answer, too, if the addresses were only silent until the deadline.
    """
    answers: dict[K, V | Failed] = {}
    waiting: dict[K, Any] = dict.fromkeys(keys)
    since: dict[K, float] = {}

    async def ask() -> Mapping[K, V | Failed | Again]:
        return await attempt(tuple(waiting))

    def ask_once() -> bool:
        found = connections.run(ask)
        forget([key for key, one in found.items() if isinstance(one, Again) and one.refresh])
        for key, answer in found.items():
            if key not in waiting:
                continue
            if isinstance(answer, Again):
                now = deadline.seconds_spent
                retry_seconds = 0.0 if single_attempt else answer.retry_seconds
                if now - since.setdefault(key, now) < retry_seconds:
                    if not (_is_timeout(answer.otherwise) and _outlasts_silence(waiting[key])):
                        waiting[key] = answer.otherwise
                    continue
                answer = answer.otherwise
            answers[key] = answer
            del waiting[key]
        return bool(waiting) and not single_attempt

    if not waiting:
        return answers
    stop = _Stop(deadline)
    unreachable = _retrying(connections, stop)(ask_once)
    if isinstance(unreachable, ClusterUnreachable) and not answers:
        was_silent = isinstance(unreachable, ClusterSilent) and not stop.often_enough
        if not (was_silent and any(map(_outlasts_silence, waiting.values()))):
            raise unreachable
    silence = unreachable if isinstance(unreachable, BaseException) else KafkaTimeoutError()
    was_unreachable = isinstance(silence, ClusterUnreachable)
    for key, otherwise in waiting.items():
        if otherwise is None or (was_unreachable and not _outlasts_silence(otherwise)):
            otherwise = failure(silence, operation, connections.alias)
        answers[key] = otherwise
    return answers


def ask_cluster(
    connections: BrokerConnections, work: Callable[[], Coroutine[Any, Any, V]], deadline: Deadline
) -> V:
    """The one answer about a cluster, which cannot fail in part.

    Raises ClusterUnreachable.
    """
    found = _retrying(connections, _Stop(deadline))(lambda: (connections.run(work),))
    if isinstance(found, BaseException):
        raise found
    answer: V = found[0]
    return answer


def _is_worth_a_retry(error: BaseException) -> bool:
    """Not after wrong credentials: five attempts may lock an account."""
    return isinstance(error, ClusterUnreachable) and not isinstance(error, ClusterRefused)


def _retrying(connections: BrokerConnections, stop: _Stop) -> Retrying:
    """Repeats a function while it returns that something has no answer yet, or raises for an
    unreachable cluster. If that was the last result, returns `stop.unreachable`."""
    first = connections.client.backoff_ms / 1000
    longest = connections.client.backoff_max_ms / 1000
    return Retrying(
        stop=stop,
        wait=wait_exponential(multiplier=first, max=longest) + wait_random(0, first),
        retry=retry_if_result(lambda open_still: open_still is True)
        | retry_if_exception(_is_worth_a_retry),
        before_sleep=lambda _: connections.count_retry(),
        retry_error_callback=lambda _: stop.unreachable,
    )
