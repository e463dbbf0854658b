"""Commands whose standard streams are closed, full, or without a reader."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from tests.invoking import ROOT
from tsoffset.terminal.streams import StandardStream

# The states of a stream, as redirections of a shell; 9 is a pipe without a reader.
FATES = {"closed": ">&-", "full": ">/dev/full", "unread": ">&9"}


@contextmanager
def redirected(
    redirections: str, *words: str, unbuffered: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A Python process in an environment without anything of this machine's, its streams redirected
    as a shell does it."""
    reading, writing = os.pipe()
    os.close(reading)
    python = (sys.executable, *words)
    try:
        with subprocess.Popen(
            ["bash", "-c", f'exec 9>&{writing}; exec "$@" {redirections}', "bash", *python],
            cwd=ROOT,
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME")},
                **({"PYTHONUNBUFFERED": "1"} if unbuffered else {}),
            },
            pass_fds=[writing],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            yield process
    finally:
        os.close(writing)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unbuffered", "streams", "logs"),
    [(False, (1,), "console"), (False, (2,), "json"), (True, (1, 2), "console")],
)
def test_a_command_ends_with_its_own_status_whatever_became_of_its_output(
    unbuffered, streams, logs, away
):
    """Closed, full or unread: the work is done, the other stream has all, and no traceback; only
    what a full disk swallowed is said. Python's own flush at the end changes nothing, and the
    machine's PYTHONUNBUFFERED hides nothing."""
    away.write_text(away.read_text() + "A->B.topicz = x\n")
    words = ("-m", "tsoffset", "explain", "-c", str(away), "--group", "g", "--log-format", logs)
    with ExitStack() as stack:
        running = {
            fate: stack.enter_context(
                redirected(
                    " ".join(f"{stream}{how}" for stream in streams), *words, unbuffered=unbuffered
                )
            )
            for fate, how in FATES.items()
        }
        ended = {fate: (*one.communicate(), one.returncode) for fate, one in running.items()}
    for fate, (out, err, status) in ended.items():
        assert status == 3, (fate, err)
        assert ("UNREACHABLE" in out) is (1 not in streams)
        assert ("topicz" in err) is (2 not in streams)
        assert "Traceback" not in err
        assert ("No space left" in err) is (fate == "full" and streams == (1,))


@pytest.mark.slow
def test_a_file_for_others_that_a_full_disk_truncated_is_a_failure(away):
    """A script would go on with a part of the offsets, or of the configuration. A reader that goes
    away knows that it has a part."""
    for how, status in ((">/dev/full", 1), (">&9", 0)):
        with redirected(how, "-m", "tsoffset", "migrate", str(away)) as process:
            _, err = process.communicate()
        assert process.returncode == status, err


def test_a_pipe_that_does_not_block_gets_all_that_is_printed():
    """Another process that has the same pipe may have made it so; a log line raised BlockingIOError
    where its reader was slow, and the daemon's loop with it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    text = "x" * 1_000_000

    def printed() -> None:
        with os.fdopen(writing, "w") as pipe, StandardStream(pipe) as stream:
            stream.write(text)

    with ThreadPoolExecutor(1) as pool, os.fdopen(reading) as reader:
        done = pool.submit(printed)
        assert reader.read() == text
        done.result()


def test_a_closed_stream_is_no_other_files():
    """The next file or socket does not get the number of standard output, where Java and whatever
    prints would write into it; standard input that is closed is at its end."""
    program = """
import os, sys
from tsoffset.terminal.streams import keep_standard_streams
keep_standard_streams()
with open(os.devnull) as file:
    kept = file.fileno() > 2 and sys.stdin.read() == "" and not sys.stdin.isatty()
sys.exit(os.system("true <&0 >&1 2>&2") or (7 if kept else 8))
"""
    with redirected("<&- >&- 2>&-", "-c", program) as process:
        assert process.wait() == 7
