"""Compares with translations from the history (`history.dir`), without the source cluster; with
checkpoints from a file without any cluster."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tsoffset.cluster import Connect
from tsoffset.commands.compare.checkpoints import checkpoints_of, source_topic
from tsoffset.commands.compare.judgement import CheckpointLookup, ComparedPair, compare_pair
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.errors import UsageError
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import (
    FailureKind,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TopicPartition,
    Translated,
)
from tsoffset.replicators.checkpoints import CheckpointKey

_Place = tuple[str | None, int | None]
# The last cycles in which to look for one that reached the clusters.
_POINTS = 100


def recorded_pairs(
    flow: FlowSettings,
    options: CompareOptions,
    connect: Connect,
    settings: Settings,
    at_ms: int,
    warnings: list[str],
) -> tuple[list[ComparedPair], int | None]:
    """Compare the flow's last cycle in the history with the checkpoints. Returns the pairs, and
    when that cycle ended (milliseconds since 1970 UTC; None without one). Raises
    ClusterUnreachable, and UsageError without a history.

    `lag` counts to the largest offset that any group has committed in the partition, since the log
    end is not known.
    """
    rows, known_at_ms = _recorded(flow, settings, warnings)
    current = {
        key: row.current_target_offset
        for row in rows
        if (key := _key(row)) is not None and row.current_target_offset is not None
    }
    if options.file is not None:
        found = checkpoints_of(flow, options, None, current, warnings)
    else:
        with connect(flow.target) as target:
            found = checkpoints_of(flow, options, target, current, warnings)
    pairs = []
    known: set[CheckpointKey | None] = set()
    ends = _largest_offsets(rows)
    for row in rows:
        key = _key(row)
        known.add(key)
        pairs.append(
            compare_pair(
                at_ms,
                row,
                _answer(row),
                CheckpointLookup.of(found, key),
                source_end=ends.get((row.source_topic, row.partition)),
                recorded=True,
            )
        )
    why = "history has nothing of this group and partition"
    for key in found.newest:
        if key not in known and (
            pair := without_commit(flow, at_ms, key, CheckpointLookup.of(found, key), None, why)
        ):
            pairs.append(pair)
    return pairs, known_at_ms


def _key(row: Row) -> CheckpointKey | None:
    if row.group is None or row.target_topic is None or row.partition is None:
        return None
    return CheckpointKey(row.group, TopicPartition(row.target_topic, row.partition))


def without_commit(
    flow: FlowSettings,
    at_ms: int,
    key: CheckpointKey,
    lookup: CheckpointLookup,
    current: int | None,
    why: str,
) -> ComparedPair | None:
    """The pair of a checkpoint without a committed offset on the source; None if the flow does not
    sync its topic. `current` is the target group's offset."""
    topic = source_topic(flow, key.target.topic)
    if topic is None:
        return None
    row = Row(
        flow=flow.name,
        group=key.group,
        source_topic=topic,
        partition=key.target.partition,
        source_offset=None,
        source_timestamp_ms=None,
        target_topic=key.target.topic,
        target_offset=None,
        current_target_offset=current,
        outcome=OutcomeKind.SKIPPED,
        message=why,
    )
    return compare_pair(at_ms, row, None, lookup)


def _recorded(
    flow: FlowSettings, settings: Settings, warnings: list[str]
) -> tuple[list[Row], int | None]:
    """The rows of the last cycle, with the target groups' offsets after it, and when it ended."""
    directory = settings.history.directory
    if directory is None:
        raise UsageError(
            "--history: history.dir is not set, so nothing is kept of past cycles; set it to a "
            "folder or a URI, and restart `tsoffset run`"
        )
    # Loads pyarrow.
    from tsoffset.daemon.freshness import on_target
    from tsoffset.history.reading import last_known, points
    from tsoffset.stores import place_of

    table = last_known(directory, flow.name)
    if table is None:
        warnings.append(
            f"flow {flow.name}: the history has no cycle of it; wait for a cycle of `tsoffset run`,"
            " and check that it has the same history.dir"
        )
        return [], None
    current = on_target(table)
    at = table.schema.get_field_index("current_target_offset")
    table = table.set_column(at, "current_target_offset", current)
    rows = [_row(one) for one in table.select(list(Row.__match_args__)).to_pylist()]
    past = points(place_of(directory), flow.name, 0.0, float("inf"), _POINTS, (), "")
    # Cycles that reached no cluster have no rows.
    ended = [point.at for point in past if point.groups is not None]
    return (
        [
            row
            for row in rows
            if (row.group is None or flow.group_filter.should_replicate_group(row.group))
            and (
                row.source_topic is None
                or flow.topic_filter.should_replicate_topic(row.source_topic)
            )
        ],
        int(ended[-1] * 1000) if ended else None,
    )


def _row(one: dict[str, Any]) -> Row:
    precision = one["precision"]
    return Row(
        **one
        | {
            "outcome": OutcomeKind(one["outcome"]),
            "reason": _reason(one["reason"]),
            "precision": None if precision is None else Precision(precision),
        }
    )


def _reason(name: str | None) -> Reason | FailureKind | None:
    if name is None:
        return None
    return Reason(name) if name in Reason.__members__ else FailureKind(name)


def _answer(row: Row) -> Translated | None:
    """The translation of the row; the history has no equivalent offsets."""
    if row.target_offset is None or row.precision is None:
        return None
    offset = row.target_offset
    return Translated(offset, row.precision, row.reread_bound, offset, offset)


def _largest_offsets(rows: list[Row]) -> Mapping[_Place, int]:
    ends: defaultdict[_Place, int] = defaultdict(int)
    for row in rows:
        if row.source_offset is not None:
            place = row.source_topic, row.partition
            ends[place] = max(ends[place], row.source_offset)
    return ends
