"""Keys, and the tables that declare them."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Field(NamedTuple):
    """A field of a settings class, which has the key's value and default."""

    of: type
    name: str


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A key.

    `read` turns its text into the value, or raises ValueError with a sentence that says what is
    allowed. `default` is the value if the key is absent, `shown_default` the same as text. `fills`
    is None if the value does not become one field.
    """

    name: str
    default: T
    read: Callable[[str], T]
    shown_default: str
    fills: Field | None


class Keys(dict[str, Key[Any]]):
    """The keys of one level by their names, in the order in which they are documented."""

    def declare(
        self,
        name: str,
        default: T | Field,
        read: Callable[[str], T],
        shown_default: str | None = None,
    ) -> Key[T]:
        """Add a key, and return it. If `default` is a Field, the key fills it and has its
        default."""
        assert name not in self, name
        fills = default if isinstance(default, Field) else None
        value: Any = default
        if fills is not None:
            value = next(field.default for field in fields(fills.of) if field.name == fills.name)
        shown = _default_text(value) if shown_default is None else shown_default
        key = Key(name, value, read, shown, fills)
        self[name] = key
        return key


def _default_text(default: object) -> str:
    match default:
        case None | ():
            return "none"
        case bool():
            return str(default).lower()
        case tuple():
            return ", ".join(default)
        case _:
            return str(default)
