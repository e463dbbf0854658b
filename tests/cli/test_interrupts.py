"""Ctrl-C at any moment of a command: exit 130, and no traceback."""

import os
import signal
import subprocess
import sys

import pytest

from tests.invoking import start

# A module in the program's path that waits in its import, as a slow disk does.
SLOW = "import os, time\nos.write(1, b'loading')\ntime.sleep(60)\n"


@pytest.fixture(autouse=True)
def not_ignored():
    """`make` lets its background runs of tests ignore Ctrl-C, and so their processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["click", "javaproperties"])
def test_while_modules_are_loaded(module, tmp_path):
    """`click` is loaded before a command runs, `javaproperties` by the command."""
    (tmp_path / f"{module}.py").write_text(SLOW)
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A\n")
    with start("topics", "-c", str(file), env={"PYTHONPATH": str(tmp_path)}) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 7) == b"loading"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said in ("", "interrupted\n")


def test_a_second_one_does_not_wait_for_what_the_first_has_ended(tmp_path):
    """A cluster that hangs may keep a command from ending for most of a minute."""
    busy = "try:\n    import slow\nfinally:\n    slow_end()\n"
    (tmp_path / "slow.py").write_text(SLOW)
    end = "import os, time\ndef slow_end():\n    os.write(1, b'ending!')\n    time.sleep(60)\n"
    (tmp_path / "javaproperties.py").write_text(end + busy)
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A\n")
    with start("topics", "-c", str(file), env={"PYTHONPATH": str(tmp_path)}) as process:
        assert process.stdout is not None
        for said in (b"loading", b"ending!"):
            assert os.read(process.stdout.fileno(), 7) == said
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130


WAITING = """
import threading
import tsoffset.cycle.schema
lock = threading.Lock()
lock.acquire()
print("waiting", flush=True)
lock.acquire()
"""


def test_a_wait_ends_although_polars_is_loaded():
    """Polars has the system continue what a signal has stopped."""
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 7) == b"waiting"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in said
