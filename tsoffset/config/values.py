"""From text to values. Each reader raises ValueError with a sentence of what is allowed.

The texts never repeat the value: it may have come out of a `${...}` and be secret.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from tsoffset.flow.patterns import split_list
from tsoffset.model import Isolation
from tsoffset.records import OffsetHeader

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_ALIAS = re.compile(r"(?!.*->)[^\s,]+")
_NAME_PART = re.compile(r"[0-9A-Za-z._-]+")
_ADDRESS = re.compile(
    r"(?:[A-Za-z_]+://)?"
    r"(?P<host>[0-9A-Za-z_](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?|\[[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?\])"
    r":(?P<port>[0-9]{1,5})"
)
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_HOST = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_.-]*[0-9A-Za-z_])?")
_TOKEN = re.compile(r"[0-9A-Za-z._~+/-]{16,}=*")
# Of examples/kubernetes/.
_PLACEHOLDER = re.compile(r"change[._-]?me", re.IGNORECASE)
_MOST_CLUSTERS = 100
INT32_MAX = 2**31 - 1
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


def text(value: str) -> str:
    """The value without blanks around it; it must not be empty."""
    stripped = value.strip()
    if not stripped:
        raise ValueError("must not be empty")
    return stripped


def name_part(value: str) -> str:
    """Text that may be part of a topic's name."""
    stripped = value.strip()
    if not _NAME_PART.fullmatch(stripped):
        raise ValueError("must be made of letters, digits, `.`, `_` and `-`, as topic names are")
    return stripped


def alias(value: str) -> str:
    """The name of a cluster, which stands in keys and before the names of topics."""
    stripped = value.strip()
    if not _ALIAS.fullmatch(stripped):
        raise ValueError("must be a name without blanks, commas and arrows")
    return stripped


def aliases(value: str) -> tuple[str, ...]:
    """A list of names of clusters, at least one."""
    found = tuple(alias(item) for item in split_list(value))
    if not found:
        raise ValueError("must list the names of the clusters")
    if len(found) > _MOST_CLUSTERS:
        # Each pair of them may be a flow.
        raise ValueError(f"must list {_MOST_CLUSTERS} clusters at most; give others another file")
    return found


def names(value: str) -> tuple[str, ...]:
    """A list with commas; empty text is an empty list."""
    return split_list(value)


def boolean(value: str) -> bool:
    """`true` or `false`, in any case."""
    match value.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("must be true or false")


def integer(least: int, most: int = INT32_MAX) -> Callable[[str], int]:
    """A reader of decimal integers from `least` to `most`."""

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


def one_of(*allowed: str) -> Callable[[str], str]:
    """A reader of one of a few words, in any case."""

    def read(value: str) -> str:
        if (word := value.strip().lower()) in allowed:
            return word
        raise ValueError(f"must be {' or '.join(allowed)}")

    return read


def word_of(*allowed: str) -> Callable[[str], str]:
    """A reader of one of a few words, in any case, which gives the word as it is listed."""

    def read(value: str) -> str:
        for word in allowed:
            if word.lower() == value.strip().lower():
                return word
        raise ValueError(f"must be {', '.join(allowed[:-1])} or {allowed[-1]}")

    return read


def word_or_nothing(word: str) -> Callable[[str], str]:
    """A reader of one word, in any case, or of empty text."""

    def read(value: str) -> str:
        if (found := value.strip().lower()) in (word, ""):
            return found
        raise ValueError(f"must be {word}, or empty")

    return read


def number(least: float, most: float) -> Callable[[str], float]:
    """A reader of decimal numbers from `least` to `most`."""

    def read(value: str) -> float:
        stripped = value.strip()
        if _NUMBER.fullmatch(stripped) and least <= float(stripped) <= most:
            return float(stripped)
        raise ValueError(f"must be a number from {least:g} to {most:g}")

    return read


def tls_versions(value: str) -> str:
    """Versions of TLS, of which those before 1.2 are left out as by Java 17."""
    listed = split_list(value)
    if not {*listed} <= {"TLSv1", "TLSv1.1", *TLS_VERSIONS} or not {*listed} & {*TLS_VERSIONS}:
        raise ValueError(f"must be {' or '.join(TLS_VERSIONS)}, or both")
    return ",".join(version for version in TLS_VERSIONS if version in listed)


def token_address(value: str) -> str:
    """An http or https address, or a file's."""
    address = value.strip()
    if re.fullmatch(r"(?:https?://[^\s/]+(?:/\S*)?|file:/\S.*)", address) and _has_port(address):
        return address
    raise ValueError("must be an https address, or file: and a path from the root on")


def _has_port(address: str) -> bool:
    """Whether the port is one, or there is none."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def match(value: str) -> frozenset[str]:
    """What must be equal for two records to be copies of each other.

    The time lookup and the twin test rest on equal timestamps, and a timestamp alone tells
    no record from another of its millisecond.
    """
    words = frozenset(word.lower() for word in split_list(value))
    if "timestamp" in words and words & {"key", "value"} and words <= {"timestamp", "key", "value"}:
        return words
    raise ValueError("must be timestamp, key, value; or timestamp, key; or timestamp, value")


def offset_header(value: str) -> OffsetHeader:
    """`NAME`, `NAME:binary` or `NAME:text`; a name may hold colons itself."""
    name, colon, form = text(value).rpartition(":")
    if not colon or form not in ("binary", "text"):
        name, form = text(value), "binary"
    if not name:
        raise ValueError("must be NAME, NAME:binary or NAME:text")
    return OffsetHeader(name, text=form == "text")


def as_text(read: Callable[[str], object]) -> Callable[[str], str]:
    """A reader that checks as `read` does and gives the text, for what is handed on as text."""

    def checked(value: str) -> str:
        read(value)
        return value.strip()

    return checked


def isolation(value: str) -> Isolation:
    """One of Kafka's two isolation levels."""
    return Isolation(one_of(*Isolation)(value))


def addresses(value: str) -> tuple[str, ...]:
    """A list of `host:port` (IPv6 in brackets), as `bootstrap.servers` holds them.

    A leading `SSL://` or the like is dropped (`security.protocol` decides), and empty items are
    passed over, as Kafka does.
    """
    found = []
    for item in filter(None, split_list(value)):
        address = _ADDRESS.fullmatch(item)
        if address is None or not 1 <= int(address["port"]) <= 65535:
            raise ValueError("must be a list of host:port with ports from 1 to 65535")
        found.append(f"{address['host']}:{address['port']}")
    if not found:
        raise ValueError("must name at least one host:port")
    return tuple(dict.fromkeys(found))


def listeners(value: str) -> tuple[str, ...]:
    """A list of `http://host:port` or `https://host:port`, as Connect's; empty text is none."""
    found = split_list(value)
    if all(_is_url(item) and urlsplit(item).port is not None for item in found):
        return found
    raise ValueError("must be a list of http://host:port or https://host:port")


def hosts(value: str) -> tuple[str, ...]:
    """A list of host names without port, or `*`."""
    found = split_list(value)
    if all(item == "*" or _HOST.fullmatch(item) for item in found):
        return found
    raise ValueError("must be a list of host names without scheme and port, or *")


def urls(value: str) -> tuple[str, ...]:
    """A list of http or https addresses, without user and password."""
    found = split_list(value)
    if all(_is_url(item) and "@" not in urlsplit(item).netloc for item in found):
        return found
    raise ValueError("must be a list of http or https addresses without user and password")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != -1
    except ValueError:
        return False


def token(value: str) -> str:
    """A bearer token (RFC 6750) that cannot be guessed by trying."""
    stripped = value.strip()
    if _PLACEHOLDER.match(stripped):
        raise ValueError("is the placeholder of an example, which everybody knows; make one up")
    if _TOKEN.fullmatch(stripped):
        return stripped
    raise ValueError("must be 16 letters, digits and -._~+/= at least")
