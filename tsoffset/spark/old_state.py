"""State files of version 1, in which positions were kept by partition."""

from typing import Any

import pyarrow as pa

from tsoffset.cycle.schema import PAIRS, PARTITIONS, table

# Its columns' names where they differ.
_RENAMED = {"is_remote_topic": "remote_name", "failback": "reverse"}
# At first nothing was kept of the frontier.
_OPTIONAL = ("frontier_source", "frontier_target")


def of_version_1(commits: pa.Table, partitions: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What such a file says, as PAIRS and PARTITIONS. Raises KeyError for columns it lacks."""
    rows = partitions.to_pylist()
    places = [(row["source_topic"], row["partition"]) for row in rows]
    known = {
        place: dict(zip(row["offsets"], _positions(row), strict=True))
        for place, row in zip(places, rows, strict=True)
    }
    pairs = []
    for row in commits.to_pylist():
        place = row["source_topic"], row["partition"]
        last = row["remembered_source_offset"], row["remembered_target_offset"]
        position = known.get(place, {}).get(last[0], (None,) * 8)
        pairs.append((row["group"], *place, *position, *last))
    kept = [
        tuple(
            row.get(name) if name in _OPTIONAL else row[_RENAMED.get(name, name)]
            for name in PARTITIONS.names
        )
        for row in rows
    ]
    return table(PAIRS, pairs), table(PARTITIONS, kept)


def _positions(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of each position what PAIRS has."""
    names = ("offsets", "target_offsets", "same_from", "same_to", "timestamps_ms", "passed")
    ends = row["source_end"], row["source_log_end"], row["target_end"]
    return [
        (*fields, *((None, None, None) if passed else ends))
        for *fields, passed in zip(*(row[name] for name in names), strict=True)
    ]
