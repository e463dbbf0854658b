"""Replication policies and filters: topic names on the other cluster, and which topics and groups
are synced.

The rules are MirrorMaker 2's (DefaultReplicationPolicy, IdentityReplicationPolicy,
DefaultTopicFilter, DefaultGroupFilter), except for the renaming of a topic that came from the
target: one hop back (see `target_topic`).
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tsoffset.flow.patterns import InvalidPattern, compile_list, matches, name_written, split_list

DEFAULT_GROUPS: tuple[str, ...] = (".*",)
DEFAULT_GROUPS_EXCLUDE: tuple[str, ...] = ("console-consumer-.*", "connect-.*", "__.*")
DEFAULT_TOPICS: tuple[str, ...] = (".*",)
DEFAULT_TOPICS_EXCLUDE: tuple[str, ...] = (r"mm2.*\.internal", r".*\.replica", "__.*")
DEFAULT_SEPARATOR = "."
DEFAULT_HEARTBEATS = "heartbeats"


class ReplicationPolicy(Protocol):
    """Names of replicated topics. A custom class provides these methods.

    `configure` is called first, with the flow's settings as text.
    """

    def configure(self, settings: "dict[str, str]") -> None:
        """Use the flow's `replication.policy.*` and alias settings."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name on the target of `topic` of `source_alias`."""

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that `topic` was replicated from; None for an original."""

    def upstream_topic(self, topic: str) -> str | None:
        """The name of `topic` on the cluster that it was replicated from; None for an original."""


@runtime_checkable
class InternalTopics(Protocol):
    """Names of MirrorMaker 2's own topics.

    A custom policy may provide these methods, too; otherwise MirrorMaker 2's defaults apply.
    """

    def checkpoints_topic(self, source_alias: str) -> str:
        """The topic, on the target, of the checkpoints of `source_alias`."""

    def offset_syncs_topic(self, other_alias: str) -> str:
        """The topic of the offset syncs with the cluster `other_alias`."""

    def heartbeats_topic(self) -> str:
        """The topic of the heartbeats on the cluster that emits them."""

    def is_internal_topic(self, topic: str) -> bool:
        """True for topics that are never replicated."""


class GroupFilter(Protocol):
    """Which groups are synced. A custom class is configured like a ReplicationPolicy."""

    def should_replicate_group(self, group: str) -> bool: ...


class TopicFilter(Protocol):
    """Which topics are synced. A custom class is configured like a ReplicationPolicy."""

    def should_replicate_topic(self, topic: str) -> bool: ...


class InvalidSetting(ValueError):
    """A policy or filter cannot use the value of a setting.

    A custom class may raise it in `configure`: the message then has the key's line.
    """

    def __init__(self, key: str, allowed: str) -> None:
        super().__init__(key, allowed)
        self.key = key
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.key}: {self.allowed}"


# --- replication policies ---------------------------------------------------------------


class DefaultReplicationPolicy:
    """MirrorMaker 2's DefaultReplicationPolicy: `orders` of A is `A.orders` on the target."""

    def __init__(self, separator: str = DEFAULT_SEPARATOR) -> None:
        self._separator = separator
        self._internal_separator = separator
        self._heartbeats = DEFAULT_HEARTBEATS

    def configure(self, settings: dict[str, str]) -> None:
        """Raises InvalidSetting for an empty separator, which could split no name."""
        self._separator = settings.get("replication.policy.separator", self._separator)
        if not self._separator:
            raise InvalidSetting(
                "replication.policy.separator", "must not be empty; leave it out for `.`"
            )
        custom = settings.get("replication.policy.internal.topic.separator.enabled", "true")
        self._internal_separator = (
            self._separator if custom.strip().lower() == "true" else DEFAULT_SEPARATOR
        )
        self._heartbeats = settings.get(
            "default.replication.policy.heartbeats.topic.name", self._heartbeats
        )

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The part before the first separator; None if only separators follow.

        Java's `String.split`, which MirrorMaker 2 uses, drops empty parts at the end.
        """
        first, _, rest = topic.partition(self._separator)
        return first if rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """The part after the first separator; None for an original."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def checkpoints_topic(self, source_alias: str) -> str:
        """`A.checkpoints.internal`."""
        return source_alias + self._checkpoints_suffix()

    def offset_syncs_topic(self, other_alias: str) -> str:
        """`mm2-offset-syncs.B.internal`."""
        between = self._internal_separator
        return f"mm2-offset-syncs{between}{other_alias}{between}internal"

    def heartbeats_topic(self) -> str:
        return self._heartbeats

    def is_internal_topic(self, topic: str) -> bool:
        """True for `mm2*.internal`, checkpoints topics and names that begin with `__` or `.`."""
        return (
            topic.startswith(("__", "."))
            or topic.endswith(self._checkpoints_suffix())
            or (topic.startswith("mm2") and topic.endswith(f"{self._internal_separator}internal"))
        )

    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_separator}internal"


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """MirrorMaker 2's IdentityReplicationPolicy: names stay equal, so any topic may be a replica.

    Names that end like the heartbeats topic are treated as by DefaultReplicationPolicy.
    """

    def __init__(self, source_alias: str | None = None, separator: str = DEFAULT_SEPARATOR) -> None:
        super().__init__(separator)
        self._source_alias = source_alias

    def configure(self, settings: dict[str, str]) -> None:
        super().configure(settings)
        self._source_alias = settings.get("source.cluster.alias", self._source_alias)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if self._looks_like_heartbeats(topic):
            return super().format_remote_topic(source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """The flow's source, whatever the topic; None if no alias is configured."""
        if self._looks_like_heartbeats(topic):
            return super().topic_source(topic)
        return self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        if self._looks_like_heartbeats(topic):
            return super().upstream_topic(topic)
        return topic

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())


_MM2_TOPICS = DefaultReplicationPolicy()


# --- kinds and names of topics ------------------------------------------------------------


def internal_topics(policy: ReplicationPolicy) -> InternalTopics:
    """The policy's own names of internal topics, else MirrorMaker 2's."""
    return policy if isinstance(policy, InternalTopics) else _MM2_TOPICS


def is_internal_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """True for Kafka's and MirrorMaker 2's own topics: never synced, whatever the filter."""
    return internal_topics(policy).is_internal_topic(topic)


def is_heartbeats_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """True for the heartbeats topic and its replicas over any number of hops."""
    return original_topic(policy, topic) == internal_topics(policy).heartbeats_topic()


def original_topic(policy: ReplicationPolicy, topic: str) -> str:
    """The name of `topic` on its first cluster; `topic` itself for an original."""
    *_, original = _hops(policy, topic)
    return original


def _hops(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """`topic` and its names upstream. Ends with the original, or before a name that repeats (as
    with IdentityReplicationPolicy)."""
    seen: set[str] = set()
    name: str | None = topic
    while name is not None and name not in seen:
        yield name
        seen.add(name)
        name = policy.upstream_topic(name)


def replicated_through(
    policy: ReplicationPolicy, topic: str, known: Container[str] | None = None
) -> tuple[tuple[str, ...], str]:
    """The aliases of the clusters that `topic` came through, the nearest first, and its name on the
    last of them; for an original none, and its own name.

    With `known`, only these aliases are hops, and a dot in an original's name is not. (Like
    MirrorClient's allSources and countHopsForTopic: a cluster that repeats ends the chain.)
    """
    found: list[str] = []
    for name in _hops(policy, topic):
        source = policy.topic_source(name)
        if source is None or source in found or not (known is None or source in known):
            return tuple(found), name
        found.append(source)
    return tuple(found), name


@dataclass(frozen=True, slots=True)
class Renaming:
    """The name of a source topic on the target.

    `failback`: the topic came from the target, which holds the original; the original may have
    records that the source never had. `is_remote_topic`: only replication makes a name like this,
    so the topic is known to be a replica.
    """

    topic: str
    failback: bool = False
    is_remote_topic: bool = False


def target_topic(
    policy: ReplicationPolicy, flow_source: str, flow_target: str, topic: str
) -> Renaming | None:
    """The name on `flow_target` of `topic` of `flow_source`; None if it is not synced.

    Internal topics, heartbeats and topics that have been on the target before (a loop) are not
    synced, as in MirrorSourceConnector. A topic that came directly from the target goes one hop
    back. MirrorCheckpointTask uses the original's name instead, which is another topic for chains:
    `B.C.t` on A is `C.t` on B, not B's own `t`.
    """
    if is_internal_topic(policy, topic) or is_heartbeats_topic(policy, topic):
        return None
    if policy.topic_source(topic) == flow_target:
        upstream = policy.upstream_topic(topic)
        if upstream is None or is_internal_topic(policy, upstream):
            return None
        return Renaming(upstream, failback=True)
    if any(policy.topic_source(name) == flow_target for name in _hops(policy, topic)):
        return None
    renamed = policy.format_remote_topic(flow_source, topic)
    told_apart = renamed != topic and policy.topic_source(renamed) == flow_source
    return Renaming(renamed, is_remote_topic=told_apart)


# --- filters ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """The names that a filter lists literally and selects; `only` if it can select nothing else."""

    names: tuple[str, ...] = ()
    only: bool = False


class _IncludeExclude:
    """Names that one list matches and the other does not: exclude wins."""

    def __init__(self, key: str, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._key = key
        self._written = tuple(map(name_written, include))
        self._include = _compile(key, include)
        self._exclude = _compile(f"{key}.exclude", exclude)

    def configure(self, settings: dict[str, str]) -> None:
        """Use the two lists; an absent list stays as it is. Raises InvalidSetting."""
        if (include := settings.get(self._key)) is not None:
            self._include = _compile(self._key, split_list(include))
            self._written = tuple(map(name_written, split_list(include)))
        if (exclude := settings.get(f"{self._key}.exclude")) is not None:
            self._exclude = _compile(f"{self._key}.exclude", split_list(exclude))

    def written_names(self) -> WrittenNames:
        names = [name for name in self._written if name is not None]
        passing = tuple(name for name in dict.fromkeys(names) if self._admits(name))
        return WrittenNames(passing, len(names) == len(self._written))

    def _admits(self, name: str) -> bool:
        return matches(self._include, name) and not matches(self._exclude, name)


class DefaultGroupFilter(_IncludeExclude):
    """MirrorMaker 2's DefaultGroupFilter: `groups` without `groups.exclude`."""

    def __init__(
        self,
        include: Sequence[str] = DEFAULT_GROUPS,
        exclude: Sequence[str] = DEFAULT_GROUPS_EXCLUDE,
    ) -> None:
        super().__init__("groups", include, exclude)

    def should_replicate_group(self, group: str) -> bool:
        return self._admits(group)


class DefaultTopicFilter(_IncludeExclude):
    """MirrorMaker 2's DefaultTopicFilter: `topics` without `topics.exclude`."""

    def __init__(
        self,
        include: Sequence[str] = DEFAULT_TOPICS,
        exclude: Sequence[str] = DEFAULT_TOPICS_EXCLUDE,
    ) -> None:
        super().__init__("topics", include, exclude)

    def should_replicate_topic(self, topic: str) -> bool:
        return self._admits(topic)


def _compile(key: str, patterns: Sequence[str]) -> re.Pattern[str] | None:
    try:
        return compile_list(patterns)
    except InvalidPattern as error:
        raise InvalidSetting(key, str(error)) from None
