"""Standard output and standard error that stop no command: closed, full, or without a reader."""

import io
import os
import select
import sys
from typing import IO, Any


class _Descriptor(io.FileIO):
    """A file descriptor that drops what it cannot write. `failure` is the first reason."""

    failure: OSError | None = None

    def write(self, data: Any) -> int | None:  # type: ignore[override]  # typeshed's bases differ
        """Write the bytes, or drop them."""
        try:
            # None from a pipe that another process made non-blocking, and that is full.
            while (written := super().write(data)) is None:
                select.select((), (self,), ())
            return written
        except OSError as error:
            self.failure = self.failure or error
            return len(data)


class StandardStream(io.TextIOWrapper):
    """Writes where `original` writes, and fails neither now nor when Python flushes at its end.

    What cannot be written is dropped; `failure` says why, and is None where all was written.
    """

    def __init__(self, original: io.TextIOWrapper) -> None:
        self._descriptor = _Descriptor(original.fileno(), "w", closefd=False)
        super().__init__(
            io.BufferedWriter(self._descriptor),
            original.encoding,
            original.errors,
            # With PYTHONUNBUFFERED each write goes through at once; whole lines do here.
            line_buffering=original.line_buffering or original.write_through,
        )

    @property
    def failure(self) -> OSError | None:
        """The first error of the system."""
        return self._descriptor.failure


def write_failure(stream: IO[str]) -> OSError | None:
    """Return why `stream` could not be written; None where it could, or fails by itself."""
    return stream.failure if isinstance(stream, StandardStream) else None


def keep_standard_streams() -> None:
    """Let this process print whatever became of its standard streams."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed. The next socket would get its number, and Java would write into that.
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 (it stays open)
        if mode == "w":
            setattr(sys, name, StandardStream(getattr(sys, name)))
