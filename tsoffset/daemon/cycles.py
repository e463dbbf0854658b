"""The cycles of one flow, in the session that all flows share, with what the one before left."""

from typing import Protocol

from tsoffset.config.selection import Selection
from tsoffset.daemon.cycle_log import CycleLog
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.state import FlowCarryOver, StateFile
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.flow import CycleResult, FlowTask
from tsoffset.spark.sessions import Sessions


class Cycles(Protocol):
    """Runs the cycles of one flow."""

    def run(self, selection: Selection, flow: FlowSettings) -> CycleResult:
        """One cycle. Raises CycleFailed, and what keeps Spark from starting."""


class SparkCycles:
    """Cycles on Spark. What they learn is kept in this process, and in `state.dir` for the next."""

    def __init__(self, sessions: Sessions, news: CycleLog) -> None:
        self._sessions = sessions
        self._news = news
        self._carry_over: FlowCarryOver | None = None

    def run(self, selection: Selection, flow: FlowSettings) -> CycleResult:
        """As `Cycles.run`."""
        task = FlowTask(selection.configuration, flow.name, selection.narrowing)
        directory = selection.settings.state_dir
        file = None if directory is None else StateFile.of(directory, flow, selection.narrowing)
        carry_over = self._remembered(file)
        with self._sessions.lease() as session:
            result = run_cycle(
                session,
                task,
                commit=flow.commits,
                carry_over=carry_over,
                limit_seconds=flow.longest_cycle_seconds,
                other_flows=len(selection.flows) - 1,
            )
        if result.groups:
            # What was over before Spark had a part in it says nothing of the session.
            self._sessions.ended_well()
        if file is not None:
            self._news.warn("state_not_written", file.save(carry_over))
        return result

    def _remembered(self, file: StateFile | None) -> FlowCarryOver:
        if self._carry_over is None:
            self._carry_over = FlowCarryOver()
            if file is not None:
                self._carry_over, warning = file.load()
                self._news.warn("state_not_read", warning)
        return self._carry_over
