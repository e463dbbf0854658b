"""Java processes that never outlive the Python process that started them.

Each child runs in its own session, so that Ctrl-C on the terminal reaches only the parent, which
then stops it in order. Children are stopped by their process id

- when a `with` block ends, normally or by an exception, Ctrl-C included;
- at the interpreter's exit (`atexit`), if they still run;
- by a watchdog process, if the parent ends in any other way: SIGTERM, SIGKILL, a crash.

No signal handler is installed: those belong to the program that uses this package.
"""

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

from tsoffset.errors import StartFailed
from tsoffset.java import find_java
from tsoffset.lab.embedded import watchdog
from tsoffset.lab.embedded.jars import KAFKA_VERSION, resolve_jars

GRACE_SECONDS = 20.0
EXIT_GRACE_SECONDS = 5.0

# Between two checks, so that they take little processor time.
_PAUSE_SECONDS = 0.05

_BASE_OPTIONS = (
    # For short-lived servers on few cores: the quick compiler and the serial collector start sooner
    # and use less memory than Java's defaults.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)

_LOG4J = """\
status = error
shutdownHook = disable
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c{1})%n%throwable
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.settings.name = org.apache.kafka.common.config
logger.settings.level = warn
logger.scan.name = org.reflections
logger.scan.level = error
"""


# Checked once per process: it takes a tenth of a second.
_jars = cache(resolve_jars)


class JavaProcess:
    """One Java program, with its output in a log file.

    `directory` must exist; the log is `directory/NAME.log`, and a restart appends to it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        java_options: Sequence[str] = (),
        kafka_version: str = KAFKA_VERSION,
    ) -> None:
        """Starts nothing. `command` is main class and arguments."""
        self.name = name
        self.directory = directory
        self.log_path = directory / f"{name}.log"
        """What the program writes about itself."""
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._command = tuple(command)
        self._java_options = tuple(java_options)
        self.kafka_version = kafka_version

    @property
    def pid(self) -> int | None:
        """None unless the program runs."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """None if it runs or never ran."""
        return None if self._process is None else self._process.poll()

    def start(self) -> Self:
        """Start the program, and return it; does not wait until it is ready.

        Raises `JavaMissing`, `JavaTooOld` or `JarsUnavailable`.
        """
        java = find_java()
        jars = _jars(version=self.kafka_version)
        logging = self.directory / "log4j2.properties"
        logging.write_text(_LOG4J)
        command = [
            str(java),
            *_BASE_OPTIONS,
            *self._java_options,
            f"-Dlog4j2.configurationFile={logging}",
            "-cp",
            f"{jars}/*",
            *self._command,
        ]
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._process = _start(command, log.fileno())
        return self

    def run(self, timeout_seconds: float) -> int:
        """Run the program to its end; returns its exit status.

        Raises subprocess.TimeoutExpired, after stopping it, if it takes too long.
        """
        self.start()
        assert self._process is not None
        try:
            return self._process.wait(timeout_seconds)
        finally:
            self.kill()

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask the program to end, and kill it after the grace time."""
        process = self._process
        if process is None:
            return
        try:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace_seconds)
        finally:
            # Also after a second Ctrl-C: then at once.
            self.kill()

    def kill(self) -> None:
        """Kill the program, as a crash would, and wait until it is gone."""
        if self._process is not None:
            _end(self._process)

    def leave_running(self) -> None:
        """Keep the program running after this Python process; stop it by its id then.

        This object does not control it any more: it does not count as running.
        """
        process, self._process = self._process, None
        if process is not None:
            _forget(process)

    def wait_until(self, missing: Callable[[], str | None], *, seconds: float, doing: str) -> None:
        """Call `missing` until it returns None.

        Raises `StartFailed`, with `doing` in its text, if the program ends before, or if this takes
        longer than `seconds`; `missing` may raise to give up at once.
        """
        deadline = time.monotonic() + seconds
        while True:
            if not self.running:
                raise self.failed(f"{doing}: it ended with status {self.exit_status}")
            if (answer := missing()) is None:
                return
            if time.monotonic() > deadline:
                raise self.failed(f"{doing}: not done after {seconds:g} s: {answer}")
            time.sleep(_PAUSE_SECONDS)

    def failed(self, cause: str) -> StartFailed:
        """An error that names the log and shows its important lines."""
        return StartFailed(f"{cause}; see {self.log_path}, which says\n{self._telling_lines()}")

    def said(self) -> str:
        """The program's output since its last start."""
        if self._process is None:
            return ""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _telling_lines(self, count: int = 15) -> str:
        """The log's errors, each with its cause below it; its end if there is none."""
        lines = self.said().splitlines()
        errors = [number for number, line in enumerate(lines) if " ERROR " in line]
        shown = {number + below for number in errors for below in range(3)}
        telling = [line for number, line in enumerate(lines) if number in shown]
        return "\n".join((telling or lines)[-count:]) or "nothing"


# The children of this process, each with its watchdog.
_watched: dict[subprocess.Popen[bytes], subprocess.Popen[bytes]] = {}
# A forked copy of this process owns none of them.
os.register_at_fork(after_in_child=_watched.clear)


def _start(command: Sequence[str], output: int) -> subprocess.Popen[bytes]:
    life, held_by_child = os.pipe()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(held_by_child,),
        )
        # In isolated mode, and a plain file: it imports no package, and starts at once.
        _watched[child] = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(child.pid)],
            stdin=life,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    finally:
        os.close(life)
        os.close(held_by_child)
    return child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    _forget(child)


def _forget(child: subprocess.Popen[bytes]) -> None:
    """Release the watchdog of a child that has ended, or that stays running."""
    dog = _watched.pop(child, None)
    if dog is not None:
        dog.kill()
        dog.wait()


@atexit.register
def _stop_all() -> None:
    """Stop what still runs, the last started first, all within one grace time."""
    children = list(reversed(_watched))
    try:
        for child in children:
            child.terminate()
        deadline = time.monotonic() + EXIT_GRACE_SECONDS
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for child in children:
            _end(child)
