"""Replication policies and filters: which topic is which on the other cluster, and what is synced.

The rules are MirrorMaker 2's (DefaultReplicationPolicy, IdentityReplicationPolicy,
DefaultTopicFilter, DefaultGroupFilter), but for the renaming of a topic that came from the
target: one hop back (see `target_topic`).
"""

from typing import Protocol


class ReplicationPolicy(Protocol):
    """Names of replicated topics. A user's own class provides these methods.

    Called with the flow's settings as a mapping of text (`configure`) before anything else.
    """

    def configure(self, settings: "dict[str, str]") -> None:
        """Take the flow's `replication.policy.*` and alias settings."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name on the target of `topic` of `source_alias`."""

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that `topic` was replicated from; None for an original."""

    def upstream_topic(self, topic: str) -> str | None:
        """The name of `topic` on the cluster that it was replicated from; None for an original."""


class GroupFilter(Protocol):
    """Which groups are synced. Must be picklable or configurable from text."""

    def configure(self, settings: "dict[str, str]") -> None:
        """Take the flow's settings."""

    def should_replicate_group(self, group: str) -> bool:
        """True where the group's offsets are synced."""


class TopicFilter(Protocol):
    """Which topics are synced."""

    def configure(self, settings: "dict[str, str]") -> None:
        """Take the flow's settings."""

    def should_replicate_topic(self, topic: str) -> bool:
        """True where the topic's offsets are synced."""
