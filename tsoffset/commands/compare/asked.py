"""What of a flow is compared with what."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tsoffset.errors import UsageError


class Against(StrEnum):
    """Whose answers stand beside ours."""

    CHECKPOINTS = "checkpoints"
    """What MirrorMaker 2's checkpoint connector has written down."""
    TIMESTAMPS = "timestamps"
    """What KIP-1292's rule answers now, as `translation.proof = timestamps` has it."""


class By(StrEnum):
    """What has a line of its own."""

    PAIR = "pair"
    GROUP = "group"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Asked:
    """Theirs are what `against` says, checkpoints from the `file` where there is one, else from
    their topic on the target. Ours are translated now, unless `recorded`: then they are those of
    the last cycle that history has."""

    against: Against = Against.CHECKPOINTS
    file: Path | None = None
    recorded: bool = False

    def __post_init__(self) -> None:
        if self.against is Against.TIMESTAMPS and (self.file is not None or self.recorded):
            raise UsageError(
                "--against timestamps asks both clusters now; leave out --checkpoints and --history"
            )

    @property
    def whose(self) -> str:
        """Who they are."""
        return "KIP-1292's rule" if self.against is Against.TIMESTAMPS else "MirrorMaker 2"
