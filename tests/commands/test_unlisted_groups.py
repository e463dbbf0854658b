"""Commands on clusters where a partition of `__consumer_offsets` has no leader: each says so."""

import pytest

from tests.commands.compare.test_flow_comparison import checkpoint, comparison
from tests.commands.test_scope import run
from tests.memory_flows import Estate, mirrored_estate, unused_partition
from tsoffset.model import GROUP_OFFSETS_TOPIC, TopicPartition

JSON = "--format", "json"
COMMANDS = [("check", JSON), ("plan", JSON), ("export", ()), ("failover", ("--dry-run", *JSON))]


@pytest.fixture
def estate() -> Estate:
    """A group `billing` with commits on both sides, in one of two partitions."""
    estate = mirrored_estate(100, billing=60)
    estate.commit("billing", "A.orders", 60, on="B")
    for alias in "AB":
        estate[alias].create_topic(GROUP_OFFSETS_TOPIC, 2, internal=True)
    return estate


@pytest.mark.parametrize("alias", ["A", "B"])
@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_a_result_that_may_lack_groups_is_none_that_is_well(
    command, words, alias, estate, tmp_path
):
    """Exit 1 and the sentence, though the flow's only group is ready."""
    assert run(command, estate, tmp_path, *words).exit_code == 0
    estate[alias].elect_leader(unused_partition(estate[alias], {"billing"}), None)
    result = run(command, estate, tmp_path, *words)
    assert result.exit_code == 1
    said = result.stderr if command == "export" else result.stdout
    assert f"of {GROUP_OFFSETS_TOPIC}" in said


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_a_group_that_is_named_and_not_listed_is_not_taken_for_missing(
    command, words, estate, tmp_path
):
    """No message says that no group has this name."""
    for number in range(2):
        estate["A"].elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, number), None)
    assert run(command, estate, tmp_path, *words, "--groups", "billing").exit_code == 1


def test_a_checkpoint_of_a_group_that_nobody_lists_is_of_none_that_was_deleted(estate):
    """Nor was it missing from a complete list."""
    checkpoint(estate, "unlisted", 30, 30)
    assert [pair.group for pair in comparison(estate).pairs] == ["billing", "unlisted"]
    estate["A"].elect_leader(unused_partition(estate["A"], {"billing"}), None)
    assert [pair.group for pair in comparison(estate).pairs] == [None, "billing"]


def test_a_snapshot_that_may_lack_groups_is_not_written(estate, tmp_path):
    estate["B"].elect_leader(unused_partition(estate["B"], {"billing"}), None)
    result = run("snapshot", estate, tmp_path)
    assert (result.exit_code, f"of {GROUP_OFFSETS_TOPIC}" in result.stderr) == (1, True)


def test_a_restore_warns_that_other_groups_may_have_offsets(estate, tmp_path):
    """Those of the snapshot are read by name."""
    assert GROUP_OFFSETS_TOPIC not in run("restore", estate, tmp_path).stderr
    estate["B"].elect_leader(unused_partition(estate["B"], {"billing"}), None)
    result = run("restore", estate, tmp_path)
    assert (result.exit_code, f"of {GROUP_OFFSETS_TOPIC}" in result.stderr) == (0, True)
