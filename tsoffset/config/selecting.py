"""What a command works on, with what an operator changed of it while the daemon runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tsoffset.config.loading import Configuration
from tsoffset.config.overrides import KnownLists
from tsoffset.config.selection import Selection
from tsoffset.flow.settings import Settings

_NOTHING_KNOWN = KnownLists()


@dataclass(frozen=True, slots=True)
class Selector:
    """The words of a command that choose what it works on."""

    config: str | Path
    flows: Sequence[str] = ()
    groups: str | None = None
    topics: str | None = None
    strict: bool = False

    def select(self, known: KnownLists = _NOTHING_KNOWN, *, may_be_none: bool = False) -> Selection:
        """`Selection.of` with the lists that `tsoffset lists` changed. What cannot be read of these
        is taken as it is `known`, with a warning in the settings. Raises as that does."""
        selection = Selection.of(
            self.config,
            self.flows,
            self.groups,
            self.topics,
            strict=self.strict,
            may_be_none=may_be_none,
        )
        lists = _lists(selection.settings, known)
        if not (lists.changes or lists.unread):
            return replace(selection, lists=lists)
        return selection.with_lists(lists, self.flows, may_be_none=may_be_none)

    def has_changed(self, selection: Selection) -> bool:
        """True where `select` may find something else than this. Raises ConfigurationError where
        the file cannot be read."""
        if Configuration.read(self.config).text != selection.configuration.text:
            return True
        return _lists(selection.settings, selection.lists) != selection.lists


def selected(
    config: str | Path,
    flows: Sequence[str],
    groups: str | None,
    topics: str | None,
    *,
    strict: bool = False,
) -> Selection:
    """As `Selector.select`."""
    return Selector(config, flows, groups, topics, strict).select()


def _lists(settings: Settings, known: KnownLists) -> KnownLists:
    if settings.state_dir is None:
        return KnownLists()
    # Loads pyarrow, which the other case has no need of.
    from tsoffset.config.overrides_files import OverridesFiles

    return OverridesFiles(settings.state_dir).read([flow.name for flow in settings.flows], known)
