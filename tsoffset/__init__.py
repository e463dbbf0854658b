"""tsoffset syncs consumer-group offsets to a target Kafka cluster.

As a library: `translate_offsets`, `translate_positions`, `plan`, `sync`, `read_checkpoints` and
`topics` (docs/api.md). They are loaded when they are first used, so that `import tsoffset` loads
nothing else.
"""

from importlib import import_module

from tsoffset.version import __version__ as __version__

# `typing` takes long to load, and Ctrl-C shows a traceback until the program has begun.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tsoffset.api import (
        TranslatedOffset,
        plan,
        read_checkpoints,
        sync,
        topics,
        translate_offsets,
        translate_positions,
    )

__all__ = [
    "TranslatedOffset",
    "plan",
    "read_checkpoints",
    "sync",
    "topics",
    "translate_offsets",
    "translate_positions",
]


def __getattr__(name: str) -> "Any":
    if name in __all__:
        # By its name, so that importing the package for its version does not load all of it.
        return getattr(import_module("tsoffset.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
