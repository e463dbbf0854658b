"""Where state and history lie: a folder of this machine, or a place that others can reach, too.

Both keep files by name. A folder and object stores replace one in one step: who reads has the
old one or the new. What cannot be done raises OSError, or pyarrow's
ArrowInvalid for a URI that is none.
"""

import errno
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol, TypeVar
from urllib.request import url2pathname

import pyarrow as pa
from pyarrow import fs

T = TypeVar("T")
_NO_TEXT = re.compile("[\ud800-\udfff]")

UNREACHABLE = (OSError, pa.ArrowException)
"""What a place raises for what cannot be done."""

# What is written lies under such a name until it is whole. A killed process leaves it.
_HALF = ".half"
_LEFT_SECONDS = 3600.0
# Libraries of object stores ask again for up to a quarter of an hour. No cycle waits so long.
ANSWERS_WITHIN_SECONDS = 30.0
S3_ANSWERS_WITHIN_SECONDS = 5.0
# The others, object stores, take a name with folders in it as it is.
_WITH_FOLDERS = ("hdfs", "local", "mock")


class Place(Protocol):
    """Files by name."""

    def path(self, name: str) -> Path | str:
        """The file as a person is told of it: without credentials."""

    def without_credentials(self, words: str) -> str:
        """The words of an error, which may quote the URI."""

    def read(self, name: str) -> bytes:
        """What the file holds. Raises FileNotFoundError where there is none."""

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        """Put the content in place of what the file held; nothing is written where it holds that
        already. Its first `head` bytes tell it from any other content; None: it is a new file."""

    def below(self, *names: str) -> "Place":
        """A folder in it, which is made where it is first written to."""

    def names(self) -> list[str]:
        """The names of its whole files and folders, in order; none where it is not there."""

    def open(self, name: str) -> pa.NativeFile:
        """A file to read parts of. Raises FileNotFoundError where there is none."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""

    def sweep(self) -> None:
        """Remove what killed processes left half written, once that is an hour old."""


def place_of(directory: str | Path) -> Place:
    """A folder by its path, or what `pyarrow.fs.FileSystem.from_uri` takes. Asks nobody."""
    text = str(directory)
    if "://" not in text:
        return Folder(Path(text))
    here = text.removeprefix("file://")
    is_here = here != text and here.startswith("/")
    return Folder(Path(url2pathname(here))) if is_here else Store(text)


def in_words(place: Place, error: BaseException) -> str:
    """What went wrong with a place, in one line and without credentials."""
    words = error.strerror if isinstance(error, OSError) else None
    return place.without_credentials((words or str(error)).partition("\n")[0])


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
        return _regular(self.path(name)).read_bytes()

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        """As `Place.write`."""
        path = self.path(name)
        self._make()
        if head is not None:
            self._sweep(f".{name}.*{_HALF}")
            # Reading it all is cheap here, and mends a file that was damaged.
            if path.is_file() and path.read_bytes() == content:
                return
        # A name of its own, since process numbers repeat: each container has a number 1. It
        # is for the folder's owner, and for who else may write there: who could write to it could
        # say where groups resume.
        # Spark, among others, reads no file whose name begins with a dot.
        with NamedTemporaryFile(
            dir=self.folder, prefix=f".{name}.", suffix=_HALF, delete=False
        ) as file:
            try:
                _give_to_owner_of(self.folder, file.fileno())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
                _keep_names(self.folder)
            except OSError:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise

    def _make(self) -> None:
        """The folder with its parents, each for the owner of the one that it is in."""
        missing = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir()
                if os.geteuid() == 0:
                    above = folder.parent.stat()
                    os.chown(folder, above.st_uid, above.st_gid)

    def below(self, *names: str) -> "Folder":
        """As `Place.below`."""
        return Folder(self.folder.joinpath(*names))

    def names(self) -> list[str]:
        """As `Place.names`."""
        try:
            found = [file.name for file in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        # A name that is no text is none of ours, and could neither be opened by Arrow nor be told.
        ours = (name for name in found if not _NO_TEXT.search(name))
        return sorted(name for name in ours if not name.endswith(_HALF))

    def open(self, name: str) -> pa.NativeFile:
        """As `Place.open`."""
        return pa.OSFile(str(_regular(self.path(name))))

    def remove(self, name: str) -> None:
        """As `Place.remove`."""
        path = self.path(name)
        with suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def sweep(self) -> None:
        """As `Place.sweep`."""
        self._sweep(f"*{_HALF}")

    def _sweep(self, pattern: str) -> None:
        for half in self.folder.glob(pattern):
            with suppress(OSError):
                if time.time() - half.stat().st_mtime > _LEFT_SECONDS:
                    half.unlink()


def _regular(path: Path) -> Path:
    """The path. Raises OSError where reading might have no end, as of a pipe or a device."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "this is no regular file")
    return path


def _keep_names(folder: Path) -> None:
    """Have the folder's names on the disk: what a file is called is in its folder, not in it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems cannot, and keep names by themselves.
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def _give_to_owner_of(folder: Path, file: int) -> None:
    """Let who works in the folder read and write the new file: an administrator's command must not
    lock a service of another user out of its own files."""
    above = folder.stat()
    if os.geteuid() == 0:
        os.fchown(file, above.st_uid, above.st_gid)
    if above.st_mode & stat.S_IWGRP and os.fstat(file).st_gid == above.st_gid:
        os.fchmod(file, 0o660)


@dataclass(frozen=True, slots=True)
class Store:
    """A file system that pyarrow knows by its URI; a file is an object, put as a whole."""

    uri: str = field(repr=False)
    inside: str = ""

    def path(self, name: str) -> str:
        """As `Place.path`."""
        scheme, _, rest = self.uri.partition("://")
        # A secret that was not quoted may hold anything, but for the last of these.
        place = re.split("[?#]", rest.rpartition("@")[2])[0]
        return f"{scheme}://{place.rstrip('/')}/{self.inside}{name}"

    def without_credentials(self, words: str) -> str:
        """As `Place.without_credentials`."""
        credentials = self.uri.partition("://")[2].rpartition("@")[0]
        return words.replace(credentials, "...") if credentials else words

    def read(self, name: str) -> bytes:
        """As `Place.read`."""

        def whole() -> bytes:
            with self.open(name) as file:
                return bytes(file.read())

        return _in_time(whole)

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        """As `Place.write`. Of what is there only the length and the head are read."""

        def put() -> None:
            if head is not None:
                with suppress(FileNotFoundError), self.open(name) as file:
                    if file.size() == len(content) and file.read(head) == content[:head]:
                        return
            store, folder = self._opened()
            if self.inside and store.type_name in _WITH_FOLDERS:
                store.create_dir(folder, recursive=True)
            with store.open_output_stream(f"{folder}/{name}", compression=None) as file:
                file.write(content)

        _in_time(put)

    def below(self, *names: str) -> "Store":
        """As `Place.below`."""
        return Store(self.uri, self.inside + "".join(f"{name}/" for name in names))

    def names(self) -> list[str]:
        """As `Place.names`, by one listing."""

        def listed() -> list[str]:
            store, folder = self._opened()
            files = store.get_file_info(fs.FileSelector(folder, allow_not_found=True))
            return sorted(file.base_name for file in files)

        return _in_time(listed)

    def open(self, name: str) -> pa.NativeFile:
        """As `Place.open`."""
        store, folder = self._opened()
        return store.open_input_file(f"{folder}/{name}")

    def remove(self, name: str) -> None:
        """As `Place.remove`."""

        def gone() -> None:
            store, folder = self._opened()
            path = f"{folder}/{name}"
            with suppress(FileNotFoundError):
                if store.get_file_info(path).type is fs.FileType.Directory:
                    store.delete_dir(path)
                else:
                    store.delete_file(path)

        _in_time(gone)

    def sweep(self) -> None:
        """As `Place.sweep`: there is nothing."""

    def _opened(self) -> tuple[fs.FileSystem, str]:
        store, folder = _opened(self.uri)
        return store, f"{folder}/{self.inside}".rstrip("/")


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
