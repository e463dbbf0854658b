"""The offsets that consumers would resume from while the source is unreachable, and their age."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import structlog

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.commands.failover.verdicts import FailoverVerdict, GroupVerdict, words
from tsoffset.cycle.source_commits import is_written_by, renamings_of, selected_groups
from tsoffset.flow.security import Security
from tsoffset.flow.settings import ClusterSettings, FlowSettings, Settings
from tsoffset.group_sync.commit_rule import REWINDABLE
from tsoffset.group_sync.state import StateFile
from tsoffset.history.reading import last_known
from tsoffset.model import (
    CommittedOffset,
    Failed,
    Isolation,
    LogRange,
    OutcomeKind,
    Reason,
    TopicPartition,
)
from tsoffset.terminal.next_step import NOT_READ_THERE, SuggestedCommand
from tsoffset.terminal.output import abridge, in_utc

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KnownOffset:
    """What past cycles know of a group-partition: its target offset, the source offset that this
    translates, and when it was last in sync (seconds since 1970 UTC; None if unknown). `reason` and
    `translation` (a target offset) are those of the last cycle. The state has no reasons. Instead
    it has `translation_to`: the highest target offset at which the group resumes at the same record
    as at `translation`. An offset of the history has that of the state as `in_state`: commands
    write no history."""

    target_offset: int | None
    source: TopicPartition
    source_offset: int | None
    in_sync_at: float | None = None
    reason: str | None = None
    translation: int | None = None
    translation_to: int | None = None
    in_state: "KnownOffset | None" = None

    def of(self, committed: int) -> "KnownOffset":
        """What is known if the group has `committed`, with the reason that the state implies if
        that is past the translation."""
        state = self.in_state
        if state is not None and state.target_offset == committed != self.target_offset:
            return state.of(committed)
        if self.translation_to is None or committed <= self.translation_to:
            return self
        if committed == self.target_offset:
            return replace(self, reason=Reason.SOURCE_REWOUND)
        ahead = Reason.TARGET_AHEAD
        return replace(self, target_offset=committed, source_offset=None, reason=ahead)


KnownPairs = Mapping[str, Mapping[TopicPartition, KnownOffset]]
"""By group and partition on the target."""


def known_pairs(settings: Settings, flow: FlowSettings) -> tuple[KnownPairs, list[Failed], bool]:
    """Return what past cycles know of the group-partitions that the flow selects: from the history,
    and from the state if there is no history, or if a command has committed since. Also return a
    failure for each topic for which a user's class raised an error, and whether the history was
    used. The state lacks group-partitions without a translation."""
    found: defaultdict[str, dict[TopicPartition, KnownOffset]] = defaultdict(dict)
    history = settings.history.directory
    last = None if history is None else last_known(history, flow.name)
    recorded = [*_of_state(settings, flow)]
    if last is not None:
        of_state = {(group, one.source): one for group, one in recorded}
        recorded = [
            (group, replace(one, in_state=of_state.get((group, one.source))))
            for group, one in _of_history(last[0])
        ]
    renamings, unnamed = renamings_of(flow, sorted({one.source.topic for _, one in recorded}))
    for group, one in recorded:
        if (renaming := renamings[one.source.topic]) is not None:
            found[group][TopicPartition(renaming.topic, one.source.partition)] = one
    return found, [*unnamed.values()], last is not None


def _of_history(pairs: pa.Table) -> Iterator[tuple[str, KnownOffset]]:
    for pair in pairs.to_pylist():
        if pair["source_topic"] is not None:
            committed = pair["outcome"] == OutcomeKind.COMMITTED
            # Its offset is that of a reset, and not the one that it had in sync.
            reset = pair["reason"] == Reason.TARGET_REWOUND
            yield (
                pair["group"],
                KnownOffset(
                    pair["target_offset" if committed else "current_target_offset"],
                    TopicPartition(pair["source_topic"], pair["partition"]),
                    None if reset else pair["synced_source_offset"],
                    None if reset else pair["in_sync_at"],
                    pair["reason"],
                    pair["target_offset"],
                ),
            )


def _of_state(settings: Settings, flow: FlowSettings) -> Iterator[tuple[str, KnownOffset]]:
    if settings.state_dir is None:
        return
    cache, warning = StateFile(settings.state_dir, flow.name).load()
    if warning is not None:
        log.warning("state_not_read", flow=flow.name, message=warning)
    for pair in cache.pairs.rows(named=True):
        yield (
            pair["group"],
            KnownOffset(
                pair["last_target"],
                TopicPartition(pair["source_topic"], pair["partition"]),
                pair["last_source"],
                translation=pair["known_target"],
                translation_to=pair["known_to"],
            ),
        )


def judge_unverified(
    flow: FlowSettings, target: Cluster, known: KnownPairs, unnamed: Iterable[Failed], now: float
) -> tuple[list[GroupVerdict], dict[str, SuggestedCommand | None]]:
    """Judge each group that has committed offsets of the flow on the target, or had some in past
    cycles. Verdicts without a group report why some groups could not be listed, and the failures in
    `unnamed`. Also return, for each group past its translations, the command that moves it back.
    Raises ClusterUnreachable."""
    listed = target.groups()
    listings = listed.groups
    names = {*listings, *known}
    wanted, broken = selected_groups(flow, names)
    offsets = committed_columns(
        target, wanted, share_groups=listed.share_groups, require_stable=False
    ).by_group()
    written = {
        group: {
            partition: one
            for partition, one in sorted(of_group.items())
            # Failback writes a topic if the source has a copy of it, which only past cycles know.
            if partition in known.get(group, {})
            or is_written_by(flow, partition.topic, by_failback=False)
        }
        for group, of_group in offsets.items()
        if not isinstance(of_group, Failed)
    }
    partitions = {partition for of_group in written.values() for partition in of_group}
    ranges = target.log_ranges(sorted(partitions), Isolation.READ_UNCOMMITTED) if partitions else {}
    found = [_not_ready(flow, None, failed) for failed in (*listed.failures, *unnamed)]
    found += [_not_ready(flow, group, failed) for group, failed in broken.items()]
    resets = {}
    for group in wanted:
        whole, of_flow, known_of = offsets[group], written.get(group, {}), known.get(group, {})
        refused = [one for one in (whole, *of_flow.values()) if isinstance(one, Failed)]
        if refused:
            found.append(_not_ready(flow, group, refused[0]))
        elif of_flow or known_of:
            # A share group whose offset lies outside the log starts at the log's start.
            commits = {
                partition: one.offset
                for partition, one in of_flow.items()
                if isinstance(one, CommittedOffset)
                and (group in listed.share_groups or _is_usable(one.offset, ranges[partition]))
            }
            without = sorted((of_flow.keys() | known_of.keys()) - commits.keys())
            is_active = group in listings and listings[group].active
            # If another client has set the offset since then, past cycles say nothing about it.
            seen = {
                partition: known_of[partition].of(offset)
                for partition, offset in commits.items()
                if partition in known_of
            }
            same = {
                partition: one
                for partition, one in seen.items()
                if one.target_offset == commits[partition]
            }
            found.append(
                _verdict(flow, group, commits, known_of, same, without, now, is_active=is_active)
            )
            if found[-1].reason in REWINDABLE:
                back = {
                    partition: one.translation
                    for partition, one in same.items()
                    if one.reason in REWINDABLE and one.translation is not None
                }
                resets[group] = _reset(flow.target, group, back)
    return found, resets


def _is_usable(offset: int, log: LogRange | Failed) -> bool:
    """False if consumers at this offset would be reset: it lies outside its log, or the log is
    gone."""
    return not log.missing if isinstance(log, Failed) else log.start <= offset <= log.end


# By reason; the first reason that applies is reported.
_MESSAGES: Mapping[str | None, str] = {
    Reason.GROUP_ACTIVE: "it already has active members on {target}, which commit its offsets"
    " themselves",
    "NO_COMMIT": "it has no usable committed offset on {target} in {where}: its consumers start at"
    " their auto.offset.reset (a share group at its share.auto.offset.reset), and `latest` skips"
    " unread records",
    Reason.DIVERGED: "in the last cycle, {where} had other records on {target} than on {source}:"
    " find out which are right before its consumers start on {target}",
    Reason.SOURCE_REWOUND: "before the last cycle it went back on {source} to read records again,"
    " and its offsets on {target} in {where} lie after these: its consumers skip them unless it is"
    " moved back",
    Reason.TARGET_AHEAD: "in the last cycle, its offsets on {target} in {where} were past what it"
    " had read on {source}: if its consumers have read these records on {target}, there is nothing"
    " to do; if not, they skip them unless it is moved back",
    None: "it resumes from its {since}; it re-reads the records that it has processed on {source}"
    " since then",
}
_RESET = (
    "; in {where} it was behind its offset on {source} (TARGET_REWOUND), and reads the records in"
    " between, too"
)
_FOREIGN = (
    "it resumes from its last committed offsets, but no past cycle has seen {where}: if they lie"
    " past what it had read on {source}, its consumers skip records; if not, they re-read the"
    " records that it has processed there since"
)


def _verdict(
    flow: FlowSettings,
    group: str,
    commits: Mapping[TopicPartition, int],
    known: Mapping[TopicPartition, KnownOffset],
    same: Mapping[TopicPartition, KnownOffset],
    without: Sequence[TopicPartition],
    now: float,
    *,
    is_active: bool,
) -> GroupVerdict:
    dated = [one.in_sync_at for one in same.values() if one.in_sync_at is not None]
    oldest = min(dated) if 0 < len(dated) == len(commits) else None
    found: dict[str | None, Sequence[TopicPartition]] = {
        Reason.GROUP_ACTIVE: [*commits, *without] if is_active else (),
        "NO_COMMIT": without,
        Reason.DIVERGED: [
            partition
            for partition in commits
            if partition in known and known[partition].reason == Reason.DIVERGED
        ],
        # No obstacle, but the message says it.
        None: [partition for partition, one in same.items() if one.reason == Reason.TARGET_REWOUND],
    }
    for rewindable in REWINDABLE:
        found[rewindable] = [
            partition for partition, one in same.items() if one.reason == rewindable
        ]
    reason = next((one for one in _MESSAGES if found.get(one)), None)
    foreign = [] if reason else [partition for partition in commits if partition not in same]
    where = abridge([*map(str, foreign or found.get(reason, ()))], 3)
    if foreign:
        where = f"those in {where}" if same else "them"
    message = _FOREIGN if foreign else _MESSAGES[reason]
    if reason is None and not foreign and found[None]:
        message += _RESET
    since = "last committed offsets, whose age is not known"
    if oldest is not None:
        since = f"committed offsets of {in_utc(oldest * 1000)}"
    return GroupVerdict(
        flow.name,
        group,
        FailoverVerdict.NOT_READY if reason else FailoverVerdict.UNVERIFIED,
        None,
        len(commits) + len(without),
        words(commits.items()),
        words((pair.source, pair.source_offset) for pair in same.values()),
        None if oldest is None else in_utc(oldest * 1000),
        None if oldest is None else max(0, round(now - oldest)),
        reason,
        message.format(
            target=flow.target.alias,
            source=flow.source.alias,
            where=where,
            since=since,
        ),
    )


def _reset(
    target: ClusterSettings, group: str, offsets: Mapping[TopicPartition, int]
) -> SuggestedCommand | None:
    """The command of Kafka's own tool that sets the group's offsets on the target; None if a
    terminal cannot take the group's name."""
    if not group.isprintable():
        return None
    lines = " ".join(f"{one.topic},{one.partition},{offset}" for one, offset in offsets.items())
    servers = ",".join(target.bootstrap_servers)
    secured = target.security != Security()
    config = f" --command-config {shlex.quote(target.alias)}-client.properties" if secured else ""
    return SuggestedCommand(
        NOT_READ_THERE,
        # The tool cannot read the file from a pipe.
        f"printf '%s\\n' {lines} > reset.csv && kafka-consumer-groups.sh --bootstrap-server"
        f" {servers}{config} --group {shlex.quote(group)} --reset-offsets --from-file reset.csv"
        " --execute",
    )


def _not_ready(flow: FlowSettings, group: str | None, failed: Failed) -> GroupVerdict:
    verdict, reason = FailoverVerdict.NOT_READY, failed.kind
    return GroupVerdict(flow.name, group, verdict, reason=reason, message=failed.message)
