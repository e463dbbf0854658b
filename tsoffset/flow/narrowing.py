"""Filters on top of filters: fewer groups or topics than the configuration selects."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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

# Characters with a meaning in an expression.
_SIGNS = re.compile(r"[\\.^$*+?{}\[\]|()]")


@dataclass(frozen=True, slots=True)
class AssignedGroups:
    """The groups that `inner` selects and `task.assigned.groups` names."""

    inner: GroupFilter
    groups: frozenset[str]

    def should_replicate_group(self, group: str) -> bool:
        return group in self.groups and self.inner.should_replicate_group(group)


@dataclass(frozen=True, slots=True)
class MatchingNames:
    """The groups or topics that `inner` selects and whose whole name (of a topic: on the source)
    matches."""

    inner: Any
    pattern: re.Pattern[str]

    def should_replicate_group(self, group: str) -> bool:
        return matches(self.pattern, group) and self.inner.should_replicate_group(group)

    def should_replicate_topic(self, topic: str) -> bool:
        return matches(self.pattern, topic) and self.inner.should_replicate_topic(topic)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """`--groups` and `--topics`; None selects all.

    Each is a regular expression that must match the whole name (for topics, the name on the
    source). It never selects what the configuration excludes. It is text only, so it can be pickled
    and applied in every process. Raises UsageError for an invalid expression.
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
        groups = expression("--groups", self.groups)
        topics = expression("--topics", self.topics)
        if groups is not None:
            flow = replace(flow, group_filter=MatchingNames(flow.group_filter, groups))
        if topics is not None:
            flow = replace(flow, topic_filter=MatchingNames(flow.topic_filter, topics))
        return flow


def whole_name(name: str) -> str:
    """The expression for `--groups` or a list that matches only this name."""
    return _SIGNS.sub(r"\\\g<0>", name)


def literal_name(pattern: str) -> str | None:
    """The name of which `whole_name` makes this expression; None if there is none."""
    name = re.sub(r"\\(.)", r"\1", pattern)
    return name if whole_name(name) == pattern else None


def written_groups(chooser: GroupFilter) -> WrittenNames:
    """The group names that a filter lists literally; none for a custom class."""
    return _names_written(chooser, chooser.should_replicate_group)


def written_topics(chooser: TopicFilter) -> WrittenNames:
    return _names_written(chooser, chooser.should_replicate_topic)


def _names_written(chooser: object, passes: Callable[[str], bool]) -> WrittenNames:
    if isinstance(chooser, DefaultGroupFilter | DefaultTopicFilter):
        return chooser.written_names()
    if isinstance(chooser, AssignedGroups):
        return WrittenNames(tuple(filter(passes, sorted(chooser.groups))), only=True)
    if isinstance(chooser, MatchingNames):
        inner, own = _names_written(chooser.inner, passes), name_written(chooser.pattern.pattern)
        names = inner.names if own is None else (*inner.names, own)
        passing = tuple(filter(passes, dict.fromkeys(names)))
        return WrittenNames(passing, inner.only or own is not None)
    return WrittenNames()


def expression(option: str, text: str | None) -> re.Pattern[str] | None:
    """The compiled regular expression of an option, for `matches`; None if it is absent. Raises
    UsageError for an invalid one."""
    if text is None:
        return None
    try:
        return compile_list((text,))
    except InvalidPattern as error:
        raise UsageError(f"{option} {text}: {error}") from None
