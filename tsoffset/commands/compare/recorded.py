"""Compares with translations from the history (`history.dir`), without the source cluster; with
checkpoints from a file without any cluster."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext

from tsoffset.cluster import Connect
from tsoffset.commands.compare.checkpoints import checkpoints_of, source_topic
from tsoffset.commands.compare.judgement import CheckpointLookup, ComparedPair, compare_pair
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.cycle.values import rows_of
from tsoffset.errors import UsageError
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import OutcomeKind, Row, TopicPartition, Translated
from tsoffset.replicators.checkpoints import CheckpointKey, Checkpoints


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
    with nullcontext() if options.file is not None else connect(flow.target) as target:
        found = checkpoints_of(flow, options, target, current, warnings)
    ends: dict[tuple[str | None, int | None], int] = {}
    for row in rows:
        place = row.source_topic, row.partition
        ends[place] = max(ends.get(place, 0), row.source_offset or 0)
    pairs = [
        compare_pair(
            at_ms,
            row,
            _answer(row),
            CheckpointLookup.of(found, _key(row)),
            source_end=ends[row.source_topic, row.partition],
            recorded=True,
        )
        for row in rows
    ]
    known = set(map(_key, rows))
    why = "history has nothing of this group and partition"
    pairs += without_commits(flow, at_ms, found.newest.keys() - known, found, {}, why)
    return pairs, known_at_ms


def _key(row: Row) -> CheckpointKey | None:
    if row.group is None or row.target_topic is None or row.partition is None:
        return None
    return CheckpointKey(row.group, TopicPartition(row.target_topic, row.partition))


def without_commits(
    flow: FlowSettings,
    at_ms: int,
    keys: Iterable[CheckpointKey],
    found: Checkpoints,
    current: Mapping[CheckpointKey, int],
    why: str,
) -> Iterator[ComparedPair]:
    """The pairs of checkpoints without a committed offset on the source, in topics that the flow
    syncs. `current` are the target groups' offsets."""
    for key in keys:
        target = key.target
        if (topic := source_topic(flow, target.topic)) is not None:
            row = Row(
                flow=flow.name,
                group=key.group,
                source_topic=topic,
                partition=target.partition,
                source_offset=None,
                source_timestamp_ms=None,
                target_topic=target.topic,
                target_offset=None,
                current_target_offset=current.get(key),
                outcome=OutcomeKind.SKIPPED,
                message=why,
            )
            yield compare_pair(at_ms, row, None, CheckpointLookup.of(found, key))


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
    from tsoffset.history.reading import last_known_and_when

    known = last_known_and_when(directory, flow.name)
    if known is None:
        warnings.append(
            f"flow {flow.name}: the history has no cycle of it; wait for a cycle of `tsoffset run`,"
            " and check that it has the same history.dir"
        )
        return [], None
    table, ended = known
    at = table.schema.get_field_index("current_target_offset")
    table = table.set_column(at, "current_target_offset", on_target(table))
    is_group, is_topic = (
        flow.group_filter.should_replicate_group,
        flow.topic_filter.should_replicate_topic,
    )
    rows = [
        row
        for row in rows_of(table.select(list(Row.__match_args__)))
        if (row.group is None or is_group(row.group))
        and (row.source_topic is None or is_topic(row.source_topic))
    ]
    return rows, int(ended * 1000) or None


def _answer(row: Row) -> Translated | None:
    """The translation of the row; the history has no equivalent offsets."""
    if row.target_offset is None or row.precision is None:
        return None
    offset = row.target_offset
    return Translated(offset, row.precision, row.reread_bound, offset, offset)
