"""Filters on top of filters: fewer groups or topics than the configuration lets through."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tsoffset.errors import UsageError
from tsoffset.flow.patterns import InvalidPattern, compile_list, matches, name_written
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultTopicFilter,
    GroupFilter,
    TopicFilter,
    WrittenNames,
)

if TYPE_CHECKING:
    from tsoffset.flow.settings import FlowSettings

# What stands for something else in an expression.
_SIGNS = re.compile(r"[\\.^$*+?{}\[\]|()]")


@dataclass(frozen=True, slots=True)
class AssignedGroups:
    """Of the groups that `inner` lets through those that are named (`task.assigned.groups`)."""

    inner: GroupFilter
    groups: frozenset[str]

    def configure(self, settings: dict[str, str]) -> None:
        """Hand the settings on."""
        self.inner.configure(settings)

    def should_replicate_group(self, group: str) -> bool:
        """True where the group is named and `inner` lets it through."""
        return group in self.groups and self.inner.should_replicate_group(group)


@dataclass(frozen=True, slots=True)
class MatchingGroups:
    """Of the groups that `inner` lets through those whose whole name matches."""

    inner: GroupFilter
    pattern: re.Pattern[str]

    def configure(self, settings: dict[str, str]) -> None:
        """Hand the settings on."""
        self.inner.configure(settings)

    def should_replicate_group(self, group: str) -> bool:
        """True where the name matches and `inner` lets it through."""
        return matches(self.pattern, group) and self.inner.should_replicate_group(group)


@dataclass(frozen=True, slots=True)
class MatchingTopics:
    """Of the topics that `inner` lets through those whose whole name matches."""

    inner: TopicFilter
    pattern: re.Pattern[str]

    def configure(self, settings: dict[str, str]) -> None:
        """Hand the settings on."""
        self.inner.configure(settings)

    def should_replicate_topic(self, topic: str) -> bool:
        """True where the source's name matches and `inner` lets it through."""
        return matches(self.pattern, topic) and self.inner.should_replicate_topic(topic)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What `--groups` and `--topics` leave of a flow; None leaves all.

    Each is one regular expression that has to match the whole name (of the topic on the
    source); it never lets through what the configuration does not. Holds text only, so it can
    be pickled and applied in every process. Raises UsageError for a bad expression.
    """

    groups: str | None = None
    topics: str | None = None

    def __post_init__(self) -> None:
        expression("--groups", self.groups)
        expression("--topics", self.topics)

    @property
    def narrows(self) -> bool:
        """Whether --groups or --topics was given."""
        return self != Narrowing()

    def apply(self, flow: "FlowSettings") -> "FlowSettings":
        """The flow with its filters narrowed."""
        groups = expression("--groups", self.groups)
        topics = expression("--topics", self.topics)
        if groups is not None:
            flow = replace(flow, group_filter=MatchingGroups(flow.group_filter, groups))
        if topics is not None:
            flow = replace(flow, topic_filter=MatchingTopics(flow.topic_filter, topics))
        return flow


def whole_name(name: str) -> str:
    """The expression for `--groups` or a list that matches this name alone."""
    return _SIGNS.sub(r"\\\g<0>", name)


def written_groups(chooser: GroupFilter) -> WrittenNames:
    """The groups that a filter writes out; none of a user's own class."""
    if isinstance(chooser, DefaultGroupFilter):
        return chooser.written_names()
    if isinstance(chooser, AssignedGroups):
        passing = filter(chooser.should_replicate_group, sorted(chooser.groups))
        return WrittenNames(tuple(passing), only=True)
    if isinstance(chooser, MatchingGroups):
        inner = written_groups(chooser.inner)
        return _narrowed(inner, chooser.pattern, chooser.should_replicate_group)
    return WrittenNames()


def written_topics(chooser: TopicFilter) -> WrittenNames:
    """The same of topics."""
    if isinstance(chooser, DefaultTopicFilter):
        return chooser.written_names()
    if isinstance(chooser, MatchingTopics):
        inner = written_topics(chooser.inner)
        return _narrowed(inner, chooser.pattern, chooser.should_replicate_topic)
    return WrittenNames()


def _narrowed(
    inner: WrittenNames, pattern: re.Pattern[str], passes: Callable[[str], bool]
) -> WrittenNames:
    own = name_written(pattern.pattern)
    names = inner.names if own is None else (*inner.names, own)
    passing = tuple(filter(passes, dict.fromkeys(names)))
    return WrittenNames(passing, inner.only or own is not None)


def expression(option: str, text: str | None) -> re.Pattern[str] | None:
    """What an option's regular expression is compiled to, for `matches`; None where it is not
    given. Raises UsageError for a bad one."""
    if text is None:
        return None
    try:
        return compile_list((text,))
    except InvalidPattern as error:
        raise UsageError(f"{option} {text}: {error}") from None
