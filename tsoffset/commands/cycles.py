"""Cycles of flows in one Spark session, and what each leaves to the next, for commands."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tsoffset.config.selection import Selection
from tsoffset.flow.settings import FlowSettings
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tsoffset.spark.flow import CycleResult, FlowCarryOver, FlowTask
    from tsoffset.spark.state import StateFile


@dataclass(frozen=True, slots=True)
class FlowCycles:
    """The cycles of one flow."""

    session: "SparkSession"
    task: "FlowTask"
    flow: FlowSettings
    carry_over: "FlowCarryOver"
    file: "StateFile | None"
    notices: Notices

    def run(self, *, commit: bool, keep: bool = True) -> "CycleResult":
        """One cycle, its warnings told; unless `keep` is false what it learned is kept in the file.
        Raises CycleFailed."""
        from tsoffset.spark.dataflow import run_cycle

        with progress(self.flow.name, wanted=self.notices.format is LogFormat.CONSOLE) as report:
            result = run_cycle(
                self.session,
                self.task,
                commit=commit and self.flow.commits,
                carry_over=self.carry_over,
                progress=report,
            )
        if (
            keep
            and self.file is not None
            and (warning := self.file.save(self.carry_over)) is not None
        ):
            self.notices.warning("state_not_written", warning)
        for warning in result.warnings:
            self.notices.warning("cycle_warning", warning)
        return result


@contextmanager
def spark_cycles(
    selection: Selection, notices: Notices, state: str | None = None
) -> Iterator[Callable[[FlowSettings], FlowCycles]]:
    """A function that makes the cycles of a flow of the selection, in a session that ends with the
    block.

    `state` is a folder or a URI at which what a cycle learns is kept for the next process; None
    takes `state.dir`, where the configuration has it. Raises what keeps Spark from starting.
    """
    # Imported here, since no other command should wait for Spark to be loaded.
    from tsoffset.spark.session import spark_session

    with ExitStack() as stack:
        with progress("starting Spark", wanted=notices.format is LogFormat.CONSOLE):
            session = stack.enter_context(spark_session(selection.settings.spark))
        yield partial(_cycles, session, selection, notices, state or selection.settings.state_dir)


def _cycles(
    session: "SparkSession",
    selection: Selection,
    notices: Notices,
    directory: str | None,
    flow: FlowSettings,
) -> FlowCycles:
    from tsoffset.spark.flow import FlowCarryOver, FlowTask
    from tsoffset.spark.state import StateFile

    carry_over, file = FlowCarryOver(), None
    if directory is not None:
        file = StateFile(directory, flow.name, selection.narrowing)
        carry_over, warning = file.load()
        if warning is not None:
            notices.warning("state_not_read", warning)
    task = FlowTask(selection.configuration, flow.name, selection.narrowing)
    return FlowCycles(session, task, flow, carry_over, file, notices)
