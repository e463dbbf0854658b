"""Commands on clusters where a partition of `__consumer_offsets` has no leader: each says so."""

import io
from pathlib import Path

import pytest

from tests.commands.test_compare import checkpoint, comparison
from tests.commands.test_scope import Command, check, export, failover, plan, restore, snapshot
from tests.configured import properties_file
from tests.memory_flows import Estate, mirrored_estate, unused_partition
from tsoffset.commands.snapshots.run import run_restore
from tsoffset.config.selection import Selection, Selector
from tsoffset.errors import SnapshotFailed
from tsoffset.model import GROUP_OFFSETS_TOPIC, TopicPartition
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output


def dry_failover(selection: Selection, estate: Estate, output: Output, folder: Path) -> int:
    return failover(selection, estate, output, folder, dry_run=True)


@pytest.fixture
def estate() -> Estate:
    """A group `billing` with commits on both sides, in one of two partitions."""
    estate = mirrored_estate(100, billing=60)
    estate.commit("billing", "A.orders", 60, on="B")
    for alias in "AB":
        estate[alias].create_topic(GROUP_OFFSETS_TOPIC, 2, internal=True)
    return estate


def run(
    command: Command, estate: Estate, folder: Path, groups: str | None = None
) -> tuple[int, str]:
    out = io.StringIO()
    selection = Selector(properties_file(folder, "a:1", "b:1"), (), groups, None).select()
    return command(selection, estate, Output(out, Format.JSON), folder), out.getvalue()


@pytest.mark.parametrize("alias", ["A", "B"])
@pytest.mark.parametrize("command", [check, plan, export, dry_failover])
def test_a_result_that_may_lack_groups_is_none_that_is_well(
    command: Command, alias: str, estate: Estate, tmp_path: Path
) -> None:
    """Exit 1 and the sentence, though the flow's only group is ready."""
    assert run(command, estate, tmp_path)[0] == 0
    estate[alias].elect_leader(unused_partition(estate[alias], {"billing"}), None)
    status, out = run(command, estate, tmp_path)
    assert status == 1
    if command is not export:
        assert f"of {GROUP_OFFSETS_TOPIC}" in out


@pytest.mark.parametrize("command", [check, plan, export, dry_failover])
def test_a_group_that_is_named_and_not_listed_is_not_taken_for_missing(
    command: Command, estate: Estate, tmp_path: Path
) -> None:
    """Nobody says that no group has this name."""
    for number in range(2):
        estate["A"].elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, number), None)
    assert run(command, estate, tmp_path, "billing")[0] == 1


def test_a_checkpoint_of_a_group_that_nobody_lists_is_of_none_that_was_deleted(estate: Estate):
    """Nor was it missing from a complete list."""
    checkpoint(estate, "unlisted", 30, 30)
    assert [pair.group for pair in comparison(estate).pairs] == ["billing", "unlisted"]
    estate["A"].elect_leader(unused_partition(estate["A"], {"billing"}), None)
    assert [pair.group for pair in comparison(estate).pairs] == [None, "billing"]


def test_a_snapshot_that_may_lack_groups_is_not_written(estate: Estate, tmp_path: Path) -> None:
    estate["B"].elect_leader(unused_partition(estate["B"], {"billing"}), None)
    with pytest.raises(SnapshotFailed, match=f"of {GROUP_OFFSETS_TOPIC}"):
        run(snapshot, estate, tmp_path)


def test_a_restore_warns_that_other_groups_may_have_offsets(
    estate: Estate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the snapshot are read by name."""
    empty = unused_partition(estate["B"], {"billing"})
    (tmp_path / "one").mkdir()
    run(restore, estate, tmp_path / "one")
    assert GROUP_OFFSETS_TOPIC not in capsys.readouterr().err
    taken = tmp_path / "one" / "whole.snapshot"
    assert taken.exists()
    estate["B"].elect_leader(empty, None)
    selection = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    status = run_restore(
        selection.settings,
        taken,
        Output(io.StringIO(), Format.JSON),
        Notices(),
        groups=None,
        topics=None,
        dry_run=True,
        yes=False,
        connect=estate.connect,
    )
    assert status == 0
    assert f"of {GROUP_OFFSETS_TOPIC}" in capsys.readouterr().err
