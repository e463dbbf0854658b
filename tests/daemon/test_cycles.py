"""A cycle of the daemon on Spark."""

from types import SimpleNamespace

import pytest

from tests.configured import nowhere, properties_file
from tests.spark.test_sessions import Opened
from tsoffset.config.selection import Selector
from tsoffset.daemon import cycles
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.errors import CycleOverLimit
from tsoffset.spark.sessions import Sessions


def test_a_wait_before_a_cycle_counts_against_its_limit(tmp_path, monkeypatch):
    """For the state or for Spark: another instance may lead by then, so nothing is committed."""
    selection = Selector(properties_file(tmp_path, nowhere(), nowhere())).select()
    (flow,) = selection.flows
    times = iter((0.0, flow.longest_cycle_seconds + 1.0))
    monkeypatch.setattr(cycles, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(CycleOverLimit):
        SparkCycles(Sessions(Opened()), CycleLog(flow.name)).run(selection, flow)
