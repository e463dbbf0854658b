"""Ctrl-C at any moment of a command: exit 130, and no traceback."""

import os
import signal

import pytest

from tests.invoking import start

# A module in the program's path that waits in its import, as a slow disk does.
SLOW = "import os, time\nos.write(1, b'loading')\ntime.sleep(60)\n"


@pytest.mark.parametrize("module", ["click", "javaproperties"])
def test_while_modules_are_loaded(module, tmp_path):
    """`click` is loaded before a command runs, `javaproperties` by the command."""
    (tmp_path / f"{module}.py").write_text(SLOW)
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A\n")
    # `make` lets its background runs of tests ignore Ctrl-C, and so their processes.
    with_ctrl_c = ("env", "--default-signal=INT")
    path = {"PYTHONPATH": str(tmp_path)}
    with start("topics", "-c", str(file), env=path, through=with_ctrl_c) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 7) == b"loading"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said in ("", "interrupted\n")
