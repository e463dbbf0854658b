"""What an operator changed of a flow, in a file of its own in `state.dir`: read by every command
that works on the flow, and again and again by the daemon."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

from tsoffset.config.overrides import KnownLists, Overrides
from tsoffset.stores import UNREACHABLE, Place, place_of

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_BETWEEN_LOOKS_AT_A_STORE = 30.0


def seconds_between_looks(directory: str | None) -> float:
    """How often a daemon reads the changed lists in `state.dir`, and its configuration file."""
    at_a_store = "://" in (directory or "")
    return _SECONDS_BETWEEN_LOOKS_AT_A_STORE if at_a_store else _SECONDS_BETWEEN_LOOKS


class ListsDamaged(ValueError):
    """A file is there, and not what it should be."""


@dataclass(frozen=True, slots=True)
class OverridesFiles:
    """The files of all flows in one directory: a path of this machine, or a URI."""

    directory: str = field(repr=False)

    def read(self, flows: Iterable[str], known: KnownLists) -> KnownLists:
        """What is changed of each flow; what cannot be read is as it is `known`. Where that is not
        and the place cannot be reached, nothing is taken to be changed: a flow does not depend on
        it. Where a file is damaged something was changed, and it is not known what."""
        found, unread = {}, {}
        for flow in flows:
            try:
                found[flow] = self.of(flow)
            except ValueError as error:
                unread[flow] = str(error)
                before = known.found.get(flow)
                if before is not None or not isinstance(error, ListsDamaged):
                    found[flow] = before or Overrides()
        return KnownLists(found, unread)

    def of(self, flow: str) -> Overrides:
        """What is changed of the flow. Raises ValueError with a sentence where that cannot be
        told."""
        name = _name(flow)
        try:
            return Overrides.from_json(self._place.read(name))
        except FileNotFoundError:
            return Overrides()
        except UNREACHABLE as error:
            kind, why = ValueError, f"{self._in_words(error)}; check that this user can read it"
        except ValueError as error:
            kind, why = ListsDamaged, f"{error}; remove the file, and change the lists again"
        raise kind(f"read changed lists, flow {flow}: {self._place.path(name)}: {why}")

    def write(self, flow: str, overrides: Overrides) -> None:
        """Put it in place of what was changed before. Raises ValueError with a sentence."""
        name, content = _name(flow), overrides.to_json()
        try:
            self._place.write(name, content, len(content))
        except UNREACHABLE as error:
            raise ValueError(
                f"write changed lists, flow {flow}: {self._place.path(name)}:"
                f" {self._in_words(error)}; check that this user can reach and write it"
            ) from None

    @property
    def _place(self) -> Place:
        return place_of(self.directory)

    def _in_words(self, error: Exception) -> str:
        return self._place.without_credentials(str(error).partition("\n")[0])


def _name(flow: str) -> str:
    return f"{quote(flow, safe='')}.lists.json"
