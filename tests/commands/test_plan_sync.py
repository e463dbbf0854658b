"""The end of a cycle of `plan` and `sync`: its rows, and then its event."""

import io
import os
import re
import time

import pytest
from structlog.testing import capture_logs

from tests.terminal.test_output import COMMITTED, FAILED
from tsoffset.commands.plan_sync import print_cycle
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.streams import StandardStream

RESULT = CycleResult("A->B", Rows(rows_table([COMMITTED, FAILED])), (), False, 0.0, 1, 1)


@pytest.mark.parametrize("format", list(Format))
def test_a_cycle_has_finished_when_its_last_row_is_written(format):
    """`cycle_finished` comes after the rows, and its `seconds` hold their printing; so do those of
    the summary, which stands below a table."""

    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            assert not logs
            time.sleep(0.02)
            return super().write(text)

    stream, started = Slow(), time.monotonic() - 100
    with capture_logs() as logs:
        output = Output(stream, format)
        status = print_cycle(RESULT, output, Notices(), commits=True, started=started, config="F")
    (finished,) = logs
    assert (finished["event"], finished["committed"], finished["failed"]) == (
        *("cycle_finished", 1, 1),
    )
    assert finished["seconds"] >= 100.02
    assert status == 1
    if format is Format.TABLE:
        (seconds,) = re.findall(r"; (\S+) s$", stream.getvalue())
        assert float(seconds) >= 100


@pytest.mark.parametrize("format", list(Format))
def test_a_cycle_finishes_without_a_reader(format):
    """Who reads its rows may go away: the log has the event, and the status is the cycle's."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, capture_logs() as logs:
        output = Output(StandardStream(pipe), format)
        started = time.monotonic()
        assert (
            print_cycle(RESULT, output, Notices(), commits=True, started=started, config="F") == 1
        )
        assert output.closed
    assert [event["event"] for event in logs] == ["cycle_finished"]
