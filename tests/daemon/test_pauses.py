"""Which flows an operator has paused, also while their place cannot be written."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from structlog.testing import capture_logs

from tests.waiting import TIMEOUT_SECONDS
from tsoffset.daemon.pauses import Pauses
from tsoffset.stores import Folder


def test_a_late_pause_does_not_undo_a_resumption(tmp_path, monkeypatch):
    """A store that was away answers while an operator resumes the flow: the last word holds."""
    state = tmp_path / "state"
    state.write_text("no folder")
    pauses = Pauses(str(state))
    pauses.set("A->B", True)
    state.unlink()
    begun, goes_on, write = threading.Event(), threading.Event(), Folder.write

    def late(*words: Any) -> None:
        begun.set()
        goes_on.wait(TIMEOUT_SECONDS)
        write(*words)

    monkeypatch.setattr(Folder, "write", late)
    with ThreadPoolExecutor(2) as pool:
        looked = pool.submit(pauses.look)
        assert begun.wait(TIMEOUT_SECONDS)
        resumed = pool.submit(pauses.set, "A->B", False)
        wait([resumed], 0.2)
        goes_on.set()
        looked.result()
        resumed.result()
    pauses.look()
    assert not pauses.paused("A->B")
    assert not list(state.glob("*.paused"))


def test_a_change_during_a_read_is_kept_and_costs_no_other_pause(tmp_path, monkeypatch):
    """The first read of a daemon takes long, and an operator resumes one flow meanwhile: the other
    flow is still paused."""
    for flow in ("A->B", "B->A"):
        Pauses(str(tmp_path)).set(flow, True)
    pauses, names, changes = Pauses(str(tmp_path)), Folder.names, [("A->B", False)]

    def slow(folder: Folder) -> list[str]:
        found = names(folder)
        if changes:
            pauses.set(*changes.pop())
        return found

    monkeypatch.setattr(Folder, "names", slow)
    pauses.look()
    assert (pauses.paused("A->B"), pauses.paused("B->A")) == (False, True)


def test_a_folder_that_is_not_mounted_any_more_ends_no_pause(tmp_path):
    """Its files are all gone. If only the pauses are gone, another process ended them."""
    pauses, other = Pauses(str(tmp_path)), Pauses(str(tmp_path))
    cached = tmp_path / "A-%3EB.state"
    cached.touch()
    other.set("A->B", True)
    pauses.look()
    (pause,) = tmp_path.glob("*.paused")
    pause.unlink()
    cached.unlink()
    with capture_logs() as logs:
        pauses.look()
    assert pauses.paused("A->B")
    assert [(one["event"], "is mounted" in one["message"]) for one in logs] == [
        ("pauses_not_read", True)
    ]
    cached.touch()
    pauses.look()
    assert not pauses.paused("A->B")
