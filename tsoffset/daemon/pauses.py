"""The flows that an operator has paused, saved in `state.dir`, so that pauses survive a restart."""

import errno
import os
import shutil
import threading
from urllib.parse import quote

import structlog

from tsoffset.stores import UNREACHABLE, Folder, Store, in_words, store_at

log = structlog.get_logger(__name__)

_SUFFIX = ".paused"


class Pauses:
    """One file for each paused flow, in a directory or at a URI; if that is None, a pause ends with
    the process. A pause that cannot be written still applies, and `look` tries to write it again.
    May be called from any thread."""

    def __init__(self, directory: str | None) -> None:
        self._store = None if directory is None else store_at(directory)
        self._lock = threading.Lock()
        # Only one write runs at a time, of the newest value: a slow one would undo a newer change.
        self._writing = threading.Lock()
        # The names of the files.
        self._there: frozenset[str] = frozenset()
        self._unwritten: dict[str, bool] = {}
        self._changes = 0
        self._told: set[str] = set()
        self._was_read = False
        # Why the last read failed.
        self._unread: str | None = None

    def unknown(self) -> str | None:
        """Why it is unknown which flows are paused; None if a `look` has read it, or none was
        tried."""
        return None if self._was_read else self._unread

    def paused(self, flow: str) -> bool:
        with self._lock:
            return self._unwritten.get(flow, _name(flow) in self._there)

    def set(self, flow: str, paused: bool) -> bool:
        """False if that could not be written."""
        with self._lock:
            self._unwritten[flow] = paused
            self._changes += 1
        return self._write(flow)

    def look(self) -> None:
        """Read the changes of other processes, and write what could not be written before."""
        if self._store is None:
            return
        with self._lock:
            unwritten, changes = tuple(self._unwritten), self._changes
        for flow in unwritten:
            self._write(flow)
        try:
            there = frozenset(self._store.names())
            # Ends of pauses remove files, too, but no other ones.
            if not (there or all(name.endswith(_SUFFIX) for name in self._there)):
                raise FileNotFoundError(errno.ENOENT, "it is empty now, as if it were not mounted")
        except UNREACHABLE as error:
            effect = (
                "the known pauses still apply, but changes of other processes do not"
                if self._was_read
                else "no flow is synced until it is known which flows are paused"
            )
            message = (
                f"read pauses, state.dir: {in_words(self._store, error)}; {effect}: check that the"
                " folder is mounted, and that this user can list it"
            )
            if self._unread is None:
                log.warning("pauses_not_read", message=message)
            self._unread = message
            return
        with self._lock:
            is_current = self._changes == changes
            if is_current:
                self._there, self._was_read, self._unread = there, True, None
        if not is_current:
            self.look()

    def _write(self, flow: str) -> bool:
        if self._store is None:
            return False
        with self._writing:
            with self._lock:
                paused = self._unwritten.get(flow)
            if paused is None:
                return True
            try:
                if paused:
                    self._store.write(_name(flow), b"paused\n")
                else:
                    self._store.remove(_name(flow))
            except UNREACHABLE as error:
                self._not_written(flow, self._store, error)
                return False
            self._told.discard(flow)
            with self._lock:
                name = frozenset((_name(flow),))
                self._there = self._there | name if paused else self._there - name
                if self._unwritten[flow] is paused:
                    del self._unwritten[flow]
        return True

    def _not_written(self, flow: str, store: Store, error: Exception) -> None:
        say = log.debug if flow in self._told else log.warning
        self._told.add(flow)
        say(
            "pause_not_written",
            flow=flow,
            message=f"{store.path(_name(flow))}: {in_words(store, error)}; until it is written, no"
            " other process applies this change, and a restart of this one forgets it: free disk"
            " space, or check that this user can reach and write the folder",
        )


def is_paused(directory: str | None, flow: str) -> bool:
    """Whether the flow has a saved pause."""
    pauses = Pauses(directory)
    pauses.look()
    return pauses.paused(flow)


def why_not_kept(directory: str | None) -> str | None:
    """Why a pause cannot be saved there, as far as that is known without writing; else None."""
    if directory is None:
        return "state.dir is not set"
    store = store_at(directory)
    if not isinstance(store, Folder):
        return None
    # `Path.exists` raises an error below a folder that this user may not enter.
    folders = (store.folder, *store.folder.absolute().parents)
    there = next(one for one in folders if os.access(one, os.F_OK))
    if not there.is_dir():
        return f"state.dir is not a folder ({there})"
    if not os.access(there, os.W_OK):
        return f"this user cannot write to state.dir ({there})"
    return "the disk of state.dir is full" if shutil.disk_usage(there).free == 0 else None


def _name(flow: str) -> str:
    return quote(flow, safe="") + _SUFFIX
