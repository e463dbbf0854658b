"""The daemon's thread that writes history."""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.history.test_flow_history import NO_FOLDER
from tests.past_cycles import DAY, FLOW, MINUTE, NOON, TODAY, Past, kept, row, rows_of
from tests.waiting import wait_until
from tsoffset.daemon.status import Instance
from tsoffset.flow.settings import HistorySettings
from tsoffset.history.files import HistoryTable, days
from tsoffset.history.reading import last_known
from tsoffset.history.writing import HistoryWriter
from tsoffset.stores import Folder, store_at

LONG_AGO = TODAY - timedelta(days=9)


def observer(directory: Path, monotonic: Callable[[], float] = time.monotonic) -> HistoryWriter:
    settings = HistorySettings(str(directory))
    return HistoryWriter(settings, Instance("a1", "here", 1, NOON), lambda: NOON, monotonic)


def test_points_of_this_process_need_no_file(tmp_path):
    """If it has enough of them in memory."""
    history, past = observer(tmp_path), Past(tmp_path)
    for _ in range(3):
        history.cycle_ended(*past.ended([row()]))
    assert history.close(60)
    shutil.rmtree(tmp_path / "cycles")
    found = history.points(FLOW, 0.0, float("inf"), 2)
    assert [round((point.at - NOON) // MINUTE) for point in found] == [2, 3]


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
    past, today = Past(tmp_path), tmp_path / "cycles" / "flow=A-%3EB" / f"day={TODAY}"
    for cycle in (1, 2):
        history.cycle_ended(*past.ended([row()]))
        # It is written; then the thread tidies, also before it ends.
        wait_until(lambda cycle=cycle: list(today.glob(f"[0-9]*-{cycle}.parquet")))
        hours[:] = clock_hours, up_hours
    assert history.close(60)
    assert days(store_at(tmp_path), HistoryTable.CYCLES, FLOW) == left


def test_a_place_that_hangs_delays_no_cycle(tmp_path, monkeypatch):
    """Of cycles that end during a write, each has a row, and the last one's pairs are written. A
    write that takes long is reported once."""
    begun, go_on = Event(), Event()
    write, seconds = Folder.write, [0.0]

    def hangs(*words: Any) -> None:
        begun.set()
        go_on.wait()
        write(*words)

    monkeypatch.setattr(Folder, "write", hangs)
    past, history = Past(tmp_path), observer(tmp_path, lambda: seconds[0])
    history.cycle_ended(*past.ended([row("a")]))
    begun.wait()
    with capture_logs() as logs:
        for offset in (8, 9, 10):
            history.cycle_ended(*past.ended([row("a", offset=offset)]))
            seconds[0] += 70.0
    assert ["a write does not end" in one["message"] for one in logs] == [True]
    assert not history.close(0)
    go_on.set()
    assert history.close(60)
    assert [cycle for cycle, _, _ in kept(tmp_path)] == [1, 4]
    assert [one["cycle"] for one in rows_of(tmp_path, HistoryTable.CYCLES)] == [1, 2, 3, 4]


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
