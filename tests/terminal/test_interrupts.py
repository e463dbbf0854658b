"""Ctrl-C at any moment of a command: exit 130, and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invoking import Command, start
from tests.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.usefixtures("heeds_ctrl_c")

# A module in the program's path that waits in its import, as a slow disk does.
SLOW = "import os, time\nos.write(1, b'loading')\ntime.sleep(600)\n"
# Python drops an exception that such a callback raises.
SLOW_CALLBACK = """
import os, time, weakref
class Module: pass
def unload(_):
    os.write(1, b"loading")
    time.sleep(600)
module = Module()
reference = weakref.ref(module, unload)
del module
time.sleep(600)
"""
# What Python calls then takes longer than the time after which the exception is raised again.
SLOW_HOOK = """
import signal
set_timer = signal.setitimer
def set_slowly(*given):
    set_timer(*given)
    time.sleep(0.3)
signal.setitimer = set_slowly
"""


def load_slowly(folder: Path) -> Command:
    """A command that loads its modules from there first."""
    file = folder / "mm2.properties"
    file.write_text("clusters = A\n")
    return start("topics", "-c", str(file), env={"PYTHONPATH": str(folder)})


@pytest.mark.parametrize(
    ("module", "code"),
    [
        pytest.param("click", SLOW, id="before the command"),
        pytest.param("javaproperties", SLOW, id="by the command"),
        pytest.param("javaproperties", SLOW_CALLBACK, id="in a callback"),
        pytest.param(
            "javaproperties", "import time" + SLOW_HOOK + SLOW_CALLBACK, id="in a slow hook"
        ),
    ],
)
def test_while_modules_are_loaded(module, code, tmp_path):
    """`click` is loaded before a command runs, `javaproperties` by the command."""
    (tmp_path / f"{module}.py").write_text(code)
    with load_slowly(tmp_path) as process:
        assert os.read(process.stdout.fileno(), 7) == b"loading"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130
    assert said in ("", "interrupted\n")


def test_a_second_one_does_not_wait_for_what_the_first_has_ended(tmp_path):
    """A cluster that hangs may keep a command from ending for most of a minute."""
    busy = "try:\n    import slow\nfinally:\n    slow_end()\n"
    (tmp_path / "slow.py").write_text(SLOW)
    end = "import os, time\ndef slow_end():\n    os.write(1, b'ending!')\n    time.sleep(600)\n"
    (tmp_path / "javaproperties.py").write_text(end + busy)
    with load_slowly(tmp_path) as process:
        for said in (b"loading", b"ending!"):
            assert os.read(process.stdout.fileno(), 7) == said
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130


WAITING = """
import threading
import tsoffset.group_sync.tables
lock = threading.Lock()
lock.acquire()
print("waiting", flush=True)
lock.acquire()
"""


def test_a_wait_ends_although_polars_is_loaded():
    """Polars has the system continue what a signal has stopped."""
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert os.read(process.stdout.fileno(), 7) == b"waiting"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
    assert b"KeyboardInterrupt" in said
