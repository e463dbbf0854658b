"""Commits that no cycle will translate, and where their groups begin on the target then (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tsoffset.commands.check.findings import Finding, Scope, names
from tsoffset.commands.check.survey import SourceSurvey, renamed
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    LogRange,
    Reason,
    TopicDescription,
    TopicPartition,
)
from tsoffset.terminal.output import by_name, counted


def skipped_commits(
    flow: FlowSettings, survey: SourceSurvey, target: Mapping[str, TopicDescription | Failed]
) -> Iterator[Finding]:
    """How many commits are skipped whatever their records are, and what auto.offset.reset means
    for their groups; nothing where none is."""
    reasons: Counter[str] = Counter()
    groups = set()
    for group, offsets in survey.commits.items():
        for place, commit in () if isinstance(offsets, Failed) else offsets.items():
            topic = renamed(flow, place.topic)
            if topic is None or isinstance(commit, Failed):
                continue
            reason = _reason(place, commit, survey.logs.get(place), target.get(topic))
            if reason is not None:
                reasons[reason] += 1
                groups.add(group)
    if reasons:
        yield Scope(flow.name, flow.source.alias).ok(
            "auto.offset.reset",
            f"{counted(reasons.total(), 'committed offset')} will be skipped{by_name(reasons)}: on"
            f" the target the consumers of {names(sorted(groups))} start at their"
            " auto.offset.reset",
            "set auto.offset.reset to earliest on the target, which re-reads records; latest,"
            " Kafka's default, skips them",
        )


def _reason(
    place: TopicPartition,
    commit: CommittedOffset,
    log: LogRange | Failed | None,
    target: TopicDescription | Failed | None,
) -> Reason | None:
    if isinstance(target, Failed):
        return Reason.TARGET_MISSING if target.missing else None
    if target is None or place.partition not in target.partitions:
        return Reason.TARGET_MISSING
    if not isinstance(log, LogRange):
        return None
    if commit.offset < log.start:
        return Reason.EXPIRED
    return Reason.PAST_LOG_END if commit.offset > log.end else None
