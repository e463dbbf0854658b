"""What is wrong or odd in a configuration, collected so that all of it is told at once."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from tsoffset.errors import ConfigurationProblem
from tsoffset.printable import printable

_SECRET_KEY = re.compile(
    r"passw|secret|token|credential|jaas|api[._-]?key|private|user\.?info|keystore\.key$",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"://[^/@\s]*@")
_LONGEST_SHOWN = 200
_HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as the file has it: the value is unresolved text; `line` counts from 1."""

    key: str
    text: str = field(repr=False)
    file: str
    line: int | None = None

    @property
    def place(self) -> str:
        """`file:line`, or the file alone."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Findings:
    """Problems and warnings, each once, in the order in which they were met."""

    def __init__(self) -> None:
        self._problems: dict[ConfigurationProblem, None] = {}
        self._warnings: dict[str, None] = {}

    @property
    def problems(self) -> tuple[ConfigurationProblem, ...]:
        """All that makes the configuration unusable, by line."""
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that is worth a word; no text holds a value."""
        return tuple(self._warnings)

    def problem(self, entry: Entry, allowed: str, *, with_value: bool = True) -> None:
        """The entry is wrong; its value is shown as the file has it, never resolved."""
        value = shown(entry) if with_value else None
        key = printable(entry.key)
        self._problems[ConfigurationProblem(key, value, allowed, entry.file, entry.line)] = None

    def missing(self, key: str, allowed: str, file: str, line: int | None = None) -> None:
        """A key that should be there is not; `line` is the one that asks for it."""
        self._problems[ConfigurationProblem(key, None, allowed, file, line)] = None

    def warning(self, entry: Entry, text: str) -> None:
        """The entry works, but perhaps not as meant."""
        self._warnings[f"{entry.place}: {printable(entry.key)}: {text}"] = None


def names_secret(key: str) -> bool:
    """True for a key whose value is likely to be a secret."""
    return _SECRET_KEY.search(key) is not None


def shown(entry: Entry) -> str:
    """The entry's value for a person: `${...}` unresolved, passwords hidden, long text cut."""
    if names_secret(entry.key):
        return _HIDDEN
    text = printable(_URL_PASSWORD.sub(f"://{_HIDDEN}@", entry.text))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def without(text: str, secrets: Collection[str]) -> str:
    """`text` with every one of `secrets` hidden, the longest first."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text
