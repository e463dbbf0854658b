"""The flows that an operator has paused, saved in `state.dir`, so that pauses survive a restart."""

import os
import threading
from collections.abc import Iterable
from urllib.parse import quote

import structlog

from tsoffset.stores import UNREACHABLE, Folder, in_words, place_of

log = structlog.get_logger(__name__)


class Pauses:
    """One file for each paused flow, in a directory or at a URI; if that is None, a pause ends with
    the process. A pause that cannot be written still applies, and `look` tries to write it again.
    May be called from any thread."""

    def __init__(self, directory: str | None) -> None:
        self._place = None if directory is None else place_of(directory)
        self._lock = threading.Lock()
        self._written: frozenset[str] = frozenset()
        self._unwritten: dict[str, bool] = {}
        self._changes = 0
        self._told: set[str] = set()

    def paused(self, flow: str) -> bool:
        with self._lock:
            return self._unwritten.get(flow, flow in self._written)

    def set(self, flow: str, paused: bool) -> None:
        with self._lock:
            self._unwritten[flow] = paused
            self._changes += 1
        self._write(flow, paused)

    def look(self, flows: Iterable[str]) -> None:
        """Read the changes of other processes, and write what could not be written before."""
        if self._place is None:
            return
        with self._lock:
            unwritten, changes = dict(self._unwritten), self._changes
        for flow, paused in unwritten.items():
            self._write(flow, paused)
        try:
            there = set(self._place.names())
        except UNREACHABLE:
            # The known pauses still apply.
            return
        with self._lock:
            if self._changes == changes:
                self._written = frozenset(flow for flow in flows if _name(flow) in there)

    def _write(self, flow: str, paused: bool) -> None:
        if self._place is None:
            return
        try:
            if paused:
                self._place.write(_name(flow), b"paused\n")
            else:
                self._place.remove(_name(flow))
        except UNREACHABLE as error:
            why = in_words(self._place, error)
            say = log.debug if flow in self._told else log.warning
            self._told.add(flow)
            say(
                "pause_not_written",
                flow=flow,
                message=f"{self._place.path(_name(flow))}: {why}; the pause is only in memory"
                " until it can be written, which is tried again: free disk space, or check"
                " that this user can reach and write the folder",
            )
            return
        self._told.discard(flow)
        with self._lock:
            if self._unwritten.get(flow) is paused:
                del self._unwritten[flow]
                self._written = self._written | {flow} if paused else self._written - {flow}


def why_not_kept(directory: str | None) -> str | None:
    """Why a pause cannot be saved there, as far as that is known without writing; else None."""
    if directory is None:
        return "state.dir is not set"
    place = place_of(directory)
    if not isinstance(place, Folder):
        return None
    there = next(one for one in (place.folder, *place.folder.absolute().parents) if one.exists())
    return None if os.access(there, os.W_OK) else f"this user cannot write to state.dir ({there})"


def _name(flow: str) -> str:
    return f"{quote(flow, safe='')}.paused"
