"""What a command works on: the configuration, the flows chosen, what narrows them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tsoffset.config.loading import Configuration
from tsoffset.config.overrides import KnownLists
from tsoffset.errors import NoFlowEnabled, UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings


@dataclass(frozen=True, slots=True)
class Selection:
    """A configuration with the flows that the user chose, narrowed already."""

    configuration: Configuration
    settings: Settings
    flows: tuple[FlowSettings, ...]
    narrowing: Narrowing
    lists: KnownLists = field(default_factory=KnownLists)

    @classmethod
    def of(
        cls,
        config: str | Path,
        flows: Sequence[str],
        groups: str | None,
        topics: str | None,
        *,
        strict: bool = False,
        may_be_none: bool = False,
    ) -> Self:
        """Read the file, resolve it and choose.

        Raises ConfigurationError, and UsageError where a flow is unknown, none is enabled (unless
        that may be) or an expression is none.
        """
        narrowing = Narrowing(groups, topics)
        configuration = Configuration.read(config, strict=strict)
        return cls._of(configuration, flows, narrowing, may_be_none=may_be_none)

    def with_lists(
        self, lists: KnownLists, flows: Sequence[str], *, may_be_none: bool = False
    ) -> Self:
        """The same with what an operator changed of each flow; `flows` are those chosen by name."""
        configuration = replace(self.configuration, overrides=lists.changes)
        selection = self._of(configuration, flows, self.narrowing, may_be_none=may_be_none)
        warnings = (*selection.settings.warnings, *lists.unread.values())
        settings = replace(selection.settings, warnings=warnings)
        return replace(selection, settings=settings, lists=lists)

    @classmethod
    def _of(
        cls,
        configuration: Configuration,
        flows: Sequence[str],
        narrowing: Narrowing,
        *,
        may_be_none: bool,
    ) -> Self:
        settings = configuration.resolve()
        try:
            chosen = tuple(narrowing.apply(flow) for flow in settings.select(flows))
        except NoFlowEnabled as error:
            if not may_be_none:
                error.warnings = settings.warnings
                raise
            chosen = ()
        except UsageError as error:
            error.warnings = settings.warnings
            raise
        return cls(configuration, settings, chosen, narrowing)

    def configured(self) -> Self:
        """The same as the file alone has it."""
        return self.with_lists(KnownLists(), [flow.name for flow in self.flows])

    def flow(self, name: str) -> FlowSettings:
        """One of the flows chosen. Raises KeyError."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise KeyError(name)


def only_planned(flow: FlowSettings) -> str:
    """Why a flow that is not to commit is planned instead, as a sentence."""
    return (
        f"flow {flow.name}: sync.group.offsets.enabled is false, so this is a plan and nothing is "
        "committed; set it to true, or remove it, to commit"
    )
