"""Commands as a user runs them: in this process, or as a process of their own."""

import logging
import os
import socketserver
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog
from click.testing import CliRunner, Result

from tests.configured import properties_file
from tests.memory_flows import Estate
from tsoffset.cli.main import cli
from tsoffset.cluster import Connect
from tsoffset.kafka import cluster as real

ROOT = Path(__file__).parent.parent


def invoke(
    *words: str,
    env: Mapping[str, str | None] | None = None,
    connect: Connect | None = None,
    input: str | None = None,
) -> Result:
    """Run a command in this process, and leave its logging as it was. With `connect` it reads
    these clusters instead of real ones. Spark's workers do not: use it for all but `sync` and
    `run`. `input` is what its standard input holds."""
    with ExitStack() as stack:
        stack.enter_context(logging_kept())
        if connect is not None:
            stack.enter_context(patch.object(real, "KafkaCluster", connect))
        return CliRunner().invoke(cli, words, input=input, env=env, prog_name="tsoffset")


def in_memory(
    estate: Estate,
    folder: Path,
    command: str,
    *words: str,
    lines: Sequence[str] = (),
    clusters: str = "A, B",
    input: str | None = None,
) -> Result:
    """Run a command over clusters in memory, as `invoke`; its configuration, in `folder`, has the
    flow A->B and these `lines`."""
    file = properties_file(folder, "a:1", "b:1", *lines, clusters=clusters)
    return invoke(command, "-c", str(file), *words, connect=estate.connect, input=input)


@contextmanager
def logging_kept() -> Iterator[None]:
    """Put logging back at the end: a command sets it up for its whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    handle_error = socketserver.BaseServer.handle_error
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        socketserver.BaseServer.handle_error = handle_error
        structlog.reset_defaults()


def run_program(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, from the repository's folder; what it writes is text. `options` are
    those of `subprocess.run`."""
    given: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True, **options}
    return subprocess.run([str(word) for word in command], **given)


def succeeds(*command: str | Path, **options: Any) -> str:
    """What a program prints, which must end well; as `run_program`."""
    done = run_program(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_process(*words: str) -> tuple[int, str, str]:
    """Run a command as a process of its own: its exit status, output and standard error."""
    with start(*words) as process:
        out, err = process.communicate(timeout=400)
    return process.returncode, out, err


class Command(subprocess.Popen[str]):
    """A command that runs. At the end of its `with` block it has ended, and a test that has failed
    in the block does not wait for it."""

    def __exit__(self, kind: type[BaseException] | None, *failure: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *failure)


def start(
    *words: str,
    stderr: int | None = None,
    env: Mapping[str, str] | None = None,
    through: Sequence[str] = (),
) -> Command:
    """Start a command as a process of its own; its output goes to pipes, or to `stderr`. `through`
    is a command that becomes the one named after it."""
    return Command(
        [*through, sys.executable, "-m", "tsoffset", *words],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if stderr is None else stderr,
        text=True,
    )
