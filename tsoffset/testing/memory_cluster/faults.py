"""Failures on demand, and the list of a cluster's requests."""

from dataclasses import dataclass
from enum import StrEnum

from tsoffset.model import Failed, Isolation, TopicPartition


class Verb(StrEnum):
    DESCRIBE = "describe"
    TOPICS = "topics"
    GROUPS = "groups"
    COMMITTED = "committed"
    LOG_RANGES = "log_ranges"
    READ = "read"
    READ_RAW = "read_raw"
    FIRST_AT_TIMES = "first_at_times"
    YOUNGEST = "youngest"
    EPOCH_ENDS = "epoch_ends"
    COMMIT = "commit"
    RIGHTS = "rights"
    TOPIC_CONFIGS = "topic_configs"


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a verb with its items.

    The items of COMMIT are (group, partition, committed offset); those of the other verbs are the
    method's arguments. `isolation` is None for verbs without it.
    """

    verb: Verb
    items: tuple[object, ...]
    isolation: Isolation | None = None


@dataclass(slots=True, eq=False)
class Fault:
    """A failure of every item that matches all fields that are not None.

    `times` is how often it still applies (None: until it is healed). `takes_effect` stores a commit
    although its answer is this failure, as if the answer was lost.
    """

    failed: Failed
    verb: Verb | None = None
    topic: str | None = None
    partition: TopicPartition | None = None
    group: str | None = None
    broker: int | None = None
    times: int | None = None
    takes_effect: bool = False


class Faults(list[Fault]):
    def on(
        self,
        verb: Verb,
        *,
        topic: str | None = None,
        partition: TopicPartition | None = None,
        group: str | None = None,
        broker: int | None = None,
    ) -> Fault | None:
        """The first failure that matches this item; counts it."""
        if partition is not None:
            topic = partition.topic
        for fault in self:
            if (
                fault.times != 0
                and fault.verb in (None, verb)
                and fault.topic in (None, topic)
                and fault.partition in (None, partition)
                and fault.group in (None, group)
                and fault.broker in (None, broker)
            ):
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None
