"""Commits of many groups, decided and made by columns: all that goes as it should at once.

What does not is left to `tsoffset.cycle.turns`, which looks anew before it decides: groups and
partitions that could not be asked, targets that are ahead, groups with members, commits that were
refused, came too late, or may have been written though no answer says so.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tsoffset.cluster import Cluster
from tsoffset.columns import Flags
from tsoffset.cycle.matching import committed_there, numbers, without_verdict, words
from tsoffset.cycle.schema import SETTLED, by_name, columns_table
from tsoffset.cycle.source_commits import committed_columns
from tsoffset.cycle.turns import (
    FRESH_SECONDS,
    GROUPS_AT_ONCE,
    LOOK_SECONDS,
    ROWS_AT_ONCE,
    Time,
    try_commit,
)
from tsoffset.model import CommittedOffset, Failed, OutcomeKind, TopicPartition
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING
from tsoffset.rule.decide import stays

_OUTCOMES = [OutcomeKind.UNCHANGED, OutcomeKind.WOULD_COMMIT, OutcomeKind.COMMITTED]
_UNCHANGED, _WOULD_COMMIT, _COMMITTED, _AHEAD = range(len(_OUTCOMES) + 1)


@dataclass(frozen=True, slots=True)
class SettledAtOnce:
    """What became of settlements, as SETTLED in their order.

    `left` are those that are not settled: `ahead`, where the group is past the translation, or in
    need of a closer look. Of those that were `sent` the commit may have been written. What the
    groups had before is in the rows; those that `failed` could not be asked. `gap_seconds` is the
    longest time between asking and sending a commit.
    """

    rows: pa.Table
    left: Flags
    ahead: Flags
    sent: Flags
    failed: Mapping[str, Failed]
    gap_seconds: float


def settle_at_once(
    target: Cluster,
    settlements: pa.Table,
    groups: Mapping[int, str],
    *,
    commit: bool,
    until: float | None,
    clock: Time,
) -> SettledAtOnce:
    """Settle what goes as it should of SETTLEMENTS, which are in the order of their groups.

    `groups` are the names by number. Each part is decided on what its groups have at most
    `FRESH_SECONDS` before it is sent, and nothing is sent from `until` on.
    """
    group, offset = numbers(settlements["group"]), numbers(settlements["target_offset"])
    plain = (offset != NOTHING) & without_verdict(settlements)
    for odd in ("target_active", "rewrites_timestamps"):
        plain &= ~settlements[odd].fill_null(False).to_numpy()
    current = np.full(len(offset), NOTHING)
    outcome = np.full(len(offset), NOTHING)
    sent = np.zeros(len(offset), bool)
    failed: dict[str, Failed] = {}
    longest = 0.0
    for rows in _parts(group, np.flatnonzero(plain)):
        part = settlements.take(pa.array(rows))
        looked_at = clock.monotonic()
        current[rows], outcome[rows], unasked = _decided(target, part, groups)
        failed.update(unasked)
        moves = rows[outcome[rows] == _WOULD_COMMIT]
        if not commit or not len(moves):
            continue
        gaps: dict[str, float] = {}

        def may_send(
            group: str, looked_at: float = looked_at, gaps: dict[str, float] = gaps
        ) -> bool:
            gap = clock.monotonic() - looked_at
            if gap > FRESH_SECONDS or (until is not None and clock.time() >= until):
                return False
            gaps[group] = gap
            return True

        accepted = _committed(target, settlements.take(pa.array(moves)), groups, may_send)
        outcome[moves] = np.where(accepted, _COMMITTED, NOTHING)
        sent[moves] = [groups[number] in gaps for number in group[moves].tolist()]
        longest = max([longest, *gaps.values()])
    columns = by_name(settlements) | {
        "current_target_offset": pa.array(current, mask=current == NOTHING),
        "outcome": words(_OUTCOMES, np.clip(outcome, 0, _COMMITTED)),
    }
    left = (outcome == NOTHING) | (outcome == _AHEAD)
    return SettledAtOnce(
        columns_table(SETTLED, len(offset), columns), left, outcome == _AHEAD, sent, failed, longest
    )


def _parts(group: Numbers, rows: Numbers) -> Iterator[Numbers]:
    """The rows in parts of whole groups, each small enough to be sent in time."""
    begins = np.flatnonzero(np.append(True, np.diff(group[rows]) != 0)) if len(rows) else rows
    ends = np.append(begins[1:], len(rows))
    first = 0
    for number in range(len(begins)):
        last = number + 1 == len(begins)
        full = number + 1 - first == GROUPS_AT_ONCE
        if last or full or ends[number + 1] - begins[first] > ROWS_AT_ONCE:
            yield rows[begins[first] : ends[number]]
            first = number + 1


def _decided(
    target: Cluster, part: pa.Table, groups: Mapping[int, str]
) -> tuple[Numbers, Numbers, Mapping[str, Failed]]:
    """What each of the groups has on the target; what is to become of the commit: one of the
    outcomes above, NOTHING where that needs a closer look; and the groups that were not asked."""
    number, offset = numbers(part["group"]), numbers(part["target_offset"])
    asked = np.unique(number)
    names = [groups[one] for one in asked.tolist()]
    there = committed_columns(target, names, require_stable=True, within_seconds=LOOK_SECONDS)
    current = committed_there(part, there, asked)
    in_place = stays(current, numbers(part["equivalent_from"]), numbers(part["equivalent_to"]))
    found = np.where(current <= offset, _WOULD_COMMIT, _AHEAD)
    found[(current != NOTHING) & in_place] = _UNCHANGED
    unasked = [place for place, name in enumerate(names) if name in there.failed]
    found[np.isin(number, asked[unasked])] = NOTHING
    if there.failed_entries:
        entries = [
            (name, TopicPartition(topic, partition)) in there.failed_entries
            for name, topic, partition in zip(
                (groups[one] for one in number.tolist()),
                part["target_topic"].to_pylist(),
                part["partition"].to_pylist(),
                strict=True,
            )
        ]
        found[np.array(entries)] = NOTHING
    return current, found, there.failed


def _committed(
    target: Cluster,
    moves: pa.Table,
    groups: Mapping[int, str],
    may_send: Callable[[str], bool],
) -> Flags:
    """Commit the translations of these settlements; whether each was."""
    commits: defaultdict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
    known: dict[tuple[str, int], TopicPartition] = {}
    places: list[tuple[str, TopicPartition]] = []
    columns = ("group", "target_topic", "partition", "target_offset", "metadata")
    for group, topic, partition, offset, metadata in zip(
        *(moves[name].to_pylist() for name in columns), strict=True
    ):
        one = known.get((topic, partition))
        if one is None:
            one = known[topic, partition] = TopicPartition(topic, partition)
        commits[groups[group]][one] = CommittedOffset(offset, metadata or "")
        places.append((groups[group], one))
    answers = try_commit(target, commits, may_send)
    return np.array([answers[group][one] is None for group, one in places], bool)
