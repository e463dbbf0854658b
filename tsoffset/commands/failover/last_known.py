"""The offsets that consumers would resume from while the source is unreachable, and their age."""

from collections.abc import Mapping
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.commands.failover.verdicts import FailoverVerdict, GroupVerdict, words
from tsoffset.cycle.committed_offsets import committed_offsets
from tsoffset.cycle.source_commits import is_written_by, renaming_of
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit_rule import GROUP_ACTIVE
from tsoffset.group_sync.state import StateFile
from tsoffset.history.reading import last_known
from tsoffset.model import CommittedOffset, Failed, OutcomeKind, Reason, TopicPartition
from tsoffset.terminal.output import few, in_utc

Pair = tuple[str, TopicPartition]
"""A group and a partition on the target."""


@dataclass(frozen=True, slots=True)
class KnownOffset:
    """What past cycles know of a group-partition: its target offset, the source offset that this
    translates, and when it was last in sync (seconds since 1970 UTC; None if unknown). `diverged`:
    the last cycle found other records on the target."""

    target_offset: int | None
    source: TopicPartition
    source_offset: int | None
    in_sync_at: float | None
    diverged: bool = False


def known_pairs(settings: Settings, flow: FlowSettings) -> dict[Pair, KnownOffset]:
    """What is known of the flow's group-partitions: from the history, or else from the state."""
    found: dict[Pair, KnownOffset] = {}
    directory = settings.history.directory
    if directory is not None and (pairs := last_known(directory, flow.name)) is not None:
        for pair in pairs.to_pylist():
            topic, number = pair["target_topic"], pair["partition"]
            if topic is not None and number is not None:
                committed = pair["outcome"] == OutcomeKind.COMMITTED
                found[pair["group"], TopicPartition(topic, number)] = KnownOffset(
                    pair["target_offset" if committed else "current_target_offset"],
                    TopicPartition(pair["source_topic"], number),
                    pair["synced_source_offset"],
                    pair["in_sync_at"],
                    pair["reason"] == Reason.DIVERGED,
                )
    elif settings.state_dir is not None:
        carry_over, _ = StateFile(settings.state_dir, flow.name).load()
        for pair in carry_over.pairs.rows(named=True):
            source = TopicPartition(pair["source_topic"], pair["partition"])
            renaming = renaming_of(flow, source.topic)
            if renaming is not None and pair["last_target"] is not None:
                place = TopicPartition(renaming.topic, source.partition)
                found[pair["group"], place] = KnownOffset(
                    pair["last_target"], source, pair["last_source"], None
                )
    return found


def unverified(
    flow: FlowSettings, target: Cluster, known: Mapping[Pair, KnownOffset], now: float
) -> list[GroupVerdict]:
    """A verdict for each group that has committed offsets of the flow on the target, or had some
    in past cycles; one without a group for each reason why groups are not listed. Raises
    ClusterUnreachable."""
    listed = target.groups()
    listings = listed.groups
    names = {*listings, *(group for group, _ in known)}
    wanted = sorted(name for name in names if flow.group_filter.should_replicate_group(name))
    offsets = committed_offsets(
        target, wanted, share_groups=listed.share_groups, require_stable=False
    )
    found = [_not_ready(flow, None, failed) for failed in listed.failures]
    for group in wanted:
        committed = offsets[group]
        if isinstance(committed, Failed):
            found.append(_not_ready(flow, group, committed))
            continue
        # Only past cycles can tell whether the source has a copy of a topic, for failback.
        commits = {
            place: one.offset
            for place, one in sorted(committed.items())
            if isinstance(one, CommittedOffset)
            and ((group, place) in known or is_written_by(flow, place.topic, by_failback=False))
        }
        of_group = {place: pair for (name, place), pair in known.items() if name == group}
        if commits or of_group:
            is_active = group in listings and listings[group].active
            found.append(_verdict(flow, group, commits, of_group, now, is_active=is_active))
    return found


def _verdict(
    flow: FlowSettings,
    group: str,
    commits: Mapping[TopicPartition, int],
    known: Mapping[TopicPartition, KnownOffset],
    now: float,
    *,
    is_active: bool,
) -> GroupVerdict:
    without = sorted(known.keys() - commits.keys())
    # An offset that another client set since then translates another commit, if any.
    same = {
        place: known[place]
        for place, offset in commits.items()
        if place in known and known[place].target_offset == offset
    }
    times = [same[place].in_sync_at if place in same else None for place in commits]
    dated = [time for time in times if time is not None]
    oldest = min(dated) if dated and len(dated) == len(times) else None
    target, reason = flow.target.alias, None
    if is_active:
        reason, message = str(Reason.GROUP_ACTIVE), GROUP_ACTIVE.format(group)
    elif without:
        reason = "NO_COMMIT"
        message = (
            f"it has no committed offset on {target} in {few([*map(str, without)], 3)}: its"
            " consumers start at their auto.offset.reset (a share group at its"
            " share.auto.offset.reset), and `latest` skips unread records"
        )
    elif diverged := [str(place) for place in commits if place in known and known[place].diverged]:
        reason = str(Reason.DIVERGED)
        message = (
            f"in the last cycle, {few(diverged, 3)} had other records on {target} than on"
            f" {flow.source.alias}: find out which are right before its consumers start on {target}"
        )
    else:
        since = "last committed offsets, whose age is not known"
        if oldest is not None:
            since = f"committed offsets of {in_utc(oldest * 1000)}"
        message = (
            f"it resumes from its {since}; records that it has processed on {flow.source.alias}"
            " since are re-read"
        )
    return GroupVerdict(
        flow.name,
        group,
        FailoverVerdict.NOT_READY if reason else FailoverVerdict.UNVERIFIED,
        None,
        len(commits.keys() | known.keys()),
        words(commits.items()),
        words((pair.source, pair.source_offset) for pair in same.values()),
        None if oldest is None else in_utc(oldest * 1000),
        None if oldest is None else round(now - oldest),
        reason,
        message,
    )


def _not_ready(flow: FlowSettings, group: str | None, failed: Failed) -> GroupVerdict:
    nothing, why = (None, 0, "", "", None, None), (failed.kind, failed.message)
    return GroupVerdict(flow.name, group, FailoverVerdict.NOT_READY, *nothing, *why)
