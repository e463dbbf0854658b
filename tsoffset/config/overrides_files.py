"""The files in `state.dir` with the changes of `tsoffset lists`, one per flow. Every command reads
them, and the daemon at intervals."""

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import quote

from tsoffset.config.overrides import KnownLists, Overrides
from tsoffset.stores import UNREACHABLE, Store, in_words, store_at

_SECONDS = 2.0
_STORE_SECONDS = 30.0
_NONE = Overrides()


def seconds_between_looks(directory: str | None) -> float:
    """The interval at which a daemon reads `state.dir` and its configuration file, in seconds."""
    at_a_store = "://" in (directory or "")
    return _STORE_SECONDS if at_a_store else _SECONDS


@dataclass(frozen=True, slots=True)
class OverridesFiles:
    """The files of all flows in a directory: a path or a URI."""

    directory: str = field(repr=False)

    def read(self, flows: Collection[str], known: KnownLists) -> KnownLists:
        """The changes of each flow; for a file that cannot be read, or is gone, those that are
        `known`. If none are known, the flow's changes are unknown: they may exclude groups."""
        found = {flow: known.found[flow] for flow in flows if flow in known.found}
        unread = {}
        for flow in flows:
            try:
                found[flow] = self.of(flow, found.get(flow, _NONE))
            except ValueError as error:
                unread[flow] = str(error)
        return KnownLists(found, unread)

    def of(self, flow: str, known: Overrides = _NONE) -> Overrides:
        """The changes of the flow. Raises ValueError with a sentence; also if there is no file, and
        changes are `known`: no command removes one, so the folder may not be mounted any more."""
        name = _name(flow)
        try:
            return Overrides.from_json(self._store.read(name))
        except FileNotFoundError:
            if known == _NONE:
                return known
            why = (
                "it is gone, but its changes stay in effect until a restart: check that state.dir"
                " is mounted, or change the lists again"
            )
        except UNREACHABLE as error:
            why = f"{in_words(self._store, error)}; check that this user can reach and read it"
        except ValueError as error:
            why = f"{error}; remove the file, and change the lists again"
        raise ValueError(f"read changed lists, flow {flow}: {self._store.path(name)}: {why}")

    def write(self, flow: str, overrides: Overrides) -> None:
        """Replace the changes of the flow. Raises ValueError with a sentence."""
        name, content = _name(flow), overrides.to_json()
        try:
            self._store.write(name, content, len(content))
        except UNREACHABLE as error:
            raise ValueError(
                f"write changed lists, flow {flow}: {self._store.path(name)}:"
                f" {in_words(self._store, error)}; free disk space, or check that this user can"
                " reach and write it"
            ) from None

    @property
    def _store(self) -> Store:
        return store_at(self.directory)


def _name(flow: str) -> str:
    return f"{quote(flow, safe='')}.lists.json"
