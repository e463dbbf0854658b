"""Reading past cycles without Spark, and files that are not as they should be."""

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from tests.past_cycles import (
    DAY,
    FLOW,
    LATER,
    MINUTE,
    NOON,
    TODAY,
    Past,
    files,
    merge,
    pairs_of,
    row,
    rows_of,
)
from tsoffset.config.overrides_files import OverridesFiles
from tsoffset.daemon.points import CyclePoint
from tsoffset.group_sync.state import StateFile
from tsoffset.history.files import HistoryTable, files_of_day
from tsoffset.history.reading import last_known, points
from tsoffset.history.tidying import remove_before, tidy
from tsoffset.history.views import below_root, without_root
from tsoffset.model import OutcomeKind
from tsoffset.spark.cells import to_cell
from tsoffset.stores import ObjectStore, store_at

# --- what is read -------------------------------------------------------------------------


def test_nothing_is_known_of_a_flow_without_history(tmp_path):
    """As at the first start."""
    assert last_known(tmp_path, FLOW) is None
    assert last_known(tmp_path / "nowhere", FLOW) is None
    assert not points(store_at(tmp_path), FLOW, 0, float("inf"), 10, (), "a1")


def test_the_last_instance_is_what_is_known(tmp_path):
    """Only the rows of the process that wrote last count; other pairs are gone."""
    Past(tmp_path, id="b2").keep(row("a"), row("b"))
    expected = Past(tmp_path, NOON + 9 * MINUTE, id="a1").keep(row("a", offset=9))
    assert pairs_of(last_known(tmp_path, FLOW)[0]) == pairs_of(expected)


def test_points_are_the_last_ones_between_two_times(tmp_path):
    """Oldest first, over days and processes, from files, merged files and memory; each cycle
    once."""
    past = Past(tmp_path, started=NOON + DAY / 2 - 3.5 * MINUTE)
    recent = []
    for _ in range(6):
        cycle, status = past.ended([row()])
        recent.append(CyclePoint.of(cycle, status))
        past.history.add(cycle, status)
        past.history.write()
    Past(tmp_path, NOON, id="b2").keep(row())
    start, end = past.started + 2 * MINUTE, past.started + 5.5 * MINUTE

    def at(limit: int, since: float, until: float, known: int) -> list[int]:
        found = points(store_at(tmp_path), FLOW, since, until, limit, recent[6 - known :], past.id)
        return [round((point.at - past.started) // MINUTE) for point in found]

    for _ in range(2):
        for known in (0, 2, 6):
            assert at(10, start, end, known) == [2, 3, 4, 5]
            assert at(2, start, end, known) == [4, 5]
            assert at(10, 0.0, float("inf"), known)[1:] == [1, 2, 3, 4, 5, 6]
            assert at(10, -1e300, 1e300, known)[1:] == [1, 2, 3, 4, 5, 6]
            assert len(at(10, float("-inf"), past.started, known)) == 1
        merge(tmp_path)


def test_points_come_back_from_files(tmp_path):
    """With all fields, also of failed cycles."""
    past = Past(tmp_path)
    expected = []
    for rows in ([row("a"), row("b", reread_bound=3, current_target_offset=2)], None):
        cycle, status = past.ended(rows)
        past.history.add(cycle, status)
        expected.append(CyclePoint.of(cycle, status))
    past.history.write()
    found = points(store_at(tmp_path), FLOW, 0, float("inf"), 9, (), "b2")
    assert found == expected


# --- files that are not as they should be -------------------------------------------------


def sample(directory: Path) -> pa.Table:
    past = Past(directory)
    past.keep(row("a"), row("b"), bytes_read=2)
    skipped = {"outcome": OutcomeKind.SKIPPED, "current_target_offset": None, "message": "why"}
    return past.keep(row("a", offset=9), row("b", **skipped), rounds=1)


def spoiled(path: Path, version: str | None) -> None:
    """Change or remove the version of the file."""
    table = pq.read_table(path)
    facts = {} if version is None else {"tsoffset.history": version}
    pq.write_table(table.replace_schema_metadata(facts), path)


def without(path: Path, column: str) -> None:
    """Replace a column of the file by nulls."""
    table = pq.read_table(path)
    at = table.schema.names.index(column)
    nulls = pa.nulls(len(table), table.schema.field(at).type)
    pq.write_table(table.set_column(at, column, nulls), path)


def damage(path: Path) -> None:
    """Change bytes of its rows, not of its metadata."""
    content = bytearray(path.read_bytes())
    content[40:60] = bytes(byte ^ 0xFF for byte in content[40:60])
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("kind", "spoil", "why"),
    [
        *((kind, damage, "this file is ignored") for kind in HistoryTable),
        (HistoryTable.PAIRS, lambda path: without(path, "at"), "without a time"),
        (HistoryTable.CYCLES, lambda path: without(path, "state"), "without a time"),
        (
            HistoryTable.PAIRS,
            lambda path: spoiled(path, "2"),
            "a newer tsoffset wrote it (version 2",
        ),
        (HistoryTable.PAIRS, lambda path: spoiled(path, None), "not a history file"),
        (
            HistoryTable.CYCLES,
            lambda path: path.write_bytes(path.read_bytes()[:-9]),
            "file is ignored",
        ),
        (HistoryTable.PAIRS, lambda path: path.write_bytes(b""), "file is ignored"),
    ],
)
def test_a_file_that_cannot_be_read_costs_its_own_rows_alone(tmp_path, kind, spoil, why):
    """A warning names it. It stays, no merged file includes its cycle, and the rest is read."""
    for hour in range(5):
        Past(tmp_path, NOON + 3600 * hour, cycles=hour).keep(row("a", offset=hour))
    strange = files(tmp_path / kind)[2]
    spoil(strange)
    with capture_logs() as logs:
        merge(tmp_path)
        known, _ = last_known(tmp_path, FLOW)
        found = points(store_at(tmp_path), FLOW, 0, 2**40, 9, (), "b")
    said = {one["message"] for one in logs if one["event"] == "history_not_read"}
    assert [str(strange) in message and why in message for message in said] == [True]
    assert strange in files(tmp_path / kind)
    assert len(files(tmp_path / kind)) == 5
    assert len(files(tmp_path)) == 6
    assert known["source_offset"].to_pylist() == [4]
    assert len(found) == (4 if kind is HistoryTable.CYCLES else 5)


@pytest.mark.parametrize("kind", list(HistoryTable))
def test_a_merged_file_that_cannot_be_read_replaces_nothing(tmp_path, kind):
    """HDFS shows a file while it is written, and keeps what a killed process has written of it: the
    others stay, and once it is removed they are read again."""
    past = Past(tmp_path)
    for offset in range(3):
        past.keep(row("a", offset=offset))
    before = rows_of(tmp_path, kind)
    alone = {*files(tmp_path / kind)}
    if kind is HistoryTable.PAIRS:
        tidy(store_at(tmp_path), FLOW, LATER)
    else:
        past.keep(row("a"))
    (half,) = {*files(tmp_path / kind)} - alone
    half.write_bytes(half.read_bytes()[:-9])
    merge(tmp_path)
    half.unlink()
    assert rows_of(tmp_path, kind) == before


@pytest.mark.parametrize("kind", list(HistoryTable))
def test_what_strays_into_the_folders_costs_nothing(tmp_path, kind):
    """A file with a day's name, a pipe, a foreign file, and a name that is not valid text."""
    sample(tmp_path)
    day = files(tmp_path / kind)[0].parent
    day.with_name("day=9999-12-31").write_text("")
    (day / os.fsdecode(b"\xff.parquet")).touch()
    (day / "notes.parquet").touch()
    os.mkfifo(day / "9999999999999-a1-9-9.parquet")
    merge(tmp_path)
    assert last_known(tmp_path, FLOW) is not None
    assert points(store_at(tmp_path), FLOW, 0, 2**40, 9, (), "b")


def test_a_state_of_a_later_version_is_no_point(tmp_path):
    """Charts leave it out."""
    sample(tmp_path)
    *_, last = files(tmp_path / "cycles")
    table = pq.read_table(last)
    at = table.schema.names.index("state")
    pq.write_table(table.set_column(at, "state", pa.array(["running", "later"])), last)
    assert len(points(store_at(tmp_path), FLOW, 0, 2**40, 9, (), "b")) == 1


def test_columns_that_an_older_version_did_not_have_are_null(tmp_path):
    """A later version may add columns."""
    sample(tmp_path)
    for path in files(tmp_path / "cycles"):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns("lag_records"), path)
    assert {one["lag_records"] for one in rows_of(tmp_path, HistoryTable.CYCLES)} == {None}


def test_stores_are_written_like_folders():
    """A store by a URI of pyarrow, here one in memory."""
    uri = "mock://history"
    expected = sample(uri)
    assert isinstance(store_at(uri), ObjectStore)
    assert pairs_of(last_known(uri, FLOW)[0]) == pairs_of(expected)
    tidy(store_at(uri), FLOW, LATER)
    assert len(files_of_day(store_at(uri), HistoryTable.PAIRS, FLOW, TODAY).files) == 1
    assert pairs_of(last_known(uri, FLOW)[0]) == pairs_of(expected)
    remove_before(store_at(uri), FLOW, LATER)
    assert last_known(uri, FLOW) is None


def test_credentials_of_a_store_are_in_no_text_and_no_task():
    """Tasks get files without the store's URI, and find it in the configuration."""
    uri = "mock://key:c4n4ry@store/history"
    Past(uri).keep(row("a"))
    (file,) = files_of_day(store_at(uri), HistoryTable.PAIRS, FLOW, TODAY).files
    sent = without_root(file)
    assert "c4n4ry" not in repr([file, store_at(uri), OverridesFiles(uri), StateFile(uri, FLOW)])
    assert b"c4n4ry" not in to_cell(sent)
    assert below_root(sent, lambda: store_at(uri)).table() == file.table()


# --- files that are being written ---------------------------------------------------------


def test_names_begin_with_a_dot_until_a_file_is_whole(tmp_path, monkeypatch):
    """Spark and other tools ignore such files."""

    def killed(_: int) -> None:
        raise SystemExit

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(SystemExit):
        Past(tmp_path).keep(row())
    (half,) = files(tmp_path)
    assert re.fullmatch(r"\..*\.half", half.name)
    assert files_of_day(store_at(tmp_path), HistoryTable.PAIRS, FLOW, TODAY).files == ()
