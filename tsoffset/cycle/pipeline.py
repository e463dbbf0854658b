"""A cycle from its groups to its rows, over tables:

    groups -> [look] -> unknown positions -> [translate] -> COMMIT_WORK -> [decide, commit] -> rows

Where nothing has moved the look settles all. Each distinct position that is not known travels
once. `tsoffset.cycle.steps` says who does the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.columns import Flags
from tsoffset.cycle.carry_over import CarryOver
from tsoffset.cycle.commit_work import commit_work, same_logs
from tsoffset.cycle.frames import to_arrow
from tsoffset.cycle.known_logs import KnownLogs
from tsoffset.cycle.matching import (
    in_partitions,
    joined,
    keys,
    numbered,
    numbers,
    one_of_each,
    only,
    partitions_at,
    places,
    take,
    without_reason,
    words,
    woven,
)
from tsoffset.cycle.schema import (
    KNOWN_OF_A_PAIR,
    LOG_ENDS,
    LOG_IDENTITY,
    PAIRS,
    PARTITIONS,
    POSITIONS,
    REMEMBERED,
    ROWS,
    SETTLED,
    TRANSLATIONS,
    by_name,
    columns_table,
)
from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.steps import Steps
from tsoffset.cycle.values import groups_table
from tsoffset.cycle.work import Cost
from tsoffset.group_sync.tables import FAILURES
from tsoffset.model import OutcomeKind, Precision
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING


@dataclass(frozen=True, slots=True)
class CycleTables:
    """What a cycle came to: its rows as ROWS, in the order of group, topic and partition; what the
    next one should remember; how many distinct positions the groups have; and what it took."""

    rows: pa.Table
    carry_over: CarryOver
    positions: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Looked:
    """What the first look has found: the commits of the groups with what is remembered of each, as
    LOOKED; and the logs that this was remembered of."""

    commits: pa.Table
    logs: KnownLogs


def cycle_tables(
    flow: str, steps: Steps, groups: Sequence[GroupWork], carry_over: CarryOver
) -> CycleTables:
    """One cycle of these groups, which are in the order of their names."""
    return after_look(flow, steps, groups, carry_over, first_look(steps, groups, carry_over))


def first_look(steps: Steps, groups: Sequence[GroupWork], carry_over: CarryOver) -> Looked:
    """The first step. The logs are asked before the groups: a commit behind a log's end of then is
    no known position."""
    logs = steps.logs(carry_over.partitions)
    remembered = _of_these_groups(carry_over.pairs, [work.group for work in groups])
    return Looked(steps.look(groups_table(enumerate(groups)), remembered, logs.logs), logs)


def after_look(
    flow: str, steps: Steps, groups: Sequence[GroupWork], carry_over: CarryOver, looked: Looked
) -> CycleTables:
    """The other steps, and what comes of all."""
    names = [work.group for work in groups]
    before = carry_over.partitions
    before = only(before, ~in_partitions(before, looked.logs.void))
    commits = looked.commits
    is_row = commits["source_offset"].is_valid().to_numpy() | ~without_reason(commits)
    found, alone = only(commits, is_row), only(commits, ~is_row)

    of_each = position_of_each(found)
    distinct = len(np.unique(of_each[found["source_offset"].is_valid().to_numpy()]))
    recalled = len(np.unique(of_each[found["recalled"].to_numpy()]))
    positions, unknown = unknown_positions(found, of_each)
    translated, learned, cost = TRANSLATIONS.empty_table(), PARTITIONS.empty_table(), Cost()
    if len(positions):
        translated, learned, cost = steps.translate(positions, before)
    topics = _rewritten_topics(positions, translated)

    is_open = ~found["settled"].to_numpy() | _in_topics(found, topics)
    settled = SETTLED.empty_table()
    if is_open.any():
        unsettled = only(found, is_open)
        work = commit_work(names, unsettled, translated, unknown[is_open], topics)
        results, settling = steps.decide_and_commit(same_logs(steps, work, unsettled, before))
        settled = columns_table(SETTLED, len(unsettled), to_arrow(results))
        cost += settling

    became = _became(found, is_open, settled)
    void = _void(before, looked.logs, positions, learned)
    known = _known(found, positions, translated, unknown, void, topics)
    return CycleTables(
        _rows(flow, names, found, became, _consumer_lag(found, looked.logs, translated, unknown)),
        CarryOver(
            joined(
                [
                    _pairs(names, found, became, known),
                    _pairs_alone(names, alone, void, topics),
                ]
            ),
            _partitions(before, looked.logs, positions, learned, commits),
        ),
        distinct,
        replace(cost, positions=len(positions) + recalled, recalled=recalled),
    )


def _of_these_groups(pairs: pa.Table, names: Sequence[str]) -> pa.Table:
    """What is remembered of the groups, as REMEMBERED: their numbers are their places in
    `names`."""
    group, of_name = numbered(
        pairs["group"], pa.chunked_array([words(names, np.arange(len(names)))])
    )
    number = places((group,), (of_name,))
    columns = by_name(pairs) | {"group": number.astype(np.int32)}
    return only(columns_table(REMEMBERED, len(pairs), columns), number != NOTHING)


# --- positions --------------------------------------------------------------------------


def unknown_positions(looked: pa.Table, of_each: Numbers) -> tuple[pa.Table, Numbers]:
    """The distinct positions of LOOKED that are to be translated, as POSITIONS in their order; and
    for each row where its own is among them, NOTHING where it has none. `of_each` are the rows'
    positions."""
    wanted = looked["source_offset"].is_valid().to_numpy() & ~looked["recalled"].to_numpy()
    wanted &= without_reason(looked)
    rows = np.flatnonzero(wanted)
    _, first, at = np.unique(of_each[rows], return_index=True, return_inverse=True)
    unknown = np.full(len(looked), NOTHING)
    unknown[rows] = at
    return looked.select(POSITIONS.names).take(pa.array(rows[first])), unknown


def position_of_each(found: pa.Table) -> Numbers:
    """A number for each row's position: in the order of positions, equal ones the same."""
    (topic,) = numbered(found["source_topic"])
    return keys((topic, numbers(found["partition"]), numbers(found["source_offset"])))[0]


def _rewritten_topics(positions: pa.Table, translated: pa.Table) -> pa.Array:
    """The source topics of which a target partition was seen to rewrite timestamps."""
    topics = positions["source_topic"].filter(translated["rewrites_timestamps"])
    return topics.cast(pa.string()).unique()


def _in_topics(found: pa.Table, topics: pa.Array) -> Flags:
    there: Flags = pc.is_in(found["source_topic"].cast(pa.string()), value_set=topics).to_numpy()
    return there


# --- rows -------------------------------------------------------------------------------


def _became(found: pa.Table, is_open: Flags, settled: pa.Table) -> pa.Table:
    """What became of each commit, as SETTLED: what was settled, or stays where it stands."""
    rows = only(found, ~is_open)
    unchanged = {
        "source_timestamp_ms": rows["known_timestamp_ms"],
        "target_offset": rows["known_target"],
        "current_target_offset": rows["current_target_offset"],
        "outcome": _constant(OutcomeKind.UNCHANGED, len(rows)),
        "precision": _constant(Precision.EXACT, len(rows)),
        "reread_bound": np.zeros(len(rows), np.int64),
    }
    return woven(columns_table(SETTLED, len(rows), unchanged), settled, is_open)


def _consumer_lag(
    found: pa.Table, logs: KnownLogs, translated: pa.Table, unknown: Numbers
) -> pa.Array:
    """Of each commit the source's log end less its offset; null where the end was not read in this
    cycle. The end that was read before the groups' offsets counts only for offsets that did not
    move since, so no group seems to be past it."""
    at = np.where(found["recalled"].to_numpy(), partitions_at(found, logs.logs), NOTHING)
    before = take(logs.logs.select(["source_log_end"]), at)["source_log_end"]
    end = pc.coalesce(
        take(translated.select(["source_log_end"]), unknown)["source_log_end"], before
    )
    return pc.subtract(end, found["source_offset"])


def _rows(
    flow: str, names: Sequence[str], found: pa.Table, became: pa.Table, lag: pa.ChunkedArray
) -> pa.Table:
    columns = by_name(found) | by_name(became)
    columns["consumer_lag"] = lag
    columns["flow"] = _constant(flow, len(found))
    columns["group"] = words(names, numbers(found["group"]))
    return columns_table(ROWS, len(found), columns)


def _constant(word: str, rows: int) -> pa.DictionaryArray:
    return words([word], np.zeros(rows, np.int64))


# --- what is remembered -----------------------------------------------------------------


def _void(before: pa.Table, logs: KnownLogs, positions: pa.Table, learned: pa.Table) -> pa.Table:
    """The partitions of which nothing holds that was remembered before this cycle: their logs were
    others at the look; or translating saw others, shorter ones, or left nothing to tell them by."""
    looked_at = one_of_each(positions)
    old = take(before, partitions_at(looked_at, before))
    new = take(learned, partitions_at(looked_at, learned))
    same = np.ones(len(looked_at), bool)
    for name in LOG_IDENTITY:
        same &= pc.equal(old[name], new[name]).fill_null(False).to_numpy()
    for name in LOG_ENDS:
        same &= pc.less_equal(old[name], new[name]).fill_null(False).to_numpy()
    return joined([logs.void, only(looked_at, ~same)])


def _known(
    found: pa.Table,
    positions: pa.Table,
    translated: pa.Table,
    unknown: Numbers,
    void: pa.Table,
    rewritten: pa.Array,
) -> pa.Table:
    """What is to be known of each commit's position: what was translated, as far as it holds; or
    what was known of it, unless that is void, of another position, or was answered otherwise.
    `unknown` are the numbers of the commits' positions among those that were translated."""
    in_rewritten = _in_topics(found, rewritten)
    reason = translated["reason"].cast(pa.string())
    answered = ~pc.is_in(reason, value_set=pa.array(FAILURES)).to_numpy()
    answer = np.append(numbers(translated["target_offset"]), NOTHING)[unknown]
    otherwise = np.append(answered, False)[unknown] & (answer != numbers(found["known_target"]))
    holds = np.append(translated["holds"].to_numpy(), False)[unknown] & ~in_rewritten
    offset, known = numbers(found["source_offset"]), numbers(found["known_offset"])
    kept = (offset == known) | (offset == NOTHING)
    kept &= ~in_partitions(found, void) & ~in_rewritten & ~otherwise
    fresh = {
        "known_offset": positions["source_offset"],
        "known_target": translated["target_offset"],
        "known_from": translated["equivalent_from"],
        "known_to": translated["equivalent_to"],
        "known_timestamp_ms": translated["source_timestamp_ms"],
        "known_source_end": translated["while_source_end"],
        "known_source_log_end": translated["while_source_log_end"],
        "known_target_end": translated["while_target_end"],
    }
    at = np.where(kept, np.arange(len(found)), NOTHING)
    at[holds] = len(found) + unknown[holds]
    return take(joined([found.select(KNOWN_OF_A_PAIR), pa.table(fresh)]), at)


def _pairs(names: Sequence[str], found: pa.Table, became: pa.Table, known: pa.Table) -> pa.Table:
    """What is to be remembered of each commit, as PAIRS: `known` of its position, and the last
    commit that led where the target group stands."""
    moved = pc.equal(became["outcome"], OutcomeKind.COMMITTED)
    stayed = pc.equal(became["outcome"], OutcomeKind.UNCHANGED)
    led = pc.or_(moved, stayed)
    stands_at = pc.if_else(moved, became["target_offset"], became["current_target_offset"])
    columns = by_name(found) | by_name(known)
    columns["group"] = words(names, numbers(found["group"]))
    columns["last_source"] = pc.if_else(led, found["source_offset"], found["last_source"])
    columns["last_target"] = pc.if_else(led, stands_at, found["last_target"])
    return _worth_keeping(columns_table(PAIRS, len(found), columns))


def _pairs_alone(
    names: Sequence[str], alone: pa.Table, void: pa.Table, rewritten: pa.Array
) -> pa.Table:
    """The same of pairs that have no commit, or could not be asked for it."""
    forgotten = in_partitions(alone, void) | _in_topics(alone, rewritten)
    columns = by_name(alone)
    columns["group"] = words(names, numbers(alone["group"]))
    for name in KNOWN_OF_A_PAIR:
        nothing = pa.scalar(None, pa.int64())
        columns[name] = pc.if_else(pa.array(forgotten), nothing, columns[name])
    return _worth_keeping(columns_table(PAIRS, len(alone), columns))


def _worth_keeping(pairs: pa.Table) -> pa.Table:
    there = pc.or_(pairs["known_offset"].is_valid(), pairs["last_source"].is_valid())
    return only(pairs, there.to_numpy())


def _partitions(
    before: pa.Table, logs: KnownLogs, positions: pa.Table, learned: pa.Table, commits: pa.Table
) -> pa.Table:
    """What is to be remembered of partitions, as PARTITIONS: what translating left of those that it
    looked at; of the others what was, with the ends that their logs have now. Those in which no
    group stands any more are forgotten."""
    kept = in_partitions(before, one_of_each(commits))
    kept &= ~in_partitions(before, one_of_each(positions))
    rest = only(before, kept)
    now = take(logs.logs, partitions_at(rest, logs.logs))
    columns = by_name(rest)
    for name in LOG_ENDS:
        columns[name] = pc.coalesce(now[name], rest[name])
    return joined([columns_table(PARTITIONS, len(rest), columns), learned])
