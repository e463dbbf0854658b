"""Days that are over: merged, and removed."""

from contextlib import suppress
from datetime import timedelta

import pytest

from tests.past_cycles import DAY, FLOW, LATER, NOON, TODAY, Past, files, kept, merge, row, rows_of
from tsoffset.history import tidying
from tsoffset.history.files import HistoryTable, days
from tsoffset.history.tables import KeptReason
from tsoffset.history.tidying import tidy
from tsoffset.stores import Folder, store_at


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
    tidy(store_at(tmp_path), FLOW, LATER)
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
        left = days(store_at(tmp_path), kind, FLOW)
        assert left == [TODAY + timedelta(days=1), TODAY + timedelta(days=2)]
