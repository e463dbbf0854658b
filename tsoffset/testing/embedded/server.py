"""A Java program that is told by a properties file what to be, and serves until it is stopped."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import javaproperties

from tsoffset.testing.embedded.jars import KAFKA_VERSION
from tsoffset.testing.embedded.process import JavaProcess


class Server(JavaProcess, ABC):
    """What a broker and MirrorMaker 2 have in common.

    Everything lies in `directory`; without one a temporary folder is made, which the end of
    the `with` block removes unless an exception ended it: then the log may be wanted.
    """

    def __init__(
        self,
        main_class: str,
        name: str,
        directory: Path | None,
        *,
        properties_path: Path | None = None,
        java_options: Sequence[str],
        start_seconds: float,
        kafka_version: str = KAFKA_VERSION,
    ) -> None:
        """Prepare the program; nothing is started.

        `properties_path` is that of a file which is there; without one `_properties` is
        written into the folder at each start.
        """
        self._temporary = directory is None
        directory = directory or Path(tempfile.mkdtemp(prefix=f"tsoffset-{name}-"))
        directory.mkdir(parents=True, exist_ok=True)
        self._writes_properties = properties_path is None
        self.properties_path = (properties_path or directory / f"{name}.properties").absolute()
        self._start_seconds = start_seconds
        super().__init__(
            name,
            [main_class, str(self.properties_path)],
            directory=directory,
            java_options=java_options,
            kafka_version=kafka_version,
        )

    def start(self) -> Self:
        """Start it, and return it once it is ready.

        Raises `StartFailed`, `JavaMissing`, `JavaTooOld` or `JarsUnavailable`; nothing is
        left running then.
        """
        if self.running:
            return self
        if self._writes_properties:
            properties = javaproperties.dumps(self._properties(), timestamp=None)
            write_private(self.properties_path, properties)
        try:
            self._prepare()
            super().start()
            self.wait_until(self._missing, seconds=self._start_seconds, doing=f"start {self.name}")
        except BaseException:
            self.kill()
            raise
        return self

    def restart(self) -> Self:
        """Stop it if it runs, and start it again."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop it; remove a temporary folder unless an exception is on its way."""
        self.stop()
        if self._temporary and kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    @abstractmethod
    def _properties(self) -> Mapping[str, str]:
        """Return what the properties file is to hold."""

    def _prepare(self) -> None:
        """Do what is to be done before the start, with the properties file in its place."""

    @abstractmethod
    def _missing(self) -> str | None:
        """Return what it lacks to be ready; None if that is nothing."""


def write_private(path: Path, content: str | bytes) -> Path:
    """Write a file that only its owner can read, since it may hold secrets; return its path."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
