"""Lists of regular expressions as MirrorMaker 2 reads them.

Its lists (`groups`, `topics` and their excludes) are split at commas, joined with `|` and
matched against the whole name (MirrorUtils.compilePatternList). They are written for Java;
what Java and Python understand differently is refused here, never guessed. (One thing is
not: `.` stands for any character but \\n here; Java's leaves out further line ends, which no
topic's name can hold.)
"""

import re
import warnings
from collections.abc import Sequence

# A dot stands for itself, too.
_NAME = re.compile(r"(?:[\w.-]|\\[.-])+")
_QUANTIFIER = re.compile(r"\{[0-9]+(,[0-9]*)?\}")

# Escapes that Java knows and Python does not, or that mean something else there.
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
    """A list of regular expressions cannot be used; the text says why and what to write."""


def split_list(text: str) -> tuple[str, ...]:
    """Split a value at its commas as Kafka does (ConfigDef, type LIST); blank means empty."""
    stripped = text.strip()
    return tuple(part.strip() for part in stripped.split(",")) if stripped else ()


def compile_list(patterns: Sequence[str]) -> re.Pattern[str] | None:
    """One expression that matches what any of `patterns` matches; None for an empty list.

    An empty list matches nothing, as in MirrorMaker 2. Use it with `fullmatch`. Raises
    InvalidPattern, also for what only Java's regular expressions have.
    """
    if not patterns:
        return None
    joined = "|".join(patterns)
    _refuse_what_differs(joined)
    try:
        with warnings.catch_warnings():
            # Java takes "--" and "~~" in a class as they stand, and so does Python for now.
            warnings.simplefilter("ignore", FutureWarning)
            # Java's \d, \w, \s, \b and (?i) are those of ASCII.
            return re.compile(joined, re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise InvalidPattern(_explained(str(error))) from None


def matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    """True where `pattern` matches the whole `name`; None matches nothing."""
    return pattern is not None and pattern.fullmatch(name) is not None


def name_written(pattern: str) -> str | None:
    """The name that a pattern writes out, its dots escaped or not; None for an expression."""
    return pattern.replace("\\", "") if _NAME.fullmatch(pattern) else None


def _refuse_what_differs(joined: str) -> None:
    """Raise InvalidPattern where Python would read `joined` otherwise than Java, in silence."""
    class_start: int | None = None
    position = 0
    while position < len(joined):
        character = joined[position]
        if character == "\\":
            java_only = _JAVA_ESCAPES.get(joined[position + 1 : position + 2])
            if java_only is not None:
                raise InvalidPattern(
                    f"{java_only} is Java's alone; write the characters that are meant"
                )
            position += 2
            continue
        if class_start is not None:
            if character == "[":
                raise InvalidPattern(
                    r"a class inside a class, [a[b]], is Java's alone; write one class, or \["
                )
            if joined.startswith("&&", position):
                raise InvalidPattern(
                    "the intersection [a&&b] of classes is Java's alone; write one class"
                )
            # A bracket right after the opening one (or its ^) stands for itself.
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
                    "a { that begins no quantifier; a comma splits the list, so {2,3} cannot be"
                    r" written here; repeat with ? or write \{"
                )
            position = quantifier.end()
            continue
        position += 1


def _explained(error: str) -> str:
    if error.startswith("global flags not at the start"):
        return "a flag like (?i) may only begin the whole list; write (?i:...) elsewhere"
    if error.startswith("unknown extension ?<"):
        return "a named group is written (?P<name>...) here, or plainly (...)"
    if error.startswith("nothing to repeat at position 0"):
        return "nothing to repeat; this is a regular expression, so everything is .*"
    return f"invalid regular expression: {error}"
