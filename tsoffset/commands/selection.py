"""What a command works on: the configuration, the flows chosen, what narrows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tsoffset.config.loading import Configuration
from tsoffset.errors import UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.terminal.notices import Notices


@dataclass(frozen=True, slots=True)
class Selection:
    """A configuration with the flows that the user chose, narrowed already."""

    configuration: Configuration
    settings: Settings
    flows: tuple[FlowSettings, ...]
    narrowing: Narrowing

    @classmethod
    def of(
        cls, config: str | Path, flows: Sequence[str], groups: str | None, topics: str | None
    ) -> Self:
        """Read the file, resolve it and choose.

        Raises ConfigurationError, and UsageError where a flow is unknown, none is enabled or
        an expression is none.
        """
        narrowing = Narrowing(groups, topics)
        configuration = Configuration.read(config)
        settings = configuration.resolve()
        try:
            chosen = tuple(narrowing.apply(flow) for flow in settings.select(flows))
        except UsageError as error:
            error.warnings = settings.warnings
            raise
        return cls(configuration, settings, chosen, narrowing)

    def told(self, notices: Notices) -> Self:
        """Itself, once a person has been told of what the configuration warns of."""
        for warning in self.settings.warnings:
            notices.warning("configuration_warning", warning)
        return self


def only_planned(flow: FlowSettings) -> str:
    """Why a flow that is not to commit is planned instead, as a sentence."""
    return (
        f"flow {flow.name}: sync.group.offsets.enabled is false, so this is a plan and nothing is "
        "committed; set it to true, or leave it out, to commit"
    )
