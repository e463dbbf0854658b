"""Foreign text, as it is shown to a person.

Names of groups, topics and hosts are foreign: a name must not steer a terminal, look like a
separate line, or fill a screen. Values whose names sound like secrets are not shown.
"""

import re
import unicodedata

HIDDEN = "[hidden]"
SENSITIVE = (
    "passw|passphrase|secret|token|credential|private|keystore[._-]key|api[._-]?key|user[._-]?info"
)
_SECRET_NAME = re.compile(f"{SENSITIVE}|jaas", re.IGNORECASE)


def printable(text: str) -> str:
    """The text with control and formatting characters escaped."""
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if _steers(c) else c for c in text)


def names_secret(name: str) -> bool:
    """True for a key or a field whose value is likely to be a secret."""
    return _SECRET_NAME.search(name) is not None


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and end with `…` in between, `most` characters in all."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def _steers(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
