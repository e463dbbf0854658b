"""Problems and warnings of a configuration, collected so that all are reported together."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from tsoffset.errors import ConfigurationProblem
from tsoffset.printable import HIDDEN, names_secret, printable

_URL_PASSWORD = re.compile(r"://[^/@\s]*@")
_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A key in a file. `text` is its value with `${...}` unresolved; `line` counts from 1."""

    key: str
    text: str = field(repr=False)
    file: str
    line: int | None = None

    @property
    def location(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Findings:
    """Problems and warnings, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._problems: dict[ConfigurationProblem, None] = {}
        self._warnings: dict[str, None] = {}

    @property
    def problems(self) -> tuple[ConfigurationProblem, ...]:
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings; none contains a value."""
        return tuple(self._warnings)

    def problem(self, entry: Entry, allowed: str, *, with_value: bool = True) -> None:
        value = shown_value(entry) if with_value else None
        key = printable(entry.key)
        self._problems[ConfigurationProblem(key, value, allowed, entry.file, entry.line)] = None

    def problem_in_file(self, key: str, allowed: str, file: str, line: int | None = None) -> None:
        """Add a problem that has no entry, such as a missing key; `line` is where it is
        required."""
        self._problems[ConfigurationProblem(key, None, allowed, file, line)] = None

    def warning(self, entry: Entry, text: str) -> None:
        self._warnings[f"{entry.location}: {printable(entry.key)}: {text}"] = None


def shown_value(entry: Entry) -> str:
    """The entry's value to be shown: unresolved, without secrets, at most 200 characters."""
    if names_secret(entry.key):
        return HIDDEN
    text = printable(_URL_PASSWORD.sub(f"://{HIDDEN}@", entry.text))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def hide_values(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
