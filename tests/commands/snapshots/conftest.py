"""A cluster with committed offsets, a snapshot of it, and restoring one."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.invoking import in_memory
from tests.memory_flows import Estate, flow, mirrored_estate
from tsoffset.commands.snapshots.run import write_snapshot
from tsoffset.flow.narrowing import Narrowing


@pytest.fixture
def estate() -> Estate:
    """Two groups on B with commits there, one of them with metadata, and one without any."""
    estate = mirrored_estate(100)
    estate.commit("billing", "A.orders", 50, on="B", metadata='invoice "7"\nü')
    estate.commit("billing", "own", 3, on="B", partition=2)
    estate.commit("shipping", "A.orders", 70, on="B")
    estate["B"].create_topic("own", 3)
    estate["B"].group("idle")
    return estate


def snapshot(estate: Estate, tmp_path: Path, groups: str | None = None) -> Path:
    narrowed = Narrowing(groups).apply(flow())
    _, path = write_snapshot(narrowed, estate["B"], groups, tmp_path / "b.snapshot")
    return path


@pytest.fixture
def path(estate: Estate, tmp_path: Path) -> Path:
    """A snapshot of what B holds at first."""
    return snapshot(estate, tmp_path)


def restore(
    estate: Estate, path: Path, *words: str, lines: Sequence[str] = ()
) -> tuple[int, dict[tuple[str, str], tuple[str, str | None, int | None]], str]:
    """The exit status; by group and topic outcome, reason and the offset restored; and what is said
    beside them."""
    given = ("restore", str(path), *words, "--format", "json")
    result = in_memory(estate, path.parent, *given, lines=lines)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {
        (row["group"], row["topic"]): (row["outcome"], row["reason"], row["restored_offset"])
        for row in rows
    }
    return result.exit_code, found, " ".join(result.stderr.split())
