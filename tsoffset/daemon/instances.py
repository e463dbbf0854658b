"""Other processes at work on the same flow: told of by small files in `state.dir`."""

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tsoffset.daemon.status import Instance
from tsoffset.stores import place_of

# So many intervals without a renewal, and an instance counts as gone.
MISSED_INTERVALS = 3
_VERSION = 1
# Shown to people, who may follow it; and it may have been written by anybody who is in the group.
_URL = re.compile(r"https?://[0-9A-Za-z._\[\]:-]{1,260}")
_UNREACHABLE = (OSError, pa.ArrowException)


class Presence:
    """That this instance runs a flow, for others with the same `state.dir`, a path or a URI: to be
    said with each cycle, by asking for the others.

    Each instance has a file of its own, so that none writes over another's. It only tells: no
    cycle depends on it, and a place that cannot be reached tells of nobody.
    """

    def __init__(
        self,
        directory: str | Path,
        flow: str,
        instance: Instance,
        interval_seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._place = place_of(directory)
        self._beginning = f"{quote(flow, safe='')}.instance-"
        self._instance = instance
        self._lasts_seconds = MISSED_INTERVALS * interval_seconds
        self._now = now

    def leads(self) -> bool:
        """True: every instance runs the flow, which is safe."""
        return True

    def leader(self) -> None:
        """None: every instance runs the flow."""

    def others(self) -> tuple[Instance, ...]:
        """Say that we are at work, and return who else is, the one that started first before the
        others. Files of those that are gone are removed."""
        until = self._now() + self._lasts_seconds
        content = to_json({"instance": asdict(self._instance), "until": until})
        found = []
        with suppress(*_UNREACHABLE):
            self._place.write(self._own, content, len(content))
            for name in self._place.names(self._beginning):
                if name != self._own and (other := self._read(name)) is not None:
                    found.append(other)
        return tuple(sorted(found, key=lambda one: (one.started_at, one.id)))

    def problem(self) -> str | None:
        """None: nobody has to agree."""
        return None

    def close(self) -> None:
        """Say that we are gone; where it cannot be said, it shows in time."""
        with suppress(*_UNREACHABLE):
            self._place.remove(self._own)

    @property
    def _own(self) -> str:
        return f"{self._beginning}{self._instance.id}.json"

    def _read(self, name: str) -> Instance | None:
        """Whose file it is; None where it is gone, or the file not ours."""
        with suppress(FileNotFoundError):
            facts = of_json(self._place.read(name))
            until = facts.get("until")
            if isinstance(until, int | float) and until > self._now():
                return instance_of(facts.get("instance"))
            self._place.remove(name)
        return None


def to_json(facts: Mapping[str, Any]) -> bytes:
    """The facts, with the version of their form, for other instances to read."""
    return json.dumps({"version": _VERSION, **facts}).encode()


def of_json(content: bytes) -> Mapping[str, Any]:
    """What another instance wrote; nothing where that cannot be read. What a later version adds
    is there, too."""
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def instance_of(facts: object) -> Instance | None:
    """The instance with these fields, further ones left out; None where it lacks one."""
    if not isinstance(facts, dict):
        return None
    try:
        started_at = float(facts["started_at"])
        if not math.isfinite(started_at):
            return None
        return Instance(
            str(facts["id"]),
            str(facts["host"]),
            int(facts["pid"]),
            started_at,
            str(facts["version"]),
            _url_of(facts.get("url")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _url_of(text: object) -> str | None:
    return text if isinstance(text, str) and _URL.fullmatch(text) else None
