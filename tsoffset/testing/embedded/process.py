"""Java processes that never outlive the Python process that started them.

Each child runs in a session of its own, so that Ctrl-C on the terminal reaches only its
starter, which then stops it in order. Children are stopped by their process id

- when a `with` block ends, normally or by an exception, Ctrl-C included;
- at the interpreter's exit (`atexit`), if nobody stopped them before;
- by the watchdog process, if the starter ends in any other way: SIGTERM, SIGKILL, a crash.

No signal handler is installed: those belong to the program that uses this package.
"""

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from tsoffset.errors import StartFailed
from tsoffset.java import find_java
from tsoffset.testing.embedded import watchdog
from tsoffset.testing.embedded.jars import resolve_jars
from tsoffset.testing.embedded.readiness import Deadline, NotReady, Question, ask_until

GRACE_SECONDS = 20.0
EXIT_GRACE_SECONDS = 5.0

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
    ) -> None:
        """Prepare the program `command` (main class and arguments); nothing is started."""
        self.name = name
        self.log_path = directory / f"{name}.log"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._command = tuple(command)
        self._java_options = tuple(java_options)

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

    def start(self) -> None:
        """Start the program; does not wait until it is of use.

        Raises `JavaMissing`, `JavaTooOld` or `JarsUnavailable`.
        """
        java = find_java()
        jars = _jars()
        logging = self.log_path.parent / "log4j2.properties"
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
            self._process = _starter.start(command, log.fileno())

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
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(grace_seconds)
        finally:
            # Reached on a second Ctrl-C as well: then at once.
            self.kill()

    def kill(self) -> None:
        """End the program by force, at once, and wait until it is gone."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait()
        _starter.forget(process)

    def let_go(self) -> None:
        """Let the program go on when this Python process is gone; nobody stops it then.

        From here on it is not this object's any more: it does not count as running.
        """
        process, self._process = self._process, None
        if process is not None:
            _starter.forget(process)

    def wait_until(self, *questions: Question, seconds: float, doing: str) -> None:
        """Ask one question after the other until each is answered by None.

        Raises `StartFailed`, which says what was being done (`doing`), if the program
        ends before, or if all this takes longer than `seconds`.
        """
        deadline = Deadline(seconds)
        try:
            for question in questions:
                ask_until(partial(self._while_running, question, doing), deadline)
        except NotReady as late:
            raise self.failed(f"{doing}: not done after {seconds:g} s: {late}") from None

    def failed(self, cause: str) -> StartFailed:
        """Return an error that names the log and shows what matters in it."""
        return StartFailed(f"{cause}; see {self.log_path}, which says\n{self._telling_lines()}")

    def _while_running(self, question: Question, doing: str) -> str | None:
        if self.running:
            return question()
        raise self.failed(f"{doing}: it ended with status {self.exit_status}")

    def said(self) -> str:
        """What the program has written since it was started last."""
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


class _Starter:
    """All children of this process, and the watchdog that outlives it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._inherited: object = None

    def start(self, command: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        with self._lock:
            self._ensure_watchdog()
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._children[child.pid] = child
            self._tell(f"+{child.pid}")
            return child

    def forget(self, child: subprocess.Popen[bytes]) -> None:
        """Take a child that has ended, or is let go, off the lists."""
        with self._lock:
            if self._children.pop(child.pid, None) is not None:
                self._tell(f"-{child.pid}")

    def stop_all(self) -> None:
        """Stop what still runs, last started first, all within one grace time."""
        with self._lock:
            children = list(reversed(self._children.values()))
            dog, self._watchdog = self._watchdog, None
        try:
            for child in children:
                child.terminate()
            deadline = time.monotonic() + EXIT_GRACE_SECONDS
            for child in children:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, deadline - time.monotonic()))
        finally:
            for child in children:
                child.kill()
                child.wait()
                self.forget(child)
            if dog is not None:
                # Its input ends, and so does it.
                dog.communicate()

    def after_fork(self) -> None:
        """Let a forked copy of this process own none of its parent's children."""
        self._inherited = (self._children, self._watchdog)
        self._lock = threading.Lock()
        self._children = {}
        self._watchdog = None

    def _ensure_watchdog(self) -> None:
        if self._watchdog is not None and self._watchdog.poll() is None:
            return
        # Isolated mode, and a plain file: it imports nothing of ours and starts at once.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        for pid in self._children:
            self._tell(f"+{pid}")

    def _tell(self, line: str) -> None:
        if self._watchdog is None or self._watchdog.stdin is None:
            return
        # A watchdog that was ended by somebody is replaced at the next start.
        with suppress(BrokenPipeError):
            self._watchdog.stdin.write(f"{line}\n".encode())


_starter = _Starter()
atexit.register(_starter.stop_all)
os.register_at_fork(after_in_child=_starter.after_fork)
