"""Where state lies: a folder of this machine, or a place that others can reach, too.

Both keep small files by name. A folder and object stores replace one in one step: who reads has the
old one or the new. What cannot be done raises OSError, or pyarrow's
ArrowInvalid for a URI that is none.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol, TypeVar
from urllib.request import url2pathname

from pyarrow import fs

T = TypeVar("T")

# What is written lies under such a name until it is whole. A killed process leaves it.
_HALF = ".half"
_LEFT_SECONDS = 3600.0
# Libraries of object stores ask again for up to a quarter of an hour. No cycle waits so long.
ANSWERS_WITHIN_SECONDS = 30.0
S3_ANSWERS_WITHIN_SECONDS = 5.0


class Place(Protocol):
    """Files by name."""

    def path(self, name: str) -> Path | str:
        """The file as a person is told of it: without credentials."""

    def without_credentials(self, words: str) -> str:
        """The words of an error, which may quote the URI."""

    def read(self, name: str) -> bytes:
        """What the file holds. Raises FileNotFoundError where there is none."""

    def write(self, name: str, content: bytes, head: int) -> None:
        """Put the content in place of what the file held; nothing is written where it holds that
        already. Its first `head` bytes tell it from any other content."""


def place_of(directory: str | Path) -> Place:
    """A folder by its path, or what `pyarrow.fs.FileSystem.from_uri` takes. Asks nobody."""
    text = str(directory)
    if "://" not in text:
        return Folder(Path(text))
    here = text.removeprefix("file://")
    is_here = here != text and here.startswith("/")
    return Folder(Path(url2pathname(here))) if is_here else Store(text)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, which is made where it is first written to."""

    folder: Path

    def path(self, name: str) -> Path:
        """As `Place.path`."""
        return self.folder / name

    def without_credentials(self, words: str) -> str:
        """As `Place.without_credentials`: there are none."""
        return words

    def read(self, name: str) -> bytes:
        """As `Place.read`."""
        return self.path(name).read_bytes()

    def write(self, name: str, content: bytes, head: int) -> None:
        """As `Place.write`."""
        path = self.path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep(name)
        # Reading it all is cheap here, and mends a file that was damaged.
        if path.exists() and path.read_bytes() == content:
            return
        # A name of its own, since process numbers repeat: each container has a number 1. It
        # is made for this user alone: who could write to it could say where groups resume.
        with NamedTemporaryFile(
            dir=self.folder, prefix=f"{name}.", suffix=_HALF, delete=False
        ) as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except OSError:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise

    def _sweep(self, name: str) -> None:
        for half in self.folder.glob(f"{name}.*{_HALF}"):
            with suppress(OSError):
                if time.time() - half.stat().st_mtime > _LEFT_SECONDS:
                    half.unlink()


@dataclass(frozen=True, slots=True)
class Store:
    """A file system that pyarrow knows by its URI; a file is an object, put as a whole."""

    uri: str

    def path(self, name: str) -> str:
        """As `Place.path`."""
        scheme, _, rest = self.uri.partition("://")
        # A secret that was not quoted may hold anything, but for the last of these.
        place = re.split("[?#]", rest.rpartition("@")[2])[0]
        return f"{scheme}://{place.rstrip('/')}/{name}"

    def without_credentials(self, words: str) -> str:
        """As `Place.without_credentials`."""
        credentials = self.uri.partition("://")[2].rpartition("@")[0]
        return words.replace(credentials, "...") if credentials else words

    def read(self, name: str) -> bytes:
        """As `Place.read`."""

        def whole() -> bytes:
            store, folder = _opened(self.uri)
            with store.open_input_file(f"{folder}/{name}") as file:
                return bytes(file.read())

        return _in_time(whole)

    def write(self, name: str, content: bytes, head: int) -> None:
        """As `Place.write`. Of what is there only the length and the head are read."""

        def put() -> None:
            store, folder = _opened(self.uri)
            path = f"{folder}/{name}"
            with suppress(FileNotFoundError), store.open_input_file(path) as file:
                if file.size() == len(content) and file.read(head) == content[:head]:
                    return
            with store.open_output_stream(path, compression=None) as file:
                file.write(content)

        _in_time(put)


@cache
def _opened(uri: str) -> tuple[fs.FileSystem, str]:
    store, folder = fs.FileSystem.from_uri(uri)
    if store.type_name == "s3":
        # A URI cannot say how long it may take, and a process waits at its end for what is under
        # way.
        make, (options,) = store.__reduce__()
        limits = dict.fromkeys(("connect_timeout", "request_timeout"), S3_ANSWERS_WITHIN_SECONDS)
        retry = fs.AwsStandardS3RetryStrategy(max_attempts=2)
        store = make({**options, **limits, "retry_strategy": retry})
    return store, folder.rstrip("/")


def _in_time(work: Callable[[], T]) -> T:
    """What `work` returns. Raises TimeoutError where that takes too long; it may still be done
    later, which at worst puts an older state in place of a newer one."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcome.result(ANSWERS_WITHIN_SECONDS)
    except TimeoutError as error:
        if outcome.done():
            raise
        raise TimeoutError(f"no answer within {ANSWERS_WITHIN_SECONDS:.0f} s") from error
