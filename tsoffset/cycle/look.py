"""The first look of a cycle: what groups have committed on both sides, and what of it is known.

By columns, from the answers of the brokers to the rows: where nothing has moved nothing else is
to be done. Only what is seldom takes the path of values (`tsoffset.cycle.source_commits`): groups
and partitions that could not be asked, groups of other kinds, topics that two sources share.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.cluster import Cluster
from tsoffset.columns import Flags
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.matching import (
    committed_there,
    joined,
    keys,
    numbered,
    numbers,
    only,
    partitions_at,
    places,
    take,
    without_reason,
    words,
)
from tsoffset.cycle.schema import (
    COMMITS,
    KNOWN_OF_A_PAIR,
    LOGS,
    LOOKED,
    REMEMBERED_OF_A_PAIR,
    by_name,
    columns_table,
)
from tsoffset.cycle.source_commits import (
    Claims,
    CompetingFlow,
    GroupWork,
    SourceCommit,
    renamings_of,
    source_commits,
)
from tsoffset.cycle.values import commits_table, groups_of
from tsoffset.flow.policy import Renaming
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.commit import READ_SECONDS
from tsoffset.group_sync.read import committed_columns
from tsoffset.model import (
    CommittedOffset,
    Failed,
    GroupOffsets,
    GroupType,
    TopicPartition,
)
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING, KnownColumns, LogColumns, recalled

T = TypeVar("T")


def look(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    groups: pa.Table,
    remembered: pa.Table,
    logs: pa.Table,
    competing_flows: Sequence[CompetingFlow] = (),
) -> pa.Table:
    """What the groups (GROUPS) have committed on the source, as LOOKED, in the order of group,
    topic and partition; those that are known and stand on the target where they should, settled.

    `remembered` is of these groups (REMEMBERED), `logs` of all partitions of which something is
    remembered (LOGS).
    """
    works = {work.group: (number, work) for number, work in groups_of(groups).items()}
    readable = [name for name, (_, work) in works.items() if work.type is not GroupType.SHARE]
    known = set(remembered["group"].unique().to_pylist())
    with ThreadPoolExecutor(1) as beside:
        current = beside.submit(
            committed_columns,
            target,
            [name for name, (number, _) in works.items() if number in known],
            require_stable=True,
            within_seconds=READ_SECONDS,
        )
        commits = committed_columns(source, readable, require_stable=False)
        found = _commits(flow, works, commits, competing_flows)
        there = current.result()
    found = _with_memory(found, remembered, [works[group][0] for group in commits.failed])
    found = _with_logs(found, logs)
    numbers_there = np.array([works[group][0] for group in there.groups], np.int64)
    return _settled(found, there, numbers_there)


def unread(groups: pa.Table, remembered: pa.Table, failed: Failed) -> pa.Table:
    """What `look` returns where none of the groups could be read."""
    works = groups_of(groups)
    values = (SourceCommit(work.group, None, None, None, verdict=failed) for work in works.values())
    found = _with_memory(commits_table(zip(works, values, strict=True)), remembered, [*works])
    nothing = np.zeros(len(found), bool)
    columns = by_name(found) | {"recalled": nothing, "settled": nothing}
    return columns_table(LOOKED, len(found), columns)


# --- source commits ---------------------------------------------------------------------


def _commits(
    flow: FlowSettings,
    works: Mapping[str, tuple[int, GroupWork]],
    commits: CommittedColumns,
    competing_flows: Sequence[CompetingFlow],
) -> pa.Table:
    """The source commits that the flow syncs, as COMMITS; `works` are the groups by name, with
    their numbers."""
    of_each = [works[group] for group in commits.groups]
    claims = Claims(competing_flows, commits.groups)
    others = {partition.topic for _, partition in commits.failed_entries}
    renamings, unnamed = renamings_of(flow, {*commits.topics, *others})
    sharing = Counter(renaming.topic for renaming in renamings.values() if renaming is not None)

    def is_plain(one: Renaming | None) -> bool:
        return one is not None and sharing[one.topic] == 1 and not claims.may_be_on(one)

    of_topic = [renamings[topic] for topic in commits.topics]
    synced = _each(of_topic, lambda one: one is not None)[commits.topic]
    plain = _each(of_topic, is_plain)[commits.topic]
    plain &= _each(of_each, lambda one: one[1].is_supported)[commits.group]
    nameless = _each(commits.topics, lambda topic: topic in unnamed)[commits.topic]
    odd: dict[str, GroupOffsets | Failed] = dict(commits.failed)
    failed = []
    for group, theirs in _odd_offsets(commits, (synced & ~plain) | nameless).items():
        odd[group] = {at: one for at, one in theirs.items() if at.topic not in unnamed}
        failed += [
            SourceCommit(
                group,
                at,
                one if isinstance(one, CommittedOffset) else None,
                None,
                verdict=unnamed[at.topic],
            )
            for at, one in theirs.items()
            if at.topic in unnamed
        ]
    odd_works = [
        work for name, (_, work) in works.items() if name in odd or work.type is GroupType.SHARE
    ]
    values = chain(source_commits(flow, odd_works, odd, claims), failed)
    return joined(
        [
            _plain_commits(commits, np.flatnonzero(plain), of_each, of_topic),
            commits_table((works[commit.group][0], commit) for commit in values),
        ]
    )


def _each(items: Sequence[T], holds: Callable[[T], bool]) -> Flags:
    return np.array([holds(item) for item in items], bool)


def _odd_offsets(
    commits: CommittedColumns, odd: Flags
) -> defaultdict[str, dict[TopicPartition, CommittedOffset | Failed]]:
    """The entries that need a look each, by group; and those that failed."""
    found: defaultdict[str, dict[TopicPartition, CommittedOffset | Failed]] = defaultdict(dict)
    for entry in np.flatnonzero(odd).tolist():
        topic = commits.topics[commits.topic[entry]]
        partition = TopicPartition(topic, int(commits.partition[entry]))
        committed = CommittedOffset(int(commits.offset[entry]), commits.metadata.get(entry, ""))
        found[commits.groups[commits.group[entry]]][partition] = committed
    for (group, partition), failed in commits.failed_entries.items():
        found[group][partition] = failed
    return found


def _plain_commits(
    commits: CommittedColumns,
    plain: Numbers,
    works: Sequence[tuple[int, GroupWork]],
    renamings: Sequence[Renaming | None],
) -> pa.Table:
    """Those entries as COMMITS; `works` are the groups with their numbers, `renamings` those of the
    topics, in the order in which the commits have them."""
    group, topic = commits.group[plain], commits.topic[plain]
    names = ["" if renaming is None else renaming.topic for renaming in renamings]
    columns = {
        "group": np.array([number for number, _ in works], np.int32)[group],
        "source_topic": words(commits.topics, topic),
        "partition": commits.partition[plain],
        "source_offset": commits.offset[plain],
        "target_topic": words(names, topic),
        "is_remote_topic": _each(renamings, lambda one: bool(one and one.is_remote_topic))[topic],
        "failback": _each(renamings, lambda one: bool(one and one.failback))[topic],
        "target_active": _each(works, lambda one: one[1].target_active)[group],
    }
    if commits.metadata:
        columns["metadata"] = [commits.metadata.get(entry) for entry in plain.tolist()]
    return columns_table(COMMITS, len(plain), columns)


# --- what is known of them --------------------------------------------------------------


def _with_memory(commits: pa.Table, remembered: pa.Table, failed: Sequence[int]) -> pa.Table:
    """The commits with what is remembered of each, in order; and behind them, as rows of their own,
    what is remembered of pairs that have no commit. Of those only the last commit is kept, unless
    their group (by number) could not be asked."""
    here, there = numbered(commits["source_topic"], remembered["source_topic"])
    place = keys((numbers(commits["group"]), here, numbers(commits["partition"])))[0]
    order = np.argsort(place, kind="stable")
    # A broker that names a partition twice means what it says last.
    order = order[np.append(np.diff(place[order]) != 0, True)[: len(order)]]
    commits, here = commits.take(pa.array(order)), here[order]
    at = places(
        (numbers(commits["group"]), here, numbers(commits["partition"])),
        (numbers(remembered["group"]), there, numbers(remembered["partition"])),
    )
    known = take(remembered.select(REMEMBERED_OF_A_PAIR), at)
    found = columns_table(LOOKED, len(commits), {**by_name(commits), **by_name(known)})
    left = np.ones(len(remembered), bool)
    left[at[at != NOTHING]] = False
    if not left.any():
        return found
    alone = only(remembered, left)
    unasked = np.isin(numbers(alone["group"]), failed)
    kept = by_name(alone)
    for name in KNOWN_OF_A_PAIR:
        kept[name] = pc.if_else(pa.array(unasked), kept[name], pa.scalar(None, pa.int64()))
    return joined([found, columns_table(LOOKED, len(alone), kept)])


def _with_logs(found: pa.Table, logs: pa.Table) -> pa.Table:
    """With whether what is known of a commit is its translation, and where its target log begins
    and ends."""
    of_each = take(logs, partitions_at(found, logs))
    offset = numbers(found["source_offset"])
    known = KnownColumns(
        offset=numbers(found["known_offset"]),
        target_offset=numbers(found["known_target"]),
        source_end=numbers(found["known_source_end"]),
        source_log_end=numbers(found["known_source_log_end"]),
        target_end=numbers(found["known_target_end"]),
    )
    now = LogColumns(
        **{
            name: numbers(of_each[name])
            for name in LOGS.names
            if name not in ("source_topic", "partition")
        }
    )
    holds = recalled(offset, known, now) & (offset != NOTHING) & without_reason(found)
    columns = by_name(found)
    for name in ("target_start", "target_end"):
        columns[name] = of_each[name]
    # A commit below the log start resumes nowhere: it is not the same.
    begins = np.where(holds, np.maximum(numbers(found["known_from"]), now.target_start), NOTHING)
    columns["known_from"] = pc.if_else(pa.array(holds), pa.array(begins), found["known_from"])
    columns["recalled"] = holds
    return columns_table(LOOKED, len(found), columns)


def _settled(found: pa.Table, current: CommittedColumns, groups: Numbers) -> pa.Table:
    """With whether the target group stands where what is known of its commit leads; `groups` are
    the numbers of those that have `current`."""
    offset = committed_there(found, current, groups)
    settled = (offset != NOTHING) & found["recalled"].to_numpy()
    settled &= numbers(found["known_from"]) <= offset
    settled &= offset <= numbers(found["known_to"])
    columns = by_name(found)
    columns["settled"] = settled
    columns["current_target_offset"] = pa.array(offset, mask=~settled)
    return columns_table(LOOKED, len(found), columns)
