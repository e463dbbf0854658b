"""Text that others have chosen, as a person is shown it.

Groups, topics and hosts are named by others: a name must not be able to steer a terminal, to look
like a line of its own, or to fill a screen.
"""

import unicodedata


def printable(text: str) -> str:
    """The text with control and formatting characters spelled out."""
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if _steers(c) else c for c in text)


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and end with `…` between, `most` characters in all."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def _steers(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
