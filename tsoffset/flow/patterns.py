"""Lists of regular expressions as MirrorMaker 2 reads them.

Its lists (`groups`, `topics` and their excludes) are split at commas, joined with `|` and matched
against the whole name (MirrorUtils.compilePatternList). They are written for Java. Parts that Java
and Python read differently are refused, never guessed. (One exception: `.` means any character but
\\n here; Java's excludes further line ends, which no topic name can contain.)
"""

import re
import warnings
from collections.abc import Sequence

# A dot is part of a literal name, too.
_NAME = re.compile(r"(?:[\w.-]|\\[.-])+")
_QUANTIFIER = re.compile(r"\{[0-9]+(,[0-9]*)?\}")

# Escapes that Python does not have, or that have another meaning there.
_JAVA_ESCAPES = {
    "p": r"the property class \p{...}",
    "P": r"the property class \P{...}",
    "Q": r"the quotation \Q...\E",
    "E": r"the quotation \Q...\E",
    "h": r"\h",
    "H": r"\H",
    "v": r"\v",
    "V": r"\V",
    "R": r"\R",
    "X": r"\X",
    "G": r"\G",
    "z": r"\z",
    "Z": r"\Z",
    "k": r"the named reference \k<...>",
}


class InvalidPattern(ValueError):
    """An unusable list of regular expressions; the text says why and what to write."""


def split_list(text: str) -> tuple[str, ...]:
    """Split a value at its commas as Kafka does (ConfigDef, type LIST); blank means empty."""
    stripped = text.strip()
    return tuple(part.strip() for part in stripped.split(",")) if stripped else ()


def compile_list(patterns: Sequence[str]) -> re.Pattern[str] | None:
    """One expression that matches what any of `patterns` matches; None for an empty list.

    An empty list matches nothing, as in MirrorMaker 2. Use it with `fullmatch`. Raises
    InvalidPattern, also for features that only Java's regular expressions have.
    """
    if not patterns:
        return None
    joined = "|".join(patterns)
    _refuse_java_only(joined)
    try:
        with warnings.catch_warnings():
            # Java reads "--" and "~~" in a class literally, and so does Python for now.
            warnings.simplefilter("ignore", FutureWarning)
            # Java's \d, \w, \s, \b and (?i) are those of ASCII.
            return re.compile(joined, re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise InvalidPattern(_reason(str(error))) from None


def matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    """True if `pattern` matches the whole `name`; None matches nothing."""
    return pattern is not None and pattern.fullmatch(name) is not None


def name_written(pattern: str) -> str | None:
    """The name that a pattern matches literally, its dots escaped or not; None for an
    expression."""
    return pattern.replace("\\", "") if _NAME.fullmatch(pattern) else None


def _refuse_java_only(joined: str) -> None:
    """Raise InvalidPattern if Python would silently read `joined` differently from Java."""
    class_start: int | None = None
    position = 0
    while position < len(joined):
        character = joined[position]
        if character == "\\":
            java_only = _JAVA_ESCAPES.get(joined[position + 1 : position + 2])
            if java_only is not None:
                raise InvalidPattern(
                    f"{java_only} works only in Java; write the characters themselves"
                )
            position += 2
            continue
        if class_start is not None:
            if character == "[":
                raise InvalidPattern(
                    r"a class inside a class, [a[b]], works only in Java; write one class, or \["
                )
            if joined.startswith("&&", position):
                raise InvalidPattern(
                    "the intersection [a&&b] of classes works only in Java; write one class"
                )
            # A bracket right after the opening one (or its ^) is literal.
            if character == "]" and position > class_start:
                class_start = None
        elif character == "[":
            class_start = position + 1
            if joined.startswith("^", class_start):
                class_start += 1
                position += 1
        elif character == "{":
            quantifier = _QUANTIFIER.match(joined, position)
            if quantifier is None:
                raise InvalidPattern(
                    "a { without a quantifier; a comma splits the list, so {2,3} cannot be"
                    r" written here; repeat with ? or write \{"
                )
            position = quantifier.end()
            continue
        position += 1


def _reason(error: str) -> str:
    if error.startswith("global flags not at the start"):
        return "a flag like (?i) may only begin the whole list; write (?i:...) elsewhere"
    if error.startswith("unknown extension ?<"):
        return "a named group is written (?P<name>...) here, or plainly (...)"
    if error.startswith("nothing to repeat at position 0"):
        return "nothing to repeat; this is a regular expression, so everything is .*"
    return f"invalid regular expression: {error}"
