"""Comparing with translations that the daemon has kept (`history.dir`), asking no source cluster;
with checkpoints from a file no cluster at all."""

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
# Of the last cycles, to find one that reached the clusters.
_POINTS = 100


def recorded_pairs(
    flow: FlowSettings,
    options: CompareOptions,
    connect: Connect,
    settings: Settings,
    at_ms: int,
    warnings: list[str],
) -> tuple[list[ComparedPair], int | None]:
    """The pairs of the flow's last cycle that history has, beside the checkpoints, and when that
    cycle ended (milliseconds since 1970 UTC; None where there is none). Raises
    ClusterUnreachable, and UsageError where no history is kept.

    `lag` counts to the furthest commit that any group has in the partition, since nobody is asked
    where its log ends.
    """
    rows, known_at_ms = _recorded(flow, settings, warnings)
    current = {
        CheckpointKey(row.group or "", TopicPartition(row.target_topic, row.partition)): there
        for row in rows
        if row.target_topic is not None and row.partition is not None
        if (there := row.current_target_offset) is not None
    }
    if options.file is not None:
        found = checkpoints_of(flow, options, None, current, warnings)
    else:
        with connect(flow.target) as target:
            found = checkpoints_of(flow, options, target, current, warnings)
    pairs = []
    known = set()
    ends = _furthest(rows)
    for row in rows:
        key = None
        if row.group is not None and row.target_topic is not None and row.partition is not None:
            key = CheckpointKey(row.group, TopicPartition(row.target_topic, row.partition))
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


def without_commit(
    flow: FlowSettings,
    at_ms: int,
    key: CheckpointKey,
    lookup: CheckpointLookup,
    current: int | None,
    why: str,
) -> ComparedPair | None:
    """The pair of a checkpoint that has no commit beside it; None where the flow does not sync its
    topic. `current` is what the target group has."""
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
    """The rows of the last cycle, with what the target groups had after it; and when it ended."""
    directory = settings.history.directory
    if directory is None:
        raise UsageError(
            "--history: history.dir is not set, so nothing is kept of past cycles; set it to a "
            "folder or a URI, and restart `tsoffset run`"
        )
    # Loads pyarrow, which the other ways have no need of.
    from tsoffset.daemon.freshness import on_target
    from tsoffset.history.reading import last_known, points
    from tsoffset.stores import place_of

    table = last_known(directory, flow.name)
    if table is None:
        warnings.append(
            f"flow {flow.name}: history has no cycle of it; let `tsoffset run` end one, and see "
            "that it keeps history at the same place"
        )
        return [], None
    there = on_target(table)
    at = table.schema.get_field_index("current_target_offset")
    table = table.set_column(at, "current_target_offset", there)
    rows = [_row(one) for one in table.select(list(Row.__match_args__)).to_pylist()]
    past = points(place_of(directory), flow.name, 0.0, float("inf"), _POINTS, (), "")
    # Those that reached no cluster came to no rows.
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
    """What the row says; which offsets resume at the same record was not kept."""
    if row.target_offset is None or row.precision is None:
        return None
    offset = row.target_offset
    return Translated(offset, row.precision, row.reread_bound, offset, offset)


def _furthest(rows: list[Row]) -> Mapping[_Place, int]:
    ends: defaultdict[_Place, int] = defaultdict(int)
    for row in rows:
        if row.source_offset is not None:
            place = row.source_topic, row.partition
            ends[place] = max(ends[place], row.source_offset)
    return ends
