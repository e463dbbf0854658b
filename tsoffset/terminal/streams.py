"""Standard streams that stop no command, even if they are closed, full, or without a reader."""

import io
import os
import select
import sys
from typing import IO, Any


class _Descriptor(io.FileIO):
    """A file descriptor that drops what it cannot write. `failure` is the first error."""

    failure: OSError | None = None

    def write(self, data: Any) -> int | None:  # type: ignore[override]  # typeshed's bases differ
        try:
            # A full pipe that another process made non-blocking returns None.
            while (written := super().write(data)) is None:
                select.select((), (self,), ())
            return written
        except OSError as error:
            self.failure = self.failure or error
            return len(data)


class StandardStream(io.TextIOWrapper):
    """Writes to the stream of `original`, and never fails, also not when Python flushes at its end.

    What cannot be written is dropped; `failure` is the first error, None if all was written.
    """

    def __init__(self, original: io.TextIOWrapper) -> None:
        self._descriptor = _Descriptor(original.fileno(), "w", closefd=False)
        super().__init__(
            io.BufferedWriter(self._descriptor),
            original.encoding,
            original.errors,
            # PYTHONUNBUFFERED writes through at once; this stream writes whole lines.
            line_buffering=original.line_buffering or original.write_through,
        )

    @property
    def failure(self) -> OSError | None:
        return self._descriptor.failure


def write_failure(stream: IO[str]) -> OSError | None:
    """Why `stream` could not be written; None if it could, or is another kind of stream."""
    return stream.failure if isinstance(stream, StandardStream) else None


def keep_standard_streams() -> None:
    """Replace the standard streams, so that printing never fails."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It is closed. The next socket would get its number, and Java would write to it.
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 (it stays open)
        if mode == "w":
            setattr(sys, name, StandardStream(getattr(sys, name)))
