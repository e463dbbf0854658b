"""A Java server that is configured by a properties file."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import javaproperties

from tsoffset.lab.embedded.jars import KAFKA_VERSION
from tsoffset.lab.embedded.process import JavaProcess


class Server(JavaProcess, ABC):
    """The common part of a broker and MirrorMaker 2.

    All its files are in `directory`. Without one, a temporary folder is made, which the end of the
    `with` block removes unless an exception ended the block: then the log may be needed.
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
        """Starts nothing.

        `properties_path` is an existing file; without it, `_properties` is written into the folder
        at each start.
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

        Raises `StartFailed`, `JavaMissing`, `JavaTooOld` or `JarsUnavailable`; nothing keeps
        running then.
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
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop it; remove a temporary folder unless there is an exception."""
        self.stop()
        if self._temporary and kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    @abstractmethod
    def _properties(self) -> Mapping[str, str]:
        """The content of the properties file."""

    def _prepare(self) -> None:
        """Preparations for the start, after the properties file was written."""

    @abstractmethod
    def _missing(self) -> str | None:
        """What it lacks to be ready; None if it is ready."""


def write_private(path: Path, content: str | bytes) -> Path:
    """Write a file that only its owner can read, since it may have secrets; returns its path."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
