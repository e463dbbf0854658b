"""Readers of values: a reader turns the text of a key into its value, and raises ValueError with a
sentence that says what is allowed. The sentence never repeats the text, which may be a secret.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from tsoffset.flow.patterns import split_list
from tsoffset.model import Isolation
from tsoffset.records import OffsetHeader

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_ADDRESS = re.compile(
    r"(?:[A-Za-z_]+://)?"
    r"(?P<host>[0-9A-Za-z_](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?|\[[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?\])"
    r":(?P<port>[0-9]{1,5})"
)
_HOST = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_.-]*[0-9A-Za-z_])?")
_TOKEN = re.compile(r"[0-9A-Za-z._~+/-]{16,}=*")
_FILE_ADDRESS = re.compile(r"file:/\S.*")
# The examples in examples/kubernetes/ contain it.
_PLACEHOLDER = re.compile(r"change[._-]?me", re.IGNORECASE)
_MOST_CLUSTERS = 100
INT32_MAX = 2**31 - 1
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


def text_matching(pattern: str, allowed: str) -> Callable[[str], str]:
    """A reader of text that matches a pattern as a whole, without blanks around it."""
    compiled = re.compile(pattern, re.DOTALL)

    def read(value: str) -> str:
        if compiled.fullmatch(stripped := value.strip()):
            return stripped
        raise ValueError(allowed)

    return read


text = text_matching(".+", "must not be empty")
# Part of a topic's name.
name_part = text_matching(
    "[0-9A-Za-z._-]+", "must be made of letters, digits, `.`, `_` and `-`, as topic names are"
)
# A cluster's name, which keys and remote topics begin with.
alias = text_matching(r"(?!.*->)[^\s,]+", "must be a name without spaces, commas and arrows")
# A list separated by commas; empty text is an empty list.
names = split_list


def aliases(value: str) -> tuple[str, ...]:
    found = tuple(alias(item) for item in split_list(value))
    if not found:
        raise ValueError("must list the names of the clusters")
    if len(found) > _MOST_CLUSTERS:
        # Each pair of clusters may be a flow.
        raise ValueError(f"must list {_MOST_CLUSTERS} clusters at most; give others another file")
    return found


def one_of(*allowed: str) -> Callable[[str], str]:
    """A reader of a few words, in any case; returns the word as in `allowed`."""
    words = {word.lower(): word for word in allowed}
    *others, last = (word or "empty" for word in allowed)

    def read(value: str) -> str:
        if (word := words.get(value.strip().lower())) is not None:
            return word
        raise ValueError(f"must be {', '.join(others)} or {last}" if others else f"must be {last}")

    return read


def boolean(value: str) -> bool:
    return one_of("true", "false")(value) == "true"


def isolation(value: str) -> Isolation:
    return Isolation(one_of(*Isolation)(value))


def integer(least: int, most: int = INT32_MAX) -> Callable[[str], int]:
    def read(value: str) -> int:
        stripped = value.strip()
        if _INTEGER.fullmatch(stripped) and least <= int(stripped) <= most:
            return int(stripped)
        raise ValueError(f"must be an integer from {least} to {most}")

    return read


def idle(value: str) -> int:
    """How long a connection may be idle: milliseconds, or -1 for ever."""
    if (number := integer(-1)(value)) == 0:
        raise ValueError("would end each connection before its answer; write -1 to keep them")
    return number


def number(least: float, most: float) -> Callable[[str], float]:
    def read(value: str) -> float:
        stripped = value.strip()
        if _NUMBER.fullmatch(stripped) and least <= float(stripped) <= most:
            return float(stripped)
        raise ValueError(f"must be a number from {least:g} to {most:g}")

    return read


def as_text(read: Callable[[str], object]) -> Callable[[str], str]:
    """A reader that accepts what `read` accepts, and returns the text."""

    def check(value: str) -> str:
        read(value)
        return value.strip()

    return check


def list_of(accepts: Callable[[str], bool], allowed: str) -> Callable[[str], tuple[str, ...]]:
    """A reader of a list of which `accepts` accepts every item; empty text is an empty list."""

    def read(value: str) -> tuple[str, ...]:
        found = split_list(value)
        if all(map(accepts, found)):
            return found
        raise ValueError(allowed)

    return read


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and not re.search(r"\s", text)
        return is_http and bool(parts.hostname) and parts.port != -1
    except ValueError:
        return False


listeners = list_of(
    lambda item: _is_url(item) and urlsplit(item).port is not None,
    "must be a list of http://host:port or https://host:port",
)
hosts = list_of(
    lambda item: item == "*" or _HOST.fullmatch(item) is not None,
    "must be a list of host names without scheme and port, or *",
)
urls = list_of(
    lambda item: _is_url(item) and "@" not in urlsplit(item).netloc,
    "must be a list of http or https addresses without user and password",
)


def addresses(value: str) -> tuple[str, ...]:
    """The `host:port` (IPv6 in brackets) of `bootstrap.servers`. As in Kafka, empty items and a
    leading `SSL://` or the like are ignored; `security.protocol` decides."""
    found = []
    for item in filter(None, split_list(value)):
        address = _ADDRESS.fullmatch(item)
        if address is None or not 1 <= int(address["port"]) <= 65535:
            raise ValueError("must be a list of host:port with ports from 1 to 65535")
        found.append(f"{address['host']}:{address['port']}")
    if not found:
        raise ValueError("must name at least one host:port")
    return tuple(dict.fromkeys(found))


def tls_versions(value: str) -> str:
    """A list of TLS versions; those before 1.2 are ignored, as on Java 17."""
    found = split_list(value)
    if not {*found} <= {"TLSv1", "TLSv1.1", *TLS_VERSIONS} or not {*found} & {*TLS_VERSIONS}:
        raise ValueError(f"must be {' or '.join(TLS_VERSIONS)}, or both")
    return ",".join(version for version in TLS_VERSIONS if version in found)


def token_address(value: str) -> str:
    address = value.strip()
    if _FILE_ADDRESS.fullmatch(address) or (_is_url(address) and urlsplit(address).port != 0):
        return address
    raise ValueError("must be an https address, or file: and an absolute path")


def match(value: str) -> frozenset[str]:
    """The parts that must be equal in a record and its copy. Lookups need the timestamp; alone it
    does not tell apart the records of one millisecond."""
    words = frozenset(word.lower() for word in split_list(value))
    if "timestamp" in words and words & {"key", "value"} and words <= {"timestamp", "key", "value"}:
        return words
    raise ValueError("must be timestamp, key, value; or timestamp, key; or timestamp, value")


def offset_header(value: str) -> OffsetHeader:
    """`NAME`, `NAME:binary` or `NAME:text`; a name may contain colons."""
    name, colon, form = text(value).rpartition(":")
    if not colon or form not in ("binary", "text"):
        name, form = text(value), "binary"
    if not name:
        raise ValueError("must be NAME, NAME:binary or NAME:text")
    return OffsetHeader(name, text=form == "text")


def token(value: str) -> str:
    """A bearer token (RFC 6750) that is too long to guess."""
    stripped = value.strip()
    if _PLACEHOLDER.match(stripped):
        raise ValueError("is the placeholder of an example, which everybody knows; choose your own")
    if _TOKEN.fullmatch(stripped):
        return stripped
    raise ValueError(
        "must have at least 16 characters: letters, digits, -._~+/, and = only at the end"
    )
