"""Requests and responses of kafka-python from plain values, and their bytes."""

import struct
from typing import Any


def message(kind: Any, /, **values: Any) -> Any:
    """A message of the library; where it has structs, the values are dictionaries."""
    structs = kind.fields
    for name, value in values.items():
        if isinstance(value, list) and structs[name].is_struct_array():
            made = structs[name].data_class
            values[name] = [message(made, **it) if isinstance(it, dict) else it for it in value]
    return kind(**values)


def request_frame(
    kind: Any, version: int, number: int, client: str = "client", **values: Any
) -> bytes:
    request = message(kind, version=version, **values)
    request.with_header(correlation_id=number, client_id=client)
    return bytes(request.encode(framed=True, header=True))


def response_body(
    kind: Any, version: int, number: int, *, flexible: bool = True, **values: Any
) -> bytes:
    """A response behind its frame's size; the header of a flexible one ends with its tags."""
    encoded = message(kind, version=version, **values).encode(version=version)
    return struct.pack(">i", number) + (b"\0" if flexible else b"") + bytes(encoded)
