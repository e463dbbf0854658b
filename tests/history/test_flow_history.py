"""What is written of a cycle, and what covers a failure."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.past_cycles import (
    DAY,
    FLOW,
    MINUTE,
    NOON,
    TODAY,
    Past,
    files,
    kept,
    merge,
    pairs_of,
    row,
    rows_of,
)
from tests.random_examples import scaled
from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.history import flow_history
from tsoffset.history.files import HistoryTable, day_of, days, files_of_day
from tsoffset.history.reading import last_known
from tsoffset.history.tables import CYCLES, replay_rows
from tsoffset.model import FailureKind, OutcomeKind, Precision, Row
from tsoffset.stores import Folder, store_at

NO_FOLDER = r"Not a directory|File exists"


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
    assert days(store_at(tmp_path), HistoryTable.PAIRS, FLOW) == [TODAY, TODAY + timedelta(days=1)]
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
            day = files_of_day(store_at(directory), HistoryTable.PAIRS, FLOW, day_of(ended_at))
            table = pa.concat_tables(file.table() for file in day.files).unify_dictionaries()
            until_then = table.filter(pc.less_equal(table["cycle"], number))
            assert pairs_of(replay_rows(until_then, ended_at, FLOW)) == pairs
        merge(directory)


def test_a_cycles_row_has_what_its_log_says():
    """CYCLES has a column for every field of `cycle_finished`."""
    cycle, _ = Past(Path("nowhere")).ended([row()])
    for commits in (True, False):
        fields = cycle.result.facts(cycle.tally, commits=commits, seconds=1.0)
        assert set(fields) - {"flow"} <= set(CYCLES.names)


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
