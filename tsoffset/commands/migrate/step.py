"""A step of a migration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """Something to be typed, as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, as sentences and commands; `check` ends it."""

    title: str
    todo: tuple[str | Command, ...]
    check: tuple[str | Command, ...]
