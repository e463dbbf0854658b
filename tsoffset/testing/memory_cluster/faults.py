"""Failures to order, and the record of what a cluster was asked."""

from dataclasses import dataclass, field
from enum import StrEnum

from tsoffset.model import Failed, Isolation, TopicPartition


class Verb(StrEnum):
    """The methods of `tsoffset.cluster.Cluster`."""

    DESCRIBE = "describe"
    TOPICS = "topics"
    GROUPS = "groups"
    COMMITTED = "committed"
    LOG_RANGES = "log_ranges"
    READ = "read"
    READ_RAW = "read_raw"
    FIRST_AT_TIMES = "first_at_times"
    YOUNGEST = "youngest"
    COMMIT = "commit"
    RIGHTS = "rights"
    TOPIC_CONFIGS = "topic_configs"
    CLOCK = "clock_ahead_ms"


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a verb with the items that it was asked for.

    The items of COMMIT are (group, partition, committed offset); those of the other verbs
    are what the method was given. `isolation` is None for verbs that take none.
    """

    verb: Verb
    items: tuple[object, ...]
    isolation: Isolation | None = None


@dataclass(slots=True, eq=False)
class Fault:
    """A failure that meets every item which agrees with all the words that are not None.

    `times` is how often it still strikes (None: until it is healed). `takes_effect` lets a
    commit be stored although its answer is this failure, as when the answer is lost.
    """

    failed: Failed
    verb: Verb | None = None
    topic: str | None = None
    partition: TopicPartition | None = None
    group: str | None = None
    broker: int | None = None
    times: int | None = None
    takes_effect: bool = False

    def strikes(
        self,
        verb: Verb,
        topic: str | None,
        partition: TopicPartition | None,
        group: str | None,
        broker: int | None,
    ) -> bool:
        """True where the item is met; counts it."""
        met = (
            self.times != 0
            and self.verb in (None, verb)
            and self.topic in (None, topic)
            and self.partition in (None, partition)
            and self.group in (None, group)
            and self.broker in (None, broker)
        )
        if met and self.times is not None:
            self.times -= 1
        return met


@dataclass(slots=True)
class Faults:
    """All failures that are ordered of one cluster."""

    ordered: list[Fault] = field(default_factory=list)

    def on(
        self,
        verb: Verb,
        *,
        topic: str | None = None,
        partition: TopicPartition | None = None,
        group: str | None = None,
        broker: int | None = None,
    ) -> Fault | None:
        """The first failure that meets this item; None where it goes well."""
        if partition is not None:
            topic = partition.topic
        for fault in self.ordered:
            if fault.strikes(verb, topic, partition, group, broker):
                return fault
        return None
