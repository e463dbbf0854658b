"""Resolving references to values elsewhere: `${env:NAME}`, `${file:path:key}`,
`${dir:path:file}`.

The grammar is that of Kafka's ConfigTransformer, and the three providers are Kafka's own
(EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider). They work without
`config.providers`, which may give them other names.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import javaproperties

_REFERENCE = re.compile(r"\$\{(?P<provider>[^}:]*):(?:(?P<path>[^}:]*):)?(?P<key>[^}]*)\}")
_MOST_BYTES = 16 << 20
_KAFKA_PROVIDERS = "org.apache.kafka.common.config.provider."
_KINDS = {
    f"{_KAFKA_PROVIDERS}EnvVarConfigProvider": "env",
    f"{_KAFKA_PROVIDERS}FileConfigProvider": "file",
    f"{_KAFKA_PROVIDERS}DirectoryConfigProvider": "dir",
}


class Unresolved(ValueError):
    """References in a value cannot be resolved; `reasons` has one sentence for each."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


class Resolver:
    """Replaces references in values, and records the replacements so that they can be hidden.

    `classes` maps names from `config.providers.<name>.class` to Java classes. Each file is read
    only once, so that all its values are of the same version.
    """

    def __init__(self, classes: Mapping[str, str]) -> None:
        self._kinds = {kind: kind for kind in _KINDS.values()}
        for name, java_class in classes.items():
            # An unknown class with the name of one of Kafka's providers replaces it.
            self._kinds[name] = _KINDS.get(java_class.strip(), "")
        self._properties = lru_cache(maxsize=None)(_read_properties)
        self.substituted: set[str] = set()

    def resolve(self, text: str) -> str:
        reasons: list[str] = []

        def replacement(reference: re.Match[str]) -> str:
            try:
                value = self._look_up(reference)
            except LookupError as error:
                reasons.append(f"{reference.group()}: {error.args[0]}")
                return ""
            self.substituted.add(value)
            return value

        # Only the first `${` before each `}` can begin a reference. Trying all would take quadratic
        # time.
        *parts, rest = text.split("}")
        found = []
        for part in (f"{part}}}" for part in parts):
            begin = part.find("${")
            reference = _REFERENCE.match(part, begin) if begin >= 0 else None
            found.append(part if reference is None else part[:begin] + replacement(reference))
        resolved = "".join([*found, rest])
        if reasons:
            raise Unresolved(tuple(reasons))
        return resolved

    def _look_up(self, reference: re.Match[str]) -> str:
        """The value. Raises LookupError with a sentence."""
        provider, path, key = reference.group("provider", "path", "key")
        match self._kinds.get(provider):
            case "env":
                if (value := _environment(key)) is None:
                    raise LookupError(f"the environment variable {key} is not set")
                return value
            case "file":
                if not path:
                    raise LookupError("write ${file:path:key}")
                properties = self._properties(path)
                if key not in properties:
                    raise LookupError(f"the file {path} has no key {key}")
                return properties[key]
            case "dir":
                if not path:
                    raise LookupError("write ${dir:path:file}")
                return _read_directory_file(path, key)
            case _:
                names = ", ".join(sorted(name for name, kind in self._kinds.items() if kind))
                raise LookupError(f"there is no config provider {provider}; there are {names}")


def _environment(name: str) -> str | None:
    try:
        return os.environ.get(name)
    except UnicodeEncodeError:  # half of a character
        return None


def _read_properties(path: str) -> dict[str, str]:
    try:
        content = _content(Path(path))
    except OSError as error:
        raise LookupError(f"the file {path} cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        # As MirrorMaker 2 reads its own file, to which a migrated configuration may refer.
        text = content.decode("latin-1")
    try:
        return dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError:
        raise LookupError(f"the file {path} has a \\u without four hexadecimal digits") from None


def _content(path: Path) -> bytes:
    """The content of a file of at most 16 MiB. Raises OSError and LookupError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except ValueError:  # a null, or half of a character
        raise LookupError(f"{str(path)!r} is not a file name") from None
    if len(content) > _MOST_BYTES:
        raise LookupError(f"the file {path} is larger than 16 MiB")
    return content


def _read_directory_file(directory: str, name: str) -> str:
    """The file's text without a line end at its end, which editors add."""
    # As in DirectoryConfigProvider, a name must not lead out of the directory.
    if not name or name in (".", "..") or "/" in name or os.sep in name:
        raise LookupError(f"{name} is not a file name")
    try:
        content = _content(Path(directory) / name).decode("utf-8")
    except OSError as error:
        raise LookupError(
            f"the file {name} in {directory} cannot be read: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise LookupError(f"the file {name} in {directory} is not UTF-8 text") from None
    return re.sub(r"\r?\n\Z", "", content)
