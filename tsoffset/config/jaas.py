"""`sasl.jaas.config`: a login module with its options, as text and as a value.

The grammar is that of Kafka's JaasConfig, with the words, quoted texts and comments of Java's
StreamTokenizer: `Module required option="value" other=word;`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?P<blank>[\s\x00-\x20]+|//[^\r\n]*|/\*(?:(?!\*/).)*+(?:\*/)?)"
    r"|(?P<quote>[\"'])(?P<quoted>(?:\\[^\r\n]|(?!(?P=quote))[^\\\r\n])*)(?P<close>(?P=quote))?"
    r"|(?P<word>[A-Za-z0-9_$.\xa0-\U0010ffff-]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|\\(?P<letter>.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


@dataclass(frozen=True, slots=True)
class LoginModule:
    name: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    column: int
    is_text: bool


def login_module(text: str) -> LoginModule:
    """The login module of the text. Raises ValueError with a sentence that says where the text is
    wrong, without any part of it."""
    tokens = _tokens(text)
    end = _Token("", len(text) + 1, is_text=False)
    module = _text(next(tokens, end), "the class of a login module")
    flag = next(tokens, end)
    if _text(flag, "a flag such as `required`").lower() not in _FLAGS:
        raise ValueError(f"needs `required` after the login module, at column {flag.column}")
    options: dict[str, str] = {}
    while (token := next(tokens, end)).is_text:
        if next(tokens, end).text != "=":
            raise ValueError(f"has an option without a value at column {token.column}")
        options[token.text] = _text(next(tokens, end), "an option's value")
    if token.text != ";":
        raise ValueError(
            f"must end in a semicolon, or has an extra character at column {token.column}"
        )
    if (further := next(tokens, None)) is not None:
        raise ValueError(f"must name one login module; another begins at column {further.column}")
    return LoginModule(module, options)


def jaas_text(module: str, options: Mapping[str, str]) -> str:
    quoted = str.maketrans({"\\": "\\\\", '"': '\\"'})
    written = "".join(f' {name}="{text.translate(quoted)}"' for name, text in options.items())
    return f"{module} required{written};"


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        column = match.start() + 1
        if match["quote"]:
            if match["close"] is None:
                raise ValueError(f"has an unclosed quotation mark at column {column}")
            yield _Token(_ESCAPE.sub(_unescape, match["quoted"]), column, is_text=True)
        elif match["word"]:
            yield _Token(match["word"], column, is_text=True)
        elif match["sign"]:
            yield _Token(match["sign"], column, is_text=False)


def _unescape(match: re.Match[str]) -> str:
    if match["octal"]:
        return chr(int(match["octal"], 8))
    return _ESCAPED.get(match["letter"], match["letter"])


def _text(token: _Token, what: str) -> str:
    if not token.is_text:
        raise ValueError(f"needs {what} at column {token.column}")
    return token.text
