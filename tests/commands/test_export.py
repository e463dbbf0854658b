"""`tsoffset export`: what Kafka's own tool is told to set."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.configured import nowhere, properties_file
from tests.invoking import in_memory, invoke, run_process, succeeds
from tests.memory_flows import Estate, flow, mirrored_estate
from tests.producing import numbered
from tests.scenarios.flows import member
from tsoffset.commands.export import left_out
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.lab.demo.keeping import kafka_tool
from tsoffset.model import Failed, FailureKind, GroupType, OutcomeKind
from tsoffset.testing.memory_cluster import Verb

SECONDS = 180


@pytest.fixture
def estate() -> Estate:
    """Groups for which there is something to set, and others."""
    estate = mirrored_estate(100, first_offset=40)
    estate.write("lost", 10)
    for group in ("billing", "ahead", "a,b", "there"):
        estate.commit(group, "orders", 60)
    estate.commit("billing", "lost", 5)
    estate.commit("ahead", "A.orders", 130, on="B")
    estate.commit("there", "A.orders", 100, on="B")
    return estate


def test_only_what_is_not_below_the_groups_commit_is_exported(estate, tmp_path):
    """The tool sets what it is told, and takes no header. Groups that are further, or have no
    translation, are left out, and so is a name at whose line end the tool would begin another
    line."""
    for group in ("two\nlines", "two\rlines"):
        estate.commit(group, "orders", 60)
    result = in_memory(estate, tmp_path, "export", lines=["groups = (?s).*"])
    assert result.stdout == (
        '"a,b",A.orders,0,100\nbilling,A.orders,0,100\nthere,A.orders,0,100\n'
        '"two\rlines",A.orders,0,100\n'
    )
    assert result.exit_code == 0
    left = "1 TARGET_AHEAD, 1 TARGET_MISSING, 1 line end in the group's name"
    assert f"4 offsets of 4 groups for B; 3 rows not exported ({left})" in result.stderr
    of_one = in_memory(estate, tmp_path, "export", "--group", "there")
    assert of_one.stdout == "A.orders,0,100\n"


def test_share_groups_are_left_out_and_it_is_said(estate, tmp_path):
    """No tool of Kafka sets them to an offset, and the one for consumer groups would make a
    consumer group of that name."""
    estate["A"].group("billing").type = GroupType.SHARE
    result = in_memory(estate, tmp_path, "export")
    assert "billing" not in result.stdout
    assert "1 row of share groups not exported" in result.stderr
    assert "2 offsets of 2 groups for B" in result.stderr


def test_what_failed_is_said_beside_the_file(estate, tmp_path):
    """An empty file would not name the cause; each sentence comes once."""
    estate["A"].fail(Failed(FailureKind.TIMEOUT, "read: late; wait"), verb=Verb.READ)
    result = in_memory(estate, tmp_path, "export")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("warning: A->B: read: late; wait") == 1


def test_a_group_behind_markers_alone_is_not_moved_back(estate):
    """A commit that resumes at the same record is in place, though it is a larger number."""
    (row,) = estate.plan(flow(group_filter=DefaultGroupFilter(("there",))))
    assert row.outcome is OutcomeKind.UNCHANGED
    assert left_out(replace(row, current_target_offset=101)) == "already committed"


def test_an_unknown_group_is_named_as_it_was_given(tmp_path):
    """Not as the expression that it becomes."""
    estate = mirrored_estate(10, billing=5)
    said = in_memory(estate, tmp_path, "export", "--group", "bil.*").stderr
    assert "No group listed by A matches `bil.*`." in said


def test_a_file_is_for_one_cluster(tmp_path):
    """Offsets of two clusters in one file would be set on the wrong one; one group goes with no
    choice of groups."""
    back = "B->A.enabled = true"
    file = str(properties_file(tmp_path, nowhere(), nowhere(), back))
    for words, told in (
        ((), "the flows have the targets A and B, but a file is for one cluster"),
        (("--group", "g", "--groups", "h.*"), "exclude each other"),
    ):
        result = invoke("export", "-c", file, *words)
        assert result.exit_code == 2
        assert told in result.stderr


@pytest.mark.integration
@pytest.mark.thorough
def test_kafkas_own_tool_sets_what_was_exported(source, target, unique, tmp_path):
    """Exported, dry run, executed, compared: the tool takes both forms as they are, shows the
    offsets, and sets just these, for groups that the target has never seen, too; `plan` then finds
    nothing more to do."""
    topic, groups = unique("orders"), [unique("billing"), unique("shipping"), unique("busy")]
    records = numbered(100)
    source.create_topic(topic, 2)
    target.create_topic(f"A.{topic}", 2)
    for partition in range(2):
        source.produce(topic, records, partition=partition)
        target.produce(f"A.{topic}", records[40:], partition=partition)
    for number, group in enumerate(groups):
        source.commit_offsets(group, {(topic, 0): 60 + number, (topic, 1): 70 + number})
    target.commit_offsets(groups[1], {(f"A.{topic}", 0): 5})
    named = f"groups = {', '.join(groups)}"
    file = str(properties_file(tmp_path, source.bootstrap, target.bootstrap, named))

    def reset(csv: str, of: Sequence[str], *how: str) -> str:
        path = tmp_path / "offsets.csv"
        path.write_text(csv)
        named = [word for group in of for word in ("--group", group)]
        words = ("--bootstrap-server", target.bootstrap, "--reset-offsets", "--from-file", path)
        tool = kafka_tool("kafka-consumer-groups")
        return succeeds(*tool, *words, *named, *how, timeout=SECONDS)

    with member(target, groups[2], f"A.{topic}"):
        status, csv, told = run_process("export", "-c", file)
    assert status == 0
    assert csv.splitlines() == [
        f"{groups[0]},A.{topic},0,20",
        f"{groups[0]},A.{topic},1,30",
        f"{groups[1]},A.{topic},0,21",
        f"{groups[1]},A.{topic},1,31",
    ]
    assert "4 offsets of 2 groups for B; 2 rows not exported (2 GROUP_ACTIVE)" in told

    before = {group: target.committed_offsets(group) for group in groups}
    shown = reset(csv, groups[:2], "--dry-run")
    for line in csv.splitlines():
        group, name, partition, offset = line.split(",")
        assert any(words == [group, name, partition, offset] for words in split(shown)), shown
    assert {group: target.committed_offsets(group) for group in groups} == before

    reset(csv, groups[:2], "--execute")
    expected = {(f"A.{topic}", 0): (20, ""), (f"A.{topic}", 1): (30, "")}
    assert target.committed_offsets(groups[0]) == expected
    expected = {(f"A.{topic}", 0): (21, ""), (f"A.{topic}", 1): (31, "")}
    assert target.committed_offsets(groups[1]) == expected

    status, csv, _ = run_process("export", "-c", file, "--group", groups[2])
    assert (status, csv) == (0, f"A.{topic},0,22\nA.{topic},1,32\n")
    reset(csv, groups[2:], "--execute")
    status, out, _ = run_process("plan", "-c", file, "--format", "csv")
    assert (status, out.count("unchanged")) == (0, 6), out


def split(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]
