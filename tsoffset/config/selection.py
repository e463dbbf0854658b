"""What a command works on: a configuration, the chosen flows, and the filters of its options."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tsoffset.config.loading import Configuration
from tsoffset.config.overrides import KnownLists
from tsoffset.errors import CycleFailed, NoFlowEnabled, UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings

# A file that does not change for this time counts as completely written.
_WRITTEN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Selection:
    """A configuration with the chosen flows, which have the filters of the options already. `lists`
    are the changes that `tsoffset lists` made, which the flows have, too."""

    configuration: Configuration
    settings: Settings
    flows: tuple[FlowSettings, ...]
    narrowing: Narrowing
    lists: KnownLists = field(default_factory=KnownLists)

    def with_lists(
        self, lists: KnownLists, flows: Sequence[str], *, may_be_none: bool = False
    ) -> Self:
        """The same file and options with these changed lists; `flows` are those chosen by name."""
        configuration = replace(self.configuration, overrides=lists.changes)
        selection = self.of(configuration, flows, self.narrowing, may_be_none=may_be_none)
        warnings = (*selection.settings.warnings, *lists.unread.values())
        settings = replace(selection.settings, warnings=warnings)
        return replace(selection, settings=settings, lists=lists)

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        flows: Sequence[str],
        narrowing: Narrowing,
        *,
        may_be_none: bool,
    ) -> Self:
        """Resolve the configuration, and choose the flows. Raises as `Selector.select`."""
        settings = configuration.resolve()
        try:
            chosen = tuple(narrowing.apply(flow) for flow in settings.select(flows))
        except UsageError as error:
            if not (may_be_none and isinstance(error, NoFlowEnabled)):
                error.warnings = settings.warnings
                raise
            chosen = ()
        return cls(configuration, settings, chosen, narrowing)

    def configured(self) -> Self:
        return self.with_lists(KnownLists(), [flow.name for flow in self.flows])

    def require_known_lists(self, flow: FlowSettings) -> None:
        """Raises CycleFailed if the flow's changed lists are unknown: they may exclude groups."""
        if (unknown := self.lists.unknown(flow.name)) is not None:
            raise CycleFailed(
                f"{unknown} (nothing is committed until then, because the changed lists may exclude"
                " groups)"
            )

    def flow(self, name: str) -> FlowSettings:
        """One of the chosen flows. Raises KeyError."""
        return {flow.name: flow for flow in self.flows}[name]


@dataclass(frozen=True, slots=True)
class Selector:
    """The options of a command that choose what it works on."""

    config: str | Path
    flows: Sequence[str] = ()
    groups: str | None = None
    topics: str | None = None
    strict: bool = False

    def select(self, known: KnownLists | None = None, *, may_be_none: bool = False) -> Selection:
        """The chosen flows, with the changes of `tsoffset lists`. If a flow's changes cannot be
        read, those of `known` apply, and the settings have a warning.

        Raises ConfigurationError, and UsageError for an unknown flow, an invalid expression, or if
        no flow is enabled (unless `may_be_none`).
        """
        narrowing = Narrowing(self.groups, self.topics)
        configuration = Configuration.read(self.config, strict=self.strict)
        selection = Selection.of(configuration, self.flows, narrowing, may_be_none=may_be_none)
        lists = _lists(selection.settings, known or KnownLists())
        if not (lists.changes or lists.unread):
            return replace(selection, lists=lists)
        return selection.with_lists(lists, self.flows, may_be_none=may_be_none)

    def has_changed(self, selection: Selection) -> bool:
        """True if `select` may return something else than this. Raises ConfigurationError if the
        file cannot be read."""
        if Configuration.read(self.config).text != selection.configuration.text:
            return True
        return _lists(selection.settings, selection.lists) != selection.lists

    def is_being_written(self) -> bool:
        """True if the file changes within a moment. A file that is only partly written may be
        valid, and lack its excludes. Raises ConfigurationError if the file cannot be read."""
        text = Configuration.read(self.config).text
        time.sleep(_WRITTEN_SECONDS)
        return Configuration.read(self.config).text != text


def plan_only_notice(flow: FlowSettings) -> str:
    return (
        f"flow {flow.name}: sync.group.offsets.enabled is false, so this is a plan and nothing is "
        "committed; set it to true, or remove it, to commit"
    )


def _lists(settings: Settings, known: KnownLists) -> KnownLists:
    if settings.state_dir is None:
        return KnownLists()
    # Imported here: it loads pyarrow, which commands without `state.dir` do not need.
    from tsoffset.config.overrides_files import OverridesFiles

    return OverridesFiles(settings.state_dir).read([flow.name for flow in settings.flows], known)
