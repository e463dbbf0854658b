"""`import tsoffset` as a library: the same things as the commands, as values."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tsoffset
from tests.commands.compare.test_flow_comparison import CHECKPOINTS, checkpoint
from tests.configured import nowhere, properties_file
from tests.invoking import ROOT, succeeds
from tests.memory_flows import Estate, mirrored_estate, row_of
from tsoffset.errors import ClusterUnreachable, CycleFailed, TsoffsetError, UsageError
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Position,
    Precision,
    Reason,
    TopicPartition,
)
from tsoffset.testing.memory_cluster import Verb

ORDERS = TopicPartition("A.orders", 0)


@pytest.fixture
def estate() -> Estate:
    """A topic of 100 records, its copy 400 further on, and groups at 40, 100 and 101."""
    estate = mirrored_estate(100, first_offset=400)
    estate.commit("billing", "orders", 40, metadata="noted")
    estate.commit("search", "orders", 100)
    estate.commit("astray", "orders", 101)
    return estate


@pytest.fixture
def file(tmp_path) -> Path:
    """A configuration of the flow A->B."""
    return properties_file(tmp_path, nowhere(), nowhere(), "admin.timeout.ms = 500")


WITHOUT_LIBRARIES = """
import sys
import tsoffset
heavy = {"kafka", "pyspark", "numpy", "pyarrow", "structlog", "tsoffset.api"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
assert tsoffset.__version__
assert {"plan", "sync", "translate_offsets"} <= set(dir(tsoffset))
tsoffset.plan
assert "kafka" in sys.modules and "pyspark" not in sys.modules
try:
    tsoffset.nothing
except AttributeError as error:
    assert "nothing" in str(error)
"""


@pytest.mark.slow
def test_the_import_is_quick_and_loads_what_is_asked_for():
    """Who imports the package for its version, or in a worker of Spark, loads nothing else."""
    succeeds(sys.executable, "-c", WITHOUT_LIBRARIES)


def test_offsets_of_a_group_are_translated_and_nothing_is_committed(estate, file):
    """By target partition, with the commit's metadata, and how exact it is."""
    found = tsoffset.translate_offsets(file, "billing", connect=estate.connect)
    assert found == {ORDERS: tsoffset.TranslatedOffset(440, "noted", 40, Precision.EXACT, 0)}
    assert not estate["B"].commits
    assert tsoffset.translate_offsets(file, "astray", connect=estate.connect) == {}
    estate.commit("shared", "orders", 40, type=GroupType.SHARE)
    with pytest.raises(UsageError, match="is a share group"):
        tsoffset.translate_offsets(file, "shared", connect=estate.connect)


@pytest.mark.parametrize(("alias", "verb"), [("B", Verb.READ), ("A", Verb.COMMITTED)])
def test_what_cannot_be_read_is_an_error(estate, file, alias, verb):
    """A record: the offset may well have a translation. A group: it may have any offset."""
    estate[alias].fail(Failed(FailureKind.TIMEOUT, "read, A.orders-0: late"), verb=verb)
    with pytest.raises(TsoffsetError, match="late"):
        tsoffset.translate_offsets(file, "billing", connect=estate.connect)


def test_a_plan_commits_nothing_and_a_sync_does(estate, file):
    """The rows of the commands, narrowed as by their options."""
    rows = tsoffset.plan(file, connect=estate.connect)
    assert {row.group: row.outcome for row in rows} == {
        "astray": OutcomeKind.SKIPPED,
        "billing": OutcomeKind.WOULD_COMMIT,
        "search": OutcomeKind.WOULD_COMMIT,
    }
    assert not estate["B"].commits
    rows = tsoffset.sync(file, groups="bill.*", connect=estate.connect)
    assert [row.outcome for row in rows] == [OutcomeKind.COMMITTED]
    assert estate.standing("billing", "A.orders") == CommittedOffset(440, "noted")
    rows = tsoffset.sync(file, flows=["A->B"], topics="orders", connect=estate.connect)
    assert row_of(rows, "billing").outcome is OutcomeKind.UNCHANGED
    assert row_of(rows, "search").target_offset == 500


def test_a_flow_that_is_only_planned_commits_nothing(estate, tmp_path):
    file = properties_file(tmp_path, nowhere(), nowhere(), "sync.group.offsets.enabled = false")
    rows = tsoffset.sync(file, connect=estate.connect)
    assert row_of(rows, "billing").outcome is OutcomeKind.WOULD_COMMIT
    assert not estate["B"].commits


def test_a_name_that_matches_nothing_is_an_error(estate, file, tmp_path):
    """An empty answer would say that the group has no offset. Only a source that lists all of its
    groups can tell that a name is wrong."""
    near = "listed by A matches `biling`. Did you mean `billing`?"
    for function in (tsoffset.plan, tsoffset.sync):
        with pytest.raises(UsageError, match="No group " + re.escape(near)):
            function(file, groups="biling", connect=estate.connect)
        with pytest.raises(UsageError, match="No topic listed by A matches `ordrs`"):
            function(file, topics="ordrs", connect=estate.connect)
    with pytest.raises(UsageError, match="No group " + re.escape(near)):
        tsoffset.translate_offsets(file, "biling", connect=estate.connect)
    lists = properties_file(tmp_path, nowhere(), nowhere(), "groups = biling")
    with pytest.raises(UsageError, match=r"select none of them\. Did you mean `billing`"):
        tsoffset.plan(lists, connect=estate.connect)
    file = properties_file(tmp_path, nowhere(), nowhere())
    assert tsoffset.plan(file, connect=Estate().connect) == []
    estate.write("payments", 1)
    assert tsoffset.plan(file, groups="billing", topics="payments", connect=estate.connect) == []
    late = Failed(FailureKind.TIMEOUT, "list groups of broker 0: late")
    estate["A"].fail(late, verb=Verb.GROUPS, broker=0)
    with pytest.raises(TsoffsetError, match="late"):
        tsoffset.translate_offsets(file, "biling", connect=estate.connect)


def test_what_a_configuration_warns_of_is_a_warning(estate, tmp_path):
    """Python's own, at the line of the caller."""
    file = properties_file(tmp_path, nowhere(), nowhere(), "grups = x")
    with pytest.warns(UserWarning, match="Did you mean `groups`") as caught:
        tsoffset.plan(file, connect=estate.connect)
    assert caught[0].filename == __file__


def test_a_flow_has_to_be_named_where_several_are_enabled(estate, tmp_path):
    """What is asked of one flow is never asked of whichever comes first."""
    lines = ("B->A.enabled = true", "state.dir = state")
    file = properties_file(tmp_path, nowhere(), nowhere(), *lines)
    with pytest.raises(UsageError, match="A->B, B->A"):
        tsoffset.translate_offsets(file, "billing", connect=estate.connect)
    found = tsoffset.translate_offsets(file, "billing", flow="A->B", connect=estate.connect)
    assert found[ORDERS].offset == 440


def test_a_string_is_one_flow(estate, file):
    """Type checkers accept a string for a sequence of strings. An empty one is no flow."""
    (row,) = tsoffset.plan(file, flows="A->B", groups="billing", connect=estate.connect)
    assert (row.flow, row.target_offset) == ("A->B", 440)
    assert tsoffset.topics(file, flows="A->B", connect=estate.connect)
    with pytest.raises(UsageError, match="there is no flow"):
        tsoffset.sync(file, flows="", connect=estate.connect)
    assert not estate["B"].commits


def test_a_cluster_that_is_away(file):
    """A failed row of its flow, as for the commands; an error where there are no rows."""
    (row,) = tsoffset.plan(file)
    assert (row.group, row.outcome) == (None, OutcomeKind.FAILED)
    with pytest.raises(ClusterUnreachable):
        tsoffset.translate_offsets(file, "billing")


def test_changed_lists_that_are_unknown_commit_nothing_in_any_flow(estate, tmp_path):
    """An error has no rows, so it comes before the first commit. A flow that is only planned
    needs no lists."""
    (tmp_path / "B-%3EA.lists.json").write_text("damaged")
    lines = (f"state.dir = {tmp_path}", "B->A.enabled = true")
    file = properties_file(tmp_path, "a:1", "b:1", *lines)
    damaged = "it is damaged"
    with pytest.warns(UserWarning, match=damaged), pytest.raises(CycleFailed, match=damaged):
        tsoffset.sync(file, connect=estate.connect)
    assert not estate["B"].commits
    properties_file(tmp_path, "a:1", "b:1", *lines, "B->A.sync.group.offsets.enabled = false")
    with pytest.warns(UserWarning, match=damaged):
        tsoffset.sync(file, connect=estate.connect)
    assert estate["B"].commits


def test_the_examples_of_the_documentation_run(estate, file, monkeypatch, capsys):
    """docs/api.md has them; the first one without `connect`."""
    monkeypatch.chdir(file.parent)
    for function in (tsoffset.translate_offsets, tsoffset.plan, tsoffset.sync):
        monkeypatch.setitem(function.__kwdefaults__, "connect", estate.connect)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(first, names)  # noqa: S102
    assert capsys.readouterr().out == f"{ORDERS} 440 exact\n"
    assert names["stuck"] == []
    assert estate.standing("billing", "A.orders") == CommittedOffset(440, "noted")
    exec(second, names)  # noqa: S102
    assert names["rows"] == []


@pytest.mark.thorough
@pytest.mark.spark
def test_a_session_whose_tasks_may_run_twice_is_refused(file):
    """Tasks commit: of two attempts at once the later could undo what a group has done since."""
    code = f"""
from pyspark.sql import SparkSession
import tsoffset
session = SparkSession.builder.master("local[1]").config("spark.speculation", "true").getOrCreate()
try:
    tsoffset.sync({str(file)!r}, spark=session)
except tsoffset.errors.UsageError as error:
    assert "spark.speculation" in str(error)
else:
    raise SystemExit(1)
"""
    succeeds(sys.executable, "-c", code)


def test_a_session_of_spark_connect_is_refused(file):
    """It has no SparkContext, and so no RDDs."""
    with pytest.raises(UsageError, match="Spark Connect"):
        tsoffset.plan(file, spark=object())


def test_checkpoints_are_read_as_mirror_maker_2_wrote_them(estate, file):
    """The newest of each group and partition; none where there is no such topic."""
    assert tsoffset.read_checkpoints(file, connect=estate.connect) == {}
    checkpoint(estate, "billing", 20, 410)
    checkpoint(estate, "billing", 40, 431)
    ((key, found),) = tsoffset.read_checkpoints(file, connect=estate.connect).items()
    assert (key.group, key.target) == ("billing", ORDERS)
    assert (found.source_offset, found.target_offset) == (40, 431)
    estate["B"].fail(Failed(FailureKind.TIMEOUT, f"read, {CHECKPOINTS}: late"), verb=Verb.READ_RAW)
    with pytest.raises(TsoffsetError, match="late"):
        tsoffset.read_checkpoints(file, connect=estate.connect)


def test_topics_are_those_of_the_command(estate, file):
    found = tsoffset.topics(file, connect=estate.connect)
    assert {(one.kind.value, one.topic, one.source) for one in found} == {
        ("upstream", None, "A"),
        ("remote", "A.orders", "A"),
    }


# --- offsets outside of groups ------------------------------------------------------------


def test_positions_are_translated_as_those_of_groups(estate, file):
    """In the order asked for, also two of one partition; no group is read."""
    asked = estate.asked("A", Verb.COMMITTED)
    positions = [Position("orders", 0, offset) for offset in (100, 40, 101)]
    rows = tsoffset.translate_positions(file, positions, connect=estate.connect)
    assert [(row.group, row.source_offset, row.target_offset, row.reason) for row in rows] == [
        (None, 100, 500, None),
        (None, 40, 440, None),
        (None, 101, None, Reason.PAST_LOG_END),
    ]
    assert [row.precision for row in rows] == [Precision.EXACT, Precision.EXACT, None]
    assert estate.asked("A", Verb.COMMITTED) == asked
    with pytest.raises(UsageError, match="an offset from 0"):
        tsoffset.translate_positions(file, [Position("orders", 0, -1)], connect=estate.connect)
