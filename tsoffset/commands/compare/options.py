"""What `tsoffset compare` compares: the values of its options."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tsoffset.errors import UsageError


class Against(StrEnum):
    CHECKPOINTS = "checkpoints"
    """The newest checkpoints of MirrorMaker 2."""
    TIMESTAMPS = "timestamps"
    """The rule of KIP-1292 applied now, as with `translation.proof = timestamps`."""


class By(StrEnum):
    PAIR = "pair"
    GROUP = "group"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of `compare`.

    Checkpoints are read from `file`, or without one from their topic on the target. The comparison
    is repeated after `every_seconds` (None: not), at most `times` times (None: until a signal).
    """

    against: Against = Against.CHECKPOINTS
    file: Path | None = None
    by: By = By.PAIR
    html: Path | None = None
    every_seconds: float | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        if self.against is Against.TIMESTAMPS and self.file is not None:
            raise UsageError(
                "--against timestamps looks offsets up on both clusters; leave out --checkpoints"
            )
        if self.times is not None and self.every_seconds is None:
            raise UsageError("--times limits --every; add --every, for example --every 1m")

    @property
    def other_name(self) -> str:
        return "KIP-1292" if self.against is Against.TIMESTAMPS else "MirrorMaker 2"
