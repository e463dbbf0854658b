"""The Java process of Spark: starting it, reading its output, ending it."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import javaproperties
import py4j.protocol
import structlog
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tsoffset.logs import LogFormat, LogLevel, hide_secrets
from tsoffset.threads import in_thread

log = structlog.get_logger(__name__)

# Lines that Java and Spark's start script print at every start.
_NOISE = (
    "WARNING: Using incubator modules",
    "NOTE: Picked up JDK_JAVA_OPTIONS",
    "Picked up JAVA_TOOL_OPTIONS",
    "Using Spark's default log4j profile",
    "Setting default log level",
    "To adjust logging level",
)
_JAVA_PREFIX = re.compile(r"Exception in thread \"main\" \S+: ")
_LAST_WORDS_SECONDS = 2.0
_END_SECONDS = 5.0
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


class Jvm:
    """A Java process with Spark, which ends with this process at the latest.

    Its output and that of its workers goes to this process's standard error (`pass_on`), without
    the lines that every start prints. Nothing goes to standard output.
    """

    def __init__(self) -> None:
        self.gateway: Any = None
        self._lock = threading.Lock()
        # None: it has started, and its lines go on to standard error.
        self._held: list[str] | None = []
        self._listener: threading.Thread | None = None

    def start(self, conf: SparkConf) -> None:
        """Start the process. Raises PySparkException if it ends at once, and OSError if its
        settings cannot be written to the directory of temporary files."""
        with _settings_in_a_file(conf):
            reading, writing = os.pipe()
            self._listener = threading.Thread(
                target=self._listen, args=(reading,), name="spark-output", daemon=True
            )
            self._listener.start()
            launching = in_thread(partial(self._launch, writing))
            try:
                launching.result()
            except BaseException:
                # Interrupted. Wait for the launch anyway: before its end, `close` has no process
                # to end, and Java may not have read the settings file.
                wait([launching])
                raise

    def _launch(self, writing: int) -> None:
        try:
            # In its own session, so that Ctrl-C reaches only this process, which ends Java after
            # its work.
            options = {"stdout": writing, "stderr": writing, "start_new_session": True}
            self.gateway = launch_gateway(None, options)  # type: ignore[no-untyped-call]
        finally:
            os.close(writing)

    def let_it_speak(self) -> None:
        """Pass on what it wrote while it started, and its output from now on."""
        with self._lock:
            held, self._held = self._held or [], None
            for line in held:
                pass_on(line)

    def last_words(self) -> str | None:
        """The first line of the output of a process that did not start; None if it has none."""
        if self.gateway is None and self._listener is not None:
            self._listener.join(_LAST_WORDS_SECONDS)
        with self._lock:
            lines = [line.strip() for line in self._held or ()]
        line = next((line for line in lines if line and not line.startswith("at ")), None)
        return line and _JAVA_PREFIX.sub("", line)

    def close(self) -> None:
        """End the process, whatever state it is in."""
        forget_spark()
        if self.gateway is None:
            return
        process: subprocess.Popen[bytes] | None = self.gateway.proc
        if process is not None:
            assert process.stdin is not None
            # Java stops Spark and exits when its standard input is closed.
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with suppress(py4j.protocol.Py4JError, OSError):
            self.gateway.shutdown()

    def _listen(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as output:
            for line in output:
                if line.startswith(_NOISE):
                    continue
                with self._lock:
                    if self._held is None:
                        pass_on(line)
                    else:
                        self._held.append(line)


@contextmanager
def environment(added: Mapping[str, str]) -> Iterator[None]:
    """These variables in the environment of this process while the block lasts."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _settings_in_a_file(conf: SparkConf) -> Iterator[None]:
    """Make a Java process that starts in this block read its settings from a file that only this
    user can read. pyspark would put them on the command line, which every local user can read."""
    # Created with mode 0600.
    with tempfile.NamedTemporaryFile("w", prefix="tsoffset-", suffix=".conf") as file:
        file.write(javaproperties.dumps(dict(conf.getAll()), timestamp=False))
        file.flush()
        words = ["--properties-file", file.name, "--load-spark-defaults"]
        given = os.environ.get(_ARGUMENTS, "pyspark-shell")
        with environment({_ARGUMENTS: f"{shlex.join(words)} {given}"}):
            yield


def worker_logs() -> tuple[LogFormat, LogLevel]:
    """The log format and level of workers: this process's format, and only warnings and errors."""
    processors = structlog.get_config()["processors"]
    is_json = any(isinstance(step, structlog.processors.JSONRenderer) for step in processors)
    return (LogFormat.JSON if is_json else LogFormat.CONSOLE), LogLevel.WARNING


def pass_on(line: str) -> None:
    """Write a line of Spark or of a worker to standard error. With JSON logs, a line that is not an
    event becomes the event `spark_wrote`."""
    if worker_logs()[0] is LogFormat.CONSOLE:
        sys.stderr.write(hide_secrets(line))
    elif _is_event(line):
        sys.stderr.write(line)
    else:
        log.warning("spark_wrote", line=line.rstrip())


def _is_event(line: str) -> bool:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "event" in found


def forget_spark() -> None:
    """Make pyspark start a new process for the next session, and not keep the first one."""
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
