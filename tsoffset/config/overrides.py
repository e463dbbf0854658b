"""Changes of a flow's four lists by `tsoffset lists`, beside the configuration file.

A change adds entries to a list of the file, or removes entries from it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tsoffset.config import keys
from tsoffset.config.findings import Entry
from tsoffset.config.scopes import Setting
from tsoffset.flow.patterns import InvalidPattern, compile_list, split_list

LIST_KEYS = tuple(key.name for key in keys.LISTS)
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ListChange:
    """Entries added to a list of the configuration, and entries removed from it."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def add(self, entry: str) -> "ListChange":
        added = tuple(dict.fromkeys((*self.added, entry)))
        return ListChange(added, tuple(one for one in self.removed if one != entry))

    def remove(self, entry: str, configured: tuple[str, ...]) -> "ListChange":
        """`configured` is the list of the configuration. An entry that it does not have is only
        dropped from `added`: if the file gets the entry later, it is in effect."""
        removed = dict.fromkeys((*self.removed, entry) if entry in configured else self.removed)
        return ListChange(tuple(one for one in self.added if one != entry), tuple(removed))

    def apply(self, entries: tuple[str, ...]) -> tuple[str, ...]:
        kept = (entry for entry in entries if entry not in self.removed)
        return tuple(dict.fromkeys((*kept, *self.added)))


@dataclass(frozen=True, slots=True)
class Overrides:
    """The changes of one flow. `lists` has the changed ones of LIST_KEYS."""

    lists: Mapping[str, ListChange] = field(default_factory=dict)

    def with_change(self, key: str, change: ListChange) -> "Overrides":
        lists = {**self.lists, key: change}
        return replace(self, lists={name: c for name, c in lists.items() if c != ListChange()})

    def in_words(self) -> tuple[str, ...]:
        return tuple(
            f"{key} {word} {entry}"
            for key, change in sorted(self.lists.items())
            for word, entries in (("with", change.added), ("without", change.removed))
            for entry in entries
        )

    def apply_to(self, settings: Mapping[str, Setting], file: str) -> Mapping[str, Setting]:
        """A flow's settings with the changes. `file` is the location in messages about a list that
        the configuration does not have."""
        result = dict(settings)
        for key, change in self.lists.items():
            setting = settings.get(key)
            before = keys.FLOW_KEYS[key].default if setting is None else split_list(setting.value)
            text = ",".join(change.apply(before))
            entry = Entry(key, text, file) if setting is None else setting.entry
            result[key] = Setting(entry, text, changed=True)
        return result

    def to_json(self) -> bytes:
        lists = {
            key: {"added": list(change.added), "removed": list(change.removed)}
            for key, change in sorted(self.lists.items())
        }
        kept = {"version": _VERSION, "lists": lists}
        return json.dumps(kept, indent=2).encode() + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> "Overrides":
        """Read the content of a file. Raises ValueError with a reason."""
        try:
            kept = json.loads(content)
            version, lists = kept["version"], kept["lists"]
            changes = {
                key: ListChange(_entries(change["added"]), _entries(change["removed"]))
                for key, change in lists.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"it is damaged ({type(error).__name__})") from None
        if version != _VERSION:
            raise ValueError("it was written by another version of tsoffset")
        if not set(changes) <= set(LIST_KEYS):
            raise ValueError("it is damaged")
        return cls(changes)


@dataclass(frozen=True, slots=True)
class KnownLists:
    """The changes of each flow, as last read; and for each flow whose changes cannot be read now, a
    sentence that says why."""

    found: Mapping[str, Overrides] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> Mapping[str, Overrides]:
        return {flow: changed for flow, changed in self.found.items() if changed != Overrides()}

    def unknown(self, flow: str) -> str | None:
        """Why the flow's changes are unknown; None if they are known, or if it has none."""
        return None if flow in self.found else self.unread.get(flow)


def _entries(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError("no list")
    return tuple(entry_of(value) for value in values)


def entry_of(text: str) -> str:
    """One entry of a list: a name or a regular expression. Raises ValueError with a reason."""
    entries = split_list(text)
    if len(entries) != 1 or not entries[0]:
        raise ValueError("must be one name or regular expression, without a comma")
    try:
        compile_list(entries)
    except InvalidPattern as error:
        raise ValueError(str(error)) from None
    return entries[0]
