"""History without Spark: writing cycles, reading them, merging and removing days, and failures."""

import os
import re
import shutil
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.past_cycles import DAY, FLOW, MINUTE, NOON, Past, files, pairs_of, row, rows_of
from tests.random_examples import scaled
from tests.waiting import wait_until
from tsoffset.config.overrides_files import OverridesFiles
from tsoffset.cycle.cells import to_cell
from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.points import CyclePoint
from tsoffset.daemon.status import Instance
from tsoffset.flow.settings import HistorySettings
from tsoffset.group_sync.state import StateFile
from tsoffset.history import flow_history, tidying
from tsoffset.history.files import HistoryTable, day_of, days, files_of_day
from tsoffset.history.reading import last_known, points
from tsoffset.history.tables import CYCLES, KeptReason, replay_rows
from tsoffset.history.tidying import remove_before, tidy
from tsoffset.history.views import below_root, without_root
from tsoffset.history.writing import HistoryWriter
from tsoffset.model import FailureKind, OutcomeKind, Precision, Row
from tsoffset.stores import Folder, ObjectStore, place_of

NO_FOLDER = r"Not a directory|File exists"
TODAY = date(2026, 11, 22)
LONG_AGO = TODAY - timedelta(days=9)
LATER = TODAY + timedelta(days=9)


def kept(directory: Path) -> list[tuple[int, str, str]]:
    """Cycle, group and kind of every row of pairs."""
    rows = rows_of(directory, HistoryTable.PAIRS)
    return [(one["cycle"], one["group"], one["kept"]) for one in rows]


def merge(directory: Path, today: date = LATER, oldest: date = date.min) -> None:
    """Tidy twice, as on two days: the second time removes the files replaced by the first."""
    for _ in range(2):
        tidy(place_of(directory), FLOW, today)
    remove_before(place_of(directory), FLOW, oldest)


# --- what is written ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cycles", "full_every", "written"),
    [
        # Only what changed is written again.
        (([7, 7], [7, 9], [7, 9]), 60, [(2, "b", "changed")]),
        # A pair that goes is told once: without that row it would look unchanged.
        (([7, 7], [7], [7]), 60, [(2, "b", "gone")]),
        # Every so many cycles all pairs are written, unchanged ones so that merging can drop them.
        (([7, 7], [7, 7], [7, 8]), 2, [(3, "a", "full"), (3, "b", "changed")]),
    ],
)
def test_what_is_written_of_a_cycle(tmp_path, cycles, full_every, written):
    """The first cycle has every pair, a later one those that changed, if any; each has a row of its
    own. The numbers are the offsets of the groups a and b."""
    past = Past(tmp_path, full_every=full_every)
    for offsets in cycles:
        past.keep(*(row(group, offset=at) for group, at in zip("ab", offsets, strict=False)))
    assert kept(tmp_path) == [(1, "a", "changed"), (1, "b", "changed"), *written]
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2, 3]


def test_a_day_needs_no_other(tmp_path):
    """The first cycle of a day (UTC) has every pair, changed or not."""
    past = Past(tmp_path, started=NOON + DAY / 2 - 1.5 * MINUTE)
    past.keep(row("a"), row("b"))
    past.keep(row("a"), row("b", offset=8))
    assert days(place_of(tmp_path), HistoryTable.PAIRS, FLOW) == [TODAY, TODAY + timedelta(days=1)]
    assert kept(tmp_path)[2:] == [(2, "a", "first"), (2, "b", "changed")]


def test_folders_are_named_as_hive_does(tmp_path):
    """Other tools find flow and day in the names."""
    Past(tmp_path).keep(row())
    assert sorted(str(path.relative_to(tmp_path).parent) for path in files(tmp_path)) == [
        "cycles/flow=A-%3EB/day=2026-11-22",
        "pairs/flow=A-%3EB/day=2026-11-22",
    ]


def test_a_cycle_that_came_to_nothing_has_a_row(tmp_path):
    """A row with its error, and null for everything about pairs."""
    past = Past(tmp_path)
    past.history.add(*past.ended(None))
    past.history.write()
    (found,) = rows_of(tmp_path, HistoryTable.CYCLES)
    assert (found["state"], found["error"]) == ("failed", "Spark gave up")
    assert (found["reached"], found["exact"], found["groups"]) == (False, None, None)
    assert kept(tmp_path) == []


def test_a_cycles_row_sums_its_pairs(tmp_path):
    """By precision, where a translation is in place, and what a failover would find."""
    past = Past(tmp_path)
    bounded = {"precision": Precision.BOUNDED, "reread_bound": 3}
    skipped = {"outcome": OutcomeKind.SKIPPED, "current_target_offset": None}
    past.keep(row("a"), row("b", **bounded), row("c", **skipped), bytes_read=4)
    (found,) = rows_of(tmp_path, HistoryTable.CYCLES)
    assert (found["exact"], found["bounded"], found["frontier"]) == (1, 1, 0)
    assert (found["lag_records"], found["lag_records_max"], found["bytes_read"]) == (3, 3, 4)
    assert found["lag_seconds_max"] == 0.0


def test_cycles_share_files_of_which_the_last_one_is_left(tmp_path, monkeypatch):
    """Each file has the rows of the previous one and one more, up to a limit. A replaced file stays
    for a while for readers that have listed it; others do not read it."""
    monkeypatch.setattr(flow_history, "_CYCLES_IN_A_FILE", 3)
    past = Past(tmp_path)
    for _ in range(7):
        past.keep(row())
    assert len(files(tmp_path / "cycles")) == 7
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2, 3, 4, 5, 6, 7]
    for _ in range(6):
        past.keep(row())
    listed = [path.name.split("-", 2)[2] for path in files(tmp_path / "cycles")]
    assert "1-1.parquet" not in listed
    assert "1-3.parquet" in listed


GROUPS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.none() | st.integers(-1, 3)
ROWS = st.lists(
    st.builds(
        row,
        GROUPS,
        st.integers(0, 1),
        st.integers(0, 3),
        source_timestamp_ms=NUMBERS,
        target_offset=st.none() | st.integers(0, 3),
        current_target_offset=st.none() | st.integers(0, 3),
        outcome=st.sampled_from(OutcomeKind),
        reread_bound=st.none() | st.integers(0, 3),
        message=st.none() | st.sampled_from(["one thing", "another"]),
    )
    | st.builds(
        row,
        GROUPS,
        source_topic=st.none(),
        partition=st.none(),
        outcome=st.just(OutcomeKind.FAILED),
        reason=st.just(FailureKind.COORDINATOR),
        target_offset=st.none(),
    ),
    unique_by=lambda one: (one.group, one.source_topic and one.partition),
    max_size=6,
)


def without_pairs_of_failed_groups(rows: list[Row]) -> list[Row]:
    """The rows without those of pairs of a group that failed as a whole."""
    failed = {one.group for one in rows if one.source_topic is None}
    return [one for one in rows if one.source_topic is None or one.group not in failed]


CYCLES_OF_ROWS = st.lists(
    st.none() | ROWS.map(without_pairs_of_failed_groups), min_size=1, max_size=8
)


@settings(deadline=None, max_examples=scaled(25), suppress_health_check=list(HealthCheck))
@given(
    CYCLES_OF_ROWS,
    st.integers(1, 4),
    st.sampled_from([NOON, NOON + DAY / 2 - 3.5 * MINUTE]),
    st.integers(0, 5),
)
def test_replaying_gives_each_cycles_rows_back(tmp_path, cycles, full_every, started, set_back):
    """Replaying the files returns the rows of every cycle that reached the clusters, before and
    after merging. So does `last_known` for the last one, also if the clock was set back."""
    directory = tmp_path / "history"
    shutil.rmtree(directory, ignore_errors=True)
    past = Past(directory, started, full_every=full_every)
    expected = {}
    for number, rows in enumerate(cycles):
        if number == set_back and started == NOON:
            past.started -= 2.5 * MINUTE
        cycle, status = past.ended(rows)
        past.history.add(cycle, status)
        past.history.write()
        if cycle.reached:
            expected[cycle.number] = cycle.ended_at, pairs_of(status.pairs)
            last, ended_at = last_known(directory, FLOW)
            assert last.schema == PAIRS_KNOWN
            assert (ended_at, pairs_of(last)) == expected[cycle.number]
    for _ in range(2):
        for number, (ended_at, pairs) in expected.items():
            day = files_of_day(place_of(directory), HistoryTable.PAIRS, FLOW, day_of(ended_at))
            table = pa.concat_tables(file.table() for file in day.files).unify_dictionaries()
            until_then = table.filter(pc.less_equal(table["cycle"], number))
            assert pairs_of(replay_rows(until_then, ended_at, FLOW)) == pairs
        merge(directory)


# --- what is read -------------------------------------------------------------------------


def test_nothing_is_known_of_a_flow_without_history(tmp_path):
    """As at the first start."""
    assert last_known(tmp_path, FLOW) is None
    assert last_known(tmp_path / "nowhere", FLOW) is None
    assert not points(place_of(tmp_path), FLOW, 0, float("inf"), 10, (), "a1")


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
        found = points(place_of(tmp_path), FLOW, since, until, limit, recent[6 - known :], past.id)
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
    found = points(place_of(tmp_path), FLOW, 0, float("inf"), 9, (), "b2")
    assert found == expected


def test_points_of_this_process_need_no_file(tmp_path):
    """If it has enough of them in memory."""
    history, past = observer(tmp_path), Past(tmp_path)
    for _ in range(3):
        history.cycle_ended(*past.ended([row()]))
    assert history.close(60)
    shutil.rmtree(tmp_path / "cycles")
    found = history.points(FLOW, 0.0, float("inf"), 2)
    assert [round((point.at - NOON) // MINUTE) for point in found] == [2, 3]


# --- days that are over -------------------------------------------------------------------


def test_a_day_becomes_one_file_of_each_kind(tmp_path):
    """Without rows that repeat known values. Today's files are not merged."""
    past = Past(tmp_path, full_every=2)
    for offset in (1, 2, 3, 3):
        past.keep(row("a"), row("b", offset=offset))
    before = files(tmp_path)
    merge(tmp_path, today=TODAY)
    assert files(tmp_path) == before
    merge(tmp_path)
    assert len(files(tmp_path)) == 2
    assert KeptReason.FULL not in {why for _, _, why in kept(tmp_path)}
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2, 3, 4]
    merged = files(tmp_path)
    merge(tmp_path)
    assert files(tmp_path) == merged


def test_large_days_become_several_files(tmp_path, monkeypatch):
    """A file is made in memory, so its size is limited."""
    monkeypatch.setattr(tidying, "_ROWS_IN_A_FILE", 4)
    past = Past(tmp_path)
    for offset in range(5):
        past.keep(row("a", offset=offset), row("b", offset=offset))
    before = rows_of(tmp_path, HistoryTable.PAIRS)
    merge(tmp_path)
    assert len(files(tmp_path / "pairs")) == 3
    assert rows_of(tmp_path, HistoryTable.PAIRS) == before


def test_what_comes_late_is_merged_with_the_rest(tmp_path):
    """A file of that day was written after it was merged. Each process has its own merged file."""
    past, other = Past(tmp_path), Past(tmp_path, id="b2")
    past.keep(row("a"))
    past.keep(row("a", offset=8))
    other.keep(row("a", offset=8))
    merge(tmp_path)
    past.keep(row("a", offset=9))
    before = rows_of(tmp_path, HistoryTable.PAIRS)
    assert len(before) == 4
    merge(tmp_path)
    assert len(files(tmp_path)) == 4
    assert rows_of(tmp_path, HistoryTable.PAIRS) == before


@pytest.mark.parametrize("removed", range(5))
def test_an_end_in_the_middle_of_merging_changes_nothing(tmp_path, monkeypatch, removed):
    """If the process ends between writing the merged file and removing the others, nothing is read
    twice or lost, and the next call continues."""
    past = Past(tmp_path)
    for offset in range(4):
        past.keep(row("a", offset=offset))
    before = rows_of(tmp_path, HistoryTable.PAIRS)
    tidy(place_of(tmp_path), FLOW, LATER)
    assert len(files(tmp_path / "pairs")) == 5
    left = [removed]
    remove = Folder.remove

    def killed(place: Folder, name: str) -> None:
        if not left[0]:
            raise SystemExit
        left[0] -= 1
        remove(place, name)

    with monkeypatch.context() as patch, suppress(SystemExit):
        patch.setattr(Folder, "remove", killed)
        merge(tmp_path)
    assert len(files(tmp_path / "pairs")) == max(1, 5 - removed)
    assert rows_of(tmp_path, HistoryTable.PAIRS) == before
    merge(tmp_path)
    assert len(files(tmp_path / "pairs")) == 1
    assert rows_of(tmp_path, HistoryTable.PAIRS) == before


def test_days_older_than_the_retention_go(tmp_path):
    """Of both kinds; later days stay."""
    for day in range(3):
        Past(tmp_path, NOON + day * DAY, id=f"a{day}").keep(row())
    merge(tmp_path, oldest=TODAY + timedelta(days=1))
    for kind in HistoryTable:
        left = days(place_of(tmp_path), kind, FLOW)
        assert left == [TODAY + timedelta(days=1), TODAY + timedelta(days=2)]


# --- the daemon's thread ------------------------------------------------------------------


def observer(directory: Path, **changes: Any) -> HistoryWriter:
    settings = HistorySettings(str(directory), **changes)
    return HistoryWriter(settings, Instance("a1", "here", 1, NOON), now=lambda: NOON)


def test_the_observer_writes_what_it_is_told(tmp_path):
    """In a thread of its own; `close` waits for it."""
    past, history = Past(tmp_path), observer(tmp_path)
    history.cycle_ended(*past.ended([row("a")]))
    history.cycle_ended(*past.ended([row("a", offset=9)]))
    assert history.close(60)
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2]
    known, _ = last_known(tmp_path, FLOW)
    assert known["source_offset"].to_pylist() == [9]


@pytest.mark.parametrize(
    ("up_hours", "clock_hours", "retention_days", "left"),
    [
        (2, 2, 2, [TODAY]),
        # A wrong clock at the start is corrected before long.
        (0, 0, 2, [LONG_AGO, TODAY]),
        # The clock was set forward, or back, while the process ran.
        (2, 9_000, 30, [LONG_AGO, TODAY]),
        (2, -9_000, 2, [LONG_AGO, TODAY]),
    ],
)
def test_old_days_go_by_a_clock_that_runs_with_the_process(
    tmp_path, up_hours, clock_hours, retention_days, left
):
    """Days past the retention are removed, also if no process ran at midnight, but not because a
    clock jumped."""
    Past(tmp_path, NOON - 9 * DAY).keep(row())
    hours = [0, 0]
    history = HistoryWriter(
        HistorySettings(str(tmp_path), retention_days=retention_days),
        Instance("a1", "here", 1, NOON),
        now=lambda: NOON + 3600 * hours[0],
        monotonic=lambda: 3600.0 * hours[1],
    )
    past = Past(tmp_path)
    history.cycle_ended(*past.ended([row()]))
    wait_until(lambda: len(files(tmp_path / "cycles")) == 2)
    before = files(tmp_path / "cycles")
    hours[:] = clock_hours, up_hours
    history.cycle_ended(*past.ended([row()]))
    # The cycle is written; then the thread tidies before it ends.
    wait_until(lambda: files(tmp_path / "cycles") != before)
    assert history.close(60)
    assert days(place_of(tmp_path), HistoryTable.CYCLES, FLOW) == left


def test_a_place_that_hangs_delays_no_cycle(tmp_path, monkeypatch):
    """Of cycles that end during a write, each has a row, and the last one's pairs are written."""
    begun, go_on = Event(), Event()
    write = Folder.write

    def hangs(*words: Any) -> None:
        begun.set()
        go_on.wait()
        write(*words)

    monkeypatch.setattr(Folder, "write", hangs)
    past, history = Past(tmp_path), observer(tmp_path)
    history.cycle_ended(*past.ended([row("a")]))
    begun.wait()
    for offset in (8, 9, 10):
        history.cycle_ended(*past.ended([row("a", offset=offset)]))
    assert not history.close(0)
    go_on.set()
    assert history.close(60)
    assert [cycle for cycle, _, _ in kept(tmp_path)] == [1, 4]
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2, 3, 4]


def test_a_cycles_row_has_what_its_log_says():
    """CYCLES has a column for every field of `cycle_finished`."""
    cycle, _ = Past(Path("nowhere")).ended([row()])
    for commits in (True, False):
        fields = cycle.result.facts(cycle.tally, commits=commits, seconds=1.0)
        assert set(fields) - {"flow"} <= set(CYCLES.names)


def test_a_place_that_cannot_be_written_is_a_warning_and_covered_later(tmp_path):
    """The warning is logged once. The next successful write has all pairs, and a row for every
    cycle."""
    blocked = tmp_path / "history"
    blocked.write_text("a file")
    past, history = Past(blocked), observer(blocked)
    with capture_logs() as logs:
        history.cycle_ended(*past.ended([row("a"), row("b")]))
        assert history.close(60)
        writer = history._writers[FLOW]
        for offset in (7, 8):
            writer.history.add(*past.ended([row("a"), row("b", offset=offset)]))
            with pytest.raises(OSError, match=NO_FOLDER):
                writer.history.write()
        blocked.unlink()
        writer.history.add(*past.ended([row("a"), row("b", offset=8)]))
        writer.history.write()
    (warning,) = [one for one in logs if one["event"] == "history_not_written"]
    assert "free disk space" in warning["message"]
    assert str(blocked) in warning["message"]
    assert [one["cycle"] for one in rows_of(blocked, HistoryTable.CYCLES)] == [1, 2, 3, 4]
    assert kept(blocked) == [(4, "a", "changed"), (4, "b", "changed")]


def test_a_failure_between_two_files_is_covered(tmp_path):
    """The next file has all pairs, with the changes since the last successful write."""
    past = Past(tmp_path)
    past.keep(row("a"), row("b"))
    folder = tmp_path / "pairs"
    moved = folder.rename(tmp_path / "away")
    folder.write_text("a file")
    with pytest.raises(OSError, match=NO_FOLDER):
        past.keep(row("a", offset=8), row("b"))
    folder.unlink()
    moved.rename(folder)
    expected = past.keep(row("a", offset=8), row("b"))
    assert kept(tmp_path)[2:] == [(3, "a", "changed"), (3, "b", "changed")]
    assert pairs_of(last_known(tmp_path, FLOW)[0]) == pairs_of(expected)


def test_a_file_that_is_there_although_writing_failed_is_not_the_last_word(tmp_path, monkeypatch):
    """A store answered too late. Its rows hold until the next file, also once both are merged."""
    past = Past(tmp_path)
    past.keep(row("a"), row("b"))
    write = Folder.write

    def late(*words: Any) -> None:
        write(*words)
        raise TimeoutError

    monkeypatch.setattr(Folder, "write", late)
    with pytest.raises(TimeoutError):
        past.keep(row("a"), row("b", outcome=OutcomeKind.FAILED, reason=FailureKind.TIMEOUT))
    monkeypatch.undo()
    expected = past.keep(row("a"), row("b"))
    merge(tmp_path)
    assert pairs_of(last_known(tmp_path, FLOW)[0]) == pairs_of(expected)


def test_memory_stays_bounded_while_nothing_can_be_written(tmp_path, monkeypatch):
    """The oldest rows of cycles are dropped, and only the last pairs are kept."""
    (tmp_path / "cycles").write_text("a file")
    past = Past(tmp_path)
    past.history._waiting = flow_history.deque(maxlen=3)
    for _ in range(5):
        with pytest.raises(OSError, match=NO_FOLDER):
            past.keep(row())
    (tmp_path / "cycles").unlink()
    past.keep(row())
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [4, 5, 6]


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
        found = points(place_of(tmp_path), FLOW, 0, 2**40, 9, (), "b")
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
        tidy(place_of(tmp_path), FLOW, LATER)
    else:
        past.keep(row("a"))
    (half,) = {*files(tmp_path / kind)} - alone
    half.write_bytes(half.read_bytes()[:-9])
    merge(tmp_path)
    half.unlink()
    assert rows_of(tmp_path, kind) == before


@pytest.mark.timeout(20)
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
    assert points(place_of(tmp_path), FLOW, 0, 2**40, 9, (), "b")


def test_a_state_of_a_later_version_is_no_point(tmp_path):
    """Charts leave it out."""
    sample(tmp_path)
    *_, last = files(tmp_path / "cycles")
    table = pq.read_table(last)
    at = table.schema.names.index("state")
    pq.write_table(table.set_column(at, "state", pa.array(["running", "later"])), last)
    assert len(points(place_of(tmp_path), FLOW, 0, 2**40, 9, (), "b")) == 1


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
    assert isinstance(place_of(uri), ObjectStore)
    assert pairs_of(last_known(uri, FLOW)[0]) == pairs_of(expected)
    tidy(place_of(uri), FLOW, LATER)
    assert len(files_of_day(place_of(uri), HistoryTable.PAIRS, FLOW, TODAY).files) == 1
    assert pairs_of(last_known(uri, FLOW)[0]) == pairs_of(expected)
    remove_before(place_of(uri), FLOW, LATER)
    assert last_known(uri, FLOW) is None


def test_credentials_of_a_store_are_in_no_text_and_no_task():
    """Tasks get files without the store's URI, and find it in the configuration."""
    uri = "mock://key:c4n4ry@store/history"
    Past(uri).keep(row("a"))
    (file,) = files_of_day(place_of(uri), HistoryTable.PAIRS, FLOW, TODAY).files
    sent = without_root(file)
    assert "c4n4ry" not in repr([file, place_of(uri), OverridesFiles(uri), StateFile(uri, FLOW)])
    assert b"c4n4ry" not in to_cell(sent)
    assert below_root(sent, lambda: place_of(uri)).table() == file.table()


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
    assert files_of_day(place_of(tmp_path), HistoryTable.PAIRS, FLOW, TODAY).files == ()
