"""Where state and history are stored: a folder of this machine, or an object store by its URI.

Both store files by name. A folder and object stores replace a file in one step: a reader gets the
old file or the new one. A failure raises OSError, or pyarrow's ArrowInvalid for an invalid URI.
"""

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol, TypeVar
from urllib.request import url2pathname

import pyarrow as pa
from pyarrow import fs

from tsoffset.threads import in_thread

T = TypeVar("T")
_NO_TEXT = re.compile("[\ud800-\udfff]")

UNREACHABLE = (OSError, pa.ArrowException)
"""What a store raises for a failure."""

# A file has this suffix until it is complete. A killed process leaves it behind.
_HALF = ".half"
_LEFT_SECONDS = 3600.0
# Libraries of object stores retry for up to a quarter of an hour. No cycle waits that long.
ANSWERS_WITHIN_SECONDS = 30.0
_HUNG_SECONDS = 1200.0
S3_ANSWERS_WITHIN_SECONDS = 5.0
# In these a folder has to be created first; object stores accept any name.
_WITH_FOLDERS = ("hdfs", "local", "mock")


class Store(Protocol):
    """Files by name."""

    def path(self, name: str) -> Path | str:
        """The file's name for messages, without credentials."""

    def without_credentials(self, words: str) -> str:
        """The text of an error, which may quote the URI."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError if the file does not exist."""

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        """Replace the file's content, unless it is the same already: contents of one length are the
        same if their first `head` bytes are. With `head=None` the file is new."""

    def subfolder(self, *names: str) -> "Store":
        """A folder in it, created with its first file."""

    def names(self) -> list[str]:
        """The names of its complete files and its folders, sorted; none if it does not exist."""

    def open(self, name: str) -> pa.NativeFile:
        """A file to read parts of. Raises FileNotFoundError if it does not exist."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""

    def sweep(self) -> None:
        """Remove incomplete files of killed processes after an hour."""


def store_at(directory: str | Path) -> Store:
    """A folder by its path, or a URI that `pyarrow.fs.FileSystem.from_uri` accepts. Does no I/O."""
    text = str(directory)
    if "://" not in text:
        return Folder(Path(text))
    here = text.removeprefix("file://")
    is_here = here != text and here.startswith("/")
    return Folder(Path(url2pathname(here))) if is_here else ObjectStore(text)


def in_words(store: Store, error: BaseException) -> str:
    """What went wrong with a store, in one line and without credentials."""
    words = error.strerror if isinstance(error, OSError) else None
    return store.without_credentials((words or str(error)).partition("\n")[0])


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, which is created when it is first written to."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def without_credentials(self, words: str) -> str:
        return words

    def read(self, name: str) -> bytes:
        return _regular(self.path(name)).read_bytes()

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        path = self.path(name)
        self._make()
        if head is not None:
            self._sweep(f".{name}.*{_HALF}")
            # Reading all of it is cheap here, and repairs a damaged file.
            if path.is_file() and path.read_bytes() == content:
                return
        # A unique name, since process numbers repeat: each container has a number 1. The file is
        # for the folder's owner, and for users who may write there: whoever can write to it can say
        # where groups resume. Spark and others read no file whose name begins with a dot.
        with NamedTemporaryFile(
            dir=self.folder, prefix=f".{name}.", suffix=_HALF, delete=False
        ) as file:
            try:
                _give_to_owner_of(self.folder, file.fileno())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
                sync_folder(self.folder)
            except (OSError, KeyboardInterrupt):
                with suppress(OSError):
                    Path(file.name).unlink()
                raise

    def _make(self) -> None:
        """Create the folder and its parents, each for the owner of its parent folder."""
        missing = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir()
                if os.geteuid() == 0:
                    above = folder.parent.stat()
                    os.chown(folder, above.st_uid, above.st_gid)

    def subfolder(self, *names: str) -> "Folder":
        return Folder(self.folder.joinpath(*names))

    def names(self) -> list[str]:
        try:
            found = [file.name for file in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        # A name that is no text is foreign; Arrow could not open it, nor a message show it.
        ours = (name for name in found if not _NO_TEXT.search(name))
        return sorted(name for name in ours if not name.endswith(_HALF))

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(str(_regular(self.path(name))))

    def remove(self, name: str) -> None:
        path = self.path(name)
        with suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def sweep(self) -> None:
        self._sweep(f"*{_HALF}")

    def _sweep(self, pattern: str) -> None:
        for half in self.folder.glob(pattern):
            with suppress(OSError):
                if time.time() - half.stat().st_mtime > _LEFT_SECONDS:
                    half.unlink()


def is_missing(folder: Path) -> bool:
    """True if there is no such folder; False also if this user may not look."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _regular(path: Path) -> Path:
    """The path. Raises OSError for a pipe or a device, of which reading might never end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "this is no regular file")
    return path


def sync_folder(folder: Path) -> None:
    """Write the folder's entries to the disk: fsync of a file does not include its name."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems cannot do that, and keep names by themselves.
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def _give_to_owner_of(folder: Path, file: int) -> None:
    """Let the folder's user read and write the new file: an administrator's command must not lock a
    service of another user out of its own files."""
    above = folder.stat()
    if os.geteuid() == 0:
        os.fchown(file, above.st_uid, above.st_gid)
    if above.st_mode & stat.S_IWGRP and os.fstat(file).st_gid == above.st_gid:
        os.fchmod(file, 0o660)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A file system that pyarrow knows by its URI; a file is an object, written as a whole."""

    uri: str = field(repr=False)
    inside: str = ""

    def path(self, name: str) -> str:
        scheme, _, rest = self.uri.partition("://")
        # The last @ ends the credentials: an unquoted secret may contain other ones.
        address = re.split("[?#]", rest.rpartition("@")[2])[0]
        return f"{scheme}://{address.rstrip('/')}/{self.inside}{name}"

    def without_credentials(self, words: str) -> str:
        credentials = self.uri.partition("://")[2].rpartition("@")[0]
        return words.replace(credentials, "...") if credentials else words

    def read(self, name: str) -> bytes:
        def whole() -> bytes:
            with self.open(name) as file:
                return bytes(file.read())

        return _in_time(whole)

    def write(self, name: str, content: bytes, head: int | None = None) -> None:
        """Reads only the length and the head of the existing file."""

        def write_object() -> None:
            if head is not None:
                with suppress(FileNotFoundError), self.open(name) as file:
                    if file.size() == len(content) and file.read(head) == content[:head]:
                        return
            filesystem, folder = self._filesystem()
            if self.inside and filesystem.type_name in _WITH_FOLDERS:
                filesystem.create_dir(folder, recursive=True)
            with filesystem.open_output_stream(f"{folder}/{name}", compression=None) as file:
                file.write(content)

        _in_time(write_object, self.path(name))

    def subfolder(self, *names: str) -> "ObjectStore":
        return ObjectStore(self.uri, self.inside + "".join(f"{name}/" for name in names))

    def names(self) -> list[str]:
        """By one listing."""

        def list_names() -> list[str]:
            filesystem, folder = self._filesystem()
            files = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
            return sorted(file.base_name for file in files)

        return _in_time(list_names)

    def open(self, name: str) -> pa.NativeFile:
        filesystem, folder = self._filesystem()
        return filesystem.open_input_file(f"{folder}/{name}")

    def remove(self, name: str) -> None:
        def remove_object() -> None:
            filesystem, folder = self._filesystem()
            path = f"{folder}/{name}"
            with suppress(FileNotFoundError):
                if filesystem.get_file_info(path).type is fs.FileType.Directory:
                    filesystem.delete_dir(path)
                else:
                    filesystem.delete_file(path)

        _in_time(remove_object, self.path(name))

    def sweep(self) -> None:
        """Object stores have no incomplete files."""

    def _filesystem(self) -> tuple[fs.FileSystem, str]:
        filesystem, folder = _filesystem(self.uri)
        return filesystem, f"{folder}/{self.inside}".rstrip("/")


@cache
def _filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    filesystem, folder = fs.FileSystem.from_uri(uri)
    if filesystem.type_name == "s3":
        # A URI has no timeouts, and a process that ends waits for requests in flight.
        make, (options,) = filesystem.__reduce__()
        limits = dict.fromkeys(("connect_timeout", "request_timeout"), S3_ANSWERS_WITHIN_SECONDS)
        retry = fs.AwsStandardS3RetryStrategy(max_attempts=2)
        filesystem = make({**options, **limits, "retry_strategy": retry})
    return filesystem, folder.rstrip("/")


# The last change of each path, as long as it is under way, and when it began.
_changing: dict[str, tuple[Future[Any], float]] = {}


def _in_time(work: Callable[[], T], changes: str | None = None) -> T:
    """The result of `work`. Raises TimeoutError if that takes too long; it may still complete
    later, and undo a newer change of the same path. So a change of a path waits until the last one
    has ended, or counts as hung."""
    now = time.monotonic()
    for path, (last, began) in list(_changing.items()):
        if last.done() or now - began > _HUNG_SECONDS:
            _changing.pop(path, None)
        elif path == changes and wait([last], ANSWERS_WITHIN_SECONDS).not_done:
            raise TimeoutError("the last change is still under way")
    outcome = in_thread(work)
    if changes is not None:
        _changing[changes] = outcome, now
    try:
        return outcome.result(ANSWERS_WITHIN_SECONDS)
    except TimeoutError as error:
        if outcome.done():
            raise
        raise TimeoutError(f"no answer within {ANSWERS_WITHIN_SECONDS:.0f} s") from error
