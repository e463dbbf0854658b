"""Java processes that never outlive the Python process that started them.

Each child runs in a session of its own, so that Ctrl-C on the terminal reaches only its
starter, which then stops it in order. Children are stopped by their process id

- when a `with` block ends, normally or by an exception, Ctrl-C included;
- at the interpreter's exit (`atexit`), if nobody stopped them before;
- by a watchdog process, if the starter ends in any other way: SIGTERM, SIGKILL, a crash.

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
from tsoffset.testing.embedded import watchdog
from tsoffset.testing.embedded.jars import KAFKA_VERSION, resolve_jars

GRACE_SECONDS = 20.0
EXIT_GRACE_SECONDS = 5.0

# Between two questions, so that asking takes nothing from what is asked.
_PAUSE_SECONDS = 0.05

_BASE_OPTIONS = (
    # Short-lived servers on few cores: the quick compiler and the plain collector start
    # sooner and hold less memory than what Java picks by itself.
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


# Checked once in a process: it takes a tenth of a second.
_jars = cache(resolve_jars)


class JavaProcess:
    """One Java program, its output in a log file.

    `directory` must exist; the log is `directory/NAME.log` and is added to when the
    program is started again.
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
        """Prepare the program `command` (main class and arguments); nothing is started."""
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
        """The process id; None unless the program runs."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the program runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """What the program ended with; None if it runs or never ran."""
        return None if self._process is None else self._process.poll()

    def start(self) -> Self:
        """Start the program, and return it; does not wait until it is of use.

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
        """Run the program to its end and return its exit status.

        Raises subprocess.TimeoutExpired, after stopping it, if it takes too long.
        """
        self.start()
        assert self._process is not None
        try:
            return self._process.wait(timeout_seconds)
        finally:
            self.kill()

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask the program to end, and end it by force after the grace time."""
        process = self._process
        if process is None:
            return
        try:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace_seconds)
        finally:
            # Reached on a second Ctrl-C as well: then at once.
            self.kill()

    def kill(self) -> None:
        """End the program by force, as a crash would, and wait until it is gone."""
        if self._process is not None:
            _end(self._process)

    def let_go(self) -> None:
        """Let the program go on after this Python process; it is stopped by its id then.

        From here on it is not this object's any more: it does not count as running.
        """
        process, self._process = self._process, None
        if process is not None:
            _forget(process)

    def wait_until(self, missing: Callable[[], str | None], *, seconds: float, doing: str) -> None:
        """Ask what is missing again and again, until that is nothing (None).

        Raises `StartFailed`, which says what was being done (`doing`), if the program
        ends before, or if this takes longer than `seconds`; `missing` may raise to give up
        at once.
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
        """Return an error that names the log and shows what matters in it."""
        return StartFailed(f"{cause}; see {self.log_path}, which says\n{self._telling_lines()}")

    def said(self) -> str:
        """Return what the program has written since it was started last."""
        if self._process is None:
            return ""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _telling_lines(self, count: int = 15) -> str:
        """Pick the log's errors, each with its cause below it; its end if there is none."""
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
    """Start a child and its watchdog."""
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
        # Isolated mode, and a plain file: it imports nothing of ours and starts at once.
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
    """End a child by force."""
    child.kill()
    child.wait()
    _forget(child)


def _forget(child: subprocess.Popen[bytes]) -> None:
    """Take a child that has ended, or is let go, from its watchdog."""
    dog = _watched.pop(child, None)
    if dog is not None:
        dog.kill()
        dog.wait()


@atexit.register
def _stop_all() -> None:
    """Stop what still runs, last started first, all within one grace time."""
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
