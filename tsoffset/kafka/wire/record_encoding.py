"""Numbers, keys, values and headers inside the records of format 2."""


def varint(content: bytes | memoryview, position: int) -> tuple[int, int]:
    """The zigzag varint at `position`, and where it ends. Raises IndexError or ValueError."""
    byte = content[position]
    position += 1
    if byte >= 0x80:
        byte, position = rest_of_varint(content, position, byte)
    return (byte >> 1) ^ -(byte & 1), position


def rest_of_varint(content: bytes | memoryview, position: int, byte: int) -> tuple[int, int]:
    """A number, still zigzag, of which the first byte was read and more follow."""
    result = byte & 0x7F
    shift = 7
    while True:
        byte = content[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def nullable(content: bytes, position: int) -> tuple[bytes | None, int]:
    """The key or value at `position`, and where it ends."""
    size, position = varint(content, position)
    return (None, position) if size < 0 else (content[position : position + size], position + size)


def headers(content: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    """The headers of a record that ends at `end`, and where they end. Raises IndexError or
    ValueError."""
    count, position = varint(content, position)
    if count < 0:
        raise ValueError("a negative number of headers")
    found = []
    for _ in range(count):
        size, position = varint(content, position)
        # A negative size leads backwards, into an endless loop; a huge count reads everything
        # behind the record.
        if size < 0 or position > end:
            raise ValueError("a header without a name, or beyond its record")
        name = content[position : position + size]
        position += size
        size, position = varint(content, position)
        value = None
        if size >= 0:
            value = content[position : position + size]
            position += size
        # A name that is no UTF-8 still differs from other names.
        found.append((name.decode("utf-8", "backslashreplace"), value))
    return found, position
