"""A cycle of the daemon on Spark."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.configured import nowhere, properties_file
from tests.spark.test_sessions import Opened
from tsoffset.config.selection import Selector
from tsoffset.daemon import cycles
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.errors import CycleOverLimit
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.group_sync.state import FlowCache, StateFile
from tsoffset.spark.sessions import Sessions


def test_a_wait_before_a_cycle_counts_against_its_limit(tmp_path, monkeypatch):
    """For the state or for Spark: another instance may lead by then, so nothing is committed."""
    selection = Selector(properties_file(tmp_path, nowhere(), nowhere())).select()
    (flow,) = selection.flows
    times = iter((0.0, flow.longest_cycle_seconds + 1.0))
    monkeypatch.setattr(cycles, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(CycleOverLimit):
        SparkCycles(Sessions(Opened()), CycleLog(flow.name)).run(selection, flow)


def test_the_state_that_another_process_may_have_written_is_read(tmp_path, monkeypatch):
    """A cycle reads the state once, and again after a pause or standby. If there is none then, or
    if it cannot be read, what is cached stays; it does, too, if the cycles are narrowed, because
    these never write the state."""
    lines = f"state.dir = {tmp_path / 'state'}"
    selection = Selector(properties_file(tmp_path, nowhere(), nowhere(), lines)).select()
    (flow,) = selection.flows
    file, found = StateFile(tmp_path / "state", flow.name), []

    def run_cycle(*_: Any, cache: FlowCache, **__: Any) -> CycleResult:
        found.append(cache.rows)
        return CycleResult(flow.name, Rows(rows_table(())), (), False, 0.0, 0, 0)

    monkeypatch.setattr(cycles, "run_cycle", run_cycle)
    runner = SparkCycles(Sessions(Opened()), CycleLog(flow.name))
    for rows, is_held_back in ((1, False), (2, False), (3, True), (4, False)):
        assert file.save(FlowCache(rows=rows, binding="these clusters")) is None
        if is_held_back:
            runner.read_state_again()
        runner.run(selection, flow)
    assert found == [1, 1, 3, 3]
    for spoil in (lambda: file.path.write_bytes(b"damaged"), file.path.unlink):
        spoil()
        runner.read_state_again()
        runner.run(selection, flow)
        assert found[-1] == 3
    assert file.save(FlowCache(rows=5, binding="these clusters")) is None
    runner.read_state_again()
    runner.run(replace(selection, narrowing=Narrowing(groups="billing")), flow)
    assert found[-1] == 3
