"""State in a folder or an object store: what comes back, and what a store may do to a cycle."""

import socket
import stat
import sys
import threading
from collections.abc import Iterator
from threading import Event

import pytest

from tests.group_sync.test_state import cache, contents
from tests.invoking import succeeds
from tests.waiting import TIMEOUT_SECONDS
from tsoffset import stores
from tsoffset.daemon.pauses import Pauses
from tsoffset.group_sync.state import FlowCache, StateFile


@pytest.fixture
def store() -> Iterator[str]:
    """The URI of a file system in this process's memory, in which a file is an object."""
    uri = "mock://secret@store/state/"
    stores._filesystem.cache_clear()
    stores._filesystem(uri)[0].create_dir("state")
    yield uri
    stores._filesystem.cache_clear()


def test_a_uri_of_this_machine_is_its_folder(tmp_path):
    """The same file, written with the same care, whether its folder has a path or a URI."""
    folder = tmp_path / "one two"
    assert StateFile(folder.as_uri(), "A->B").save(cache()) is None
    assert contents(StateFile(folder, "A->B").load()[0]) == contents(cache())
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_a_store_is_given_comes_back(store):
    """Nothing at first, then what was saved last, a file a flow."""
    files = [StateFile(store, "A->B"), StateFile(store, "A->C")]
    found, warning = files[0].load()
    assert (contents(found), warning) == (contents(FlowCache()), None)
    for number in range(2):
        assert [file.save(cache(number)) for file in files] == [None, None]
        found, warning = files[0].load()
        assert warning is None
        assert contents(found) == contents(cache(number))


def test_a_store_is_given_nothing_that_it_has(store):
    """A flow in which nothing moves puts no object; half of one is replaced."""
    file = StateFile(store, "A->B")
    system, _ = stores._filesystem(store)
    path = "state/A-%3EB.state"
    file.save(cache())
    written = system.get_file_info(path).mtime
    file.save(cache())
    assert system.get_file_info(path).mtime == written
    with system.open_input_file(path) as whole:
        half = whole.read()[:-7]
    with system.open_output_stream(path) as damaged:
        damaged.write(half)
    assert "damaged" in str(file.load()[1])
    file.save(cache())
    assert contents(file.load()[0]) == contents(cache())


def test_an_object_that_is_replaced_while_it_is_read_is_read_again(store, monkeypatch):
    """Another process puts a longer one: what is read is one of the two."""
    file = StateFile(store, "A->B")
    file.save(cache())
    read = stores.ObjectStore.read
    cut = iter([True])
    monkeypatch.setattr(
        stores.ObjectStore, "read", lambda *one: read(*one)[: -1 if next(cut, False) else None]
    )
    found, warning = file.load()
    assert warning is None
    assert contents(found) == contents(cache())


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("foo://key:secret@bucket/state", "Unrecognized filesystem"),
        ("file://host/state", "Unsupported hostname"),
        ("mock://key:secret@bucket/nowhere", "does not exist"),
        (
            "s3://key:secret@bucket/state?endpoint_override=127.0.0.1:1&scheme=http&region=x",
            "NETWORK_CONNECTION",
        ),
        ("s3://key:a/secret@bucket/state", "Cannot parse URI"),
        ("s3://key:se?cret/secret@bucket/state", "Cannot parse URI"),
        ("s3://key:[secret@bucket/state", "Cannot parse URI"),
    ],
)
def test_a_store_that_cannot_be_used_is_a_warning(uri, why):
    """Unknown, unreachable, or without the folder: named, and without credentials."""
    file = StateFile(uri, "A->B")
    warning = file.save(cache())
    assert why in warning
    assert str(file.path) in warning
    found, not_read = file.load()
    assert contents(found) == contents(FlowCache())
    assert "secret" not in f"{warning} {not_read} {file.path}"


def test_no_cycle_waits_long_for_a_store(store, monkeypatch):
    """One that does not answer is a warning, too."""
    answering = Event()
    monkeypatch.setattr(stores, "ANSWERS_WITHIN_SECONDS", 0.01)
    monkeypatch.setattr(stores, "_filesystem", lambda _: answering.wait())
    file = StateFile(store, "A->B")
    try:
        assert "no answer within" in str(file.load()[1])
        assert "no answer within" in str(file.save(cache()))
    finally:
        answering.set()


def test_a_change_that_ends_late_does_not_undo_a_later_one(store, monkeypatch):
    """The flow was paused while the store was away, and resumed before that had ended."""
    goes_on, opened, waiting = Event(), stores._filesystem, [True]

    def late(uri: str) -> object:
        if waiting and waiting.pop():
            goes_on.wait(TIMEOUT_SECONDS)
        return opened(uri)

    monkeypatch.setattr(stores, "ANSWERS_WITHIN_SECONDS", 0.05)
    monkeypatch.setattr(stores, "_filesystem", late)
    pauses, before = Pauses(store), {*threading.enumerate()}
    assert not pauses.set("A->B", True)
    (writing,) = {*threading.enumerate()} - before
    pauses.set("A->B", False)
    goes_on.set()
    writing.join()
    monkeypatch.setattr(stores, "ANSWERS_WITHIN_SECONDS", 60)
    pauses.look()
    assert not pauses.paused("A->B")
    assert stores.store_at(store).names() == []


@pytest.mark.thorough
def test_a_store_that_hangs_does_not_keep_a_process_from_its_end():
    """pyarrow waits then for what is under way, so that has to have an end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        program = f"""
from tsoffset import stores
from tsoffset.group_sync import state
stores.ANSWERS_WITHIN_SECONDS = stores.S3_ANSWERS_WITHIN_SECONDS = 0.5
uri = "s3://key:secret@bucket/state?endpoint_override={endpoint}&scheme=http&region=x"
print(state.StateFile(uri, "A->B").load()[1])
"""
        said = succeeds(sys.executable, "-c", program, timeout=180)
    assert "no answer within" in said
