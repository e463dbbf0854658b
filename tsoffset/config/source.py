"""Parsing the text of a configuration into entries with their lines."""

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import javaproperties

from tsoffset.config.findings import Entry, Findings
from tsoffset.errors import ConfigurationError, ConfigurationProblem

# In text that `json` has accepted every string is closed.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"(?P<colon>\s*:)?)?|(?P<begin>{)|(?P<end>})')
# An odd number of backslashes before a letter that is no escape: `\d` is read as `d`.
_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\[a-eg-mo-qsv-zA-Z]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_BYTES = 16 << 20

_Members = tuple[tuple[str, object, int], ...]
"""A JSON object: the name, value and line of each member, including names given twice."""


class ConfigFormat(StrEnum):
    PROPERTIES = "properties"
    JSON = "json"


def read_text(path: str) -> str:
    """The file's text as UTF-8 or, if it is not valid UTF-8, as Latin-1, like Java's properties.
    Raises ConfigurationError."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise _unusable(path, "cannot be read: invalid file name") from None
    if len(content) > _MOST_BYTES:
        raise _unusable(path, "is larger than 16 MiB, the limit for a configuration")
    if b"\0" in content:
        raise _unusable(path, "is no text in UTF-8 (in UTF-16, perhaps); save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def format_of(path: str, text: str) -> ConfigFormat:
    """The format by the name's ending or the first character. Raises ConfigurationError."""
    suffix = Path(path).suffix.lower()
    if suffix in (".yaml", ".yml"):
        raise _unusable(
            path,
            "is YAML; give a MirrorMaker 2 .properties or a Connect .json file (tsoffset migrate"
            " makes one of a Strimzi resource)",
        )
    if suffix == ".json" or (suffix != ".properties" and text.lstrip().startswith("{")):
        return ConfigFormat.JSON
    return ConfigFormat.PROPERTIES


def parse(text: str, form: ConfigFormat, file: str, findings: Findings) -> tuple[Entry, ...]:
    """The entries in the file's order; of a key given twice only the last, with a warning. Text
    that cannot be parsed is a problem, and returns no entries."""
    parser = _json if form is ConfigFormat.JSON else _properties
    last: dict[str, Entry] = {}
    for entry in parser(text, file, findings):
        key = entry.key.encode(errors="backslashreplace").decode()
        if key != entry.key or _SURROGATE.search(entry.text):
            findings.problem_in_file(
                key, "has a \\u escape that is half of a character", file, entry.line
            )
            continue
        earlier = last.pop(entry.key, None)
        if earlier is not None:
            findings.warning(
                entry,
                f"given twice; this value applies, the one on line {earlier.line} does not",
            )
        last[entry.key] = entry
    return tuple(last.values())


def _properties(text: str, file: str, findings: Findings) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    line = 1
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                entry = Entry(element.key, element.value, file, line)
                entries.append(entry)
                if _LOST_BACKSLASH.search(element.source):
                    findings.warning(
                        entry,
                        "a properties file drops a single backslash before a letter; write two",
                    )
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError:
        findings.problem_in_file("\\u", "must be followed by four hexadecimal digits", file, line)
    return tuple(entries)


def _json(text: str, file: str, findings: Findings) -> tuple[Entry, ...]:
    lines = _lines_of_objects(text)

    def members(pairs: list[tuple[str, object]]) -> _Members:
        return tuple((*pair, line) for pair, line in zip(pairs, next(lines), strict=True))

    try:
        document = json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError as error:
        findings.problem_in_file("JSON", f"cannot be parsed: {error.msg}", file, error.lineno)
        return ()
    except (RecursionError, ValueError):
        findings.problem_in_file(
            "JSON", "cannot be parsed: nested too deeply, or too long a number", file
        )
        return ()
    if not isinstance(document, tuple):
        findings.problem_in_file("JSON", "must be one object, a connector's configuration", file)
        return ()
    # Connect's REST API takes {"name": ..., "config": {...}}; a file may hold the inner object.
    nested = [value for key, value, _ in document if key == "config"]
    if nested and isinstance(nested[-1], tuple):
        for key, _, line in document:
            if key not in ("config", "name"):
                findings.warning(
                    Entry(key, "", file, line),
                    "has no effect outside of `config`; move it into `config`",
                )
        document = nested[-1]
    return tuple(_json_entries(document, file, findings))


def _json_entries(members: _Members, file: str, findings: Findings) -> Iterator[Entry]:
    for key, value, line in members:
        if isinstance(value, str):
            yield Entry(key, value, file, line)
        elif isinstance(value, int | float):  # with true and false
            yield Entry(key, json.dumps(value), file, line)
        elif value is not None:
            findings.problem(
                Entry(key, "", file, line),
                "must be text, a number, true or false; a list is written as text with commas",
                with_value=False,
            )


def _lines_of_objects(text: str) -> Iterator[list[int]]:
    """The lines of the members of each object, in the order in which the objects end."""
    open_objects: list[list[int]] = []
    line, before = 1, 0
    for token in _JSON_TOKEN.finditer(text):
        if token["begin"]:
            open_objects.append([])
        elif token["end"]:
            yield open_objects.pop()
        elif token["colon"]:
            line += len(_LINE_END.findall(text, before, token.start()))
            before = token.start()
            open_objects[-1].append(line)


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError((ConfigurationProblem("configuration", None, why, path),))
