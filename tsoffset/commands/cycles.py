"""Cycles of flows in one Spark session, or small ones that only plan in this process, and what each
leaves to the next, for commands."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tsoffset.cluster import Connect
from tsoffset.config.selection import Selection
from tsoffset.flow.settings import FlowSettings
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tsoffset.group_sync.state import FlowCarryOver, StateFile
    from tsoffset.spark.flow import CycleResult, FlowTask


@dataclass(frozen=True, slots=True)
class FlowCycles:
    """The cycles of one flow.

    `session` starts Spark where it is not started yet. `plans_here` says that these cycles only
    plan, and do without Spark while they are small.
    """

    session: Callable[[], "SparkSession"]
    plans_here: bool
    task: "FlowTask"
    flow: FlowSettings
    carry_over: "FlowCarryOver"
    file: "StateFile | None"
    notices: Notices

    def run(self, *, commit: bool, keep: bool = True) -> "CycleResult":
        """One cycle, its warnings told; unless `keep` is false what it learned is kept in the file.
        Raises CycleFailed."""
        from tsoffset.spark.dataflow import plan_cycle, run_cycle

        with progress(self.flow.name, wanted=self.notices.format is LogFormat.CONSOLE) as report:
            if self.plans_here:
                result = plan_cycle(
                    self.session, self.task, carry_over=self.carry_over, progress=report
                )
            else:
                result = run_cycle(
                    self.session(),
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
def flow_cycles(
    selection: Selection,
    notices: Notices,
    connect: Connect,
    *,
    only_plan: bool,
    state: str | None = None,
) -> Iterator[Callable[[FlowSettings], FlowCycles]]:
    """A function that makes the cycles of a flow of the selection; Spark, where it is started, ends
    with the block.

    Cycles that `only_plan` start Spark only where they are large, unless `spark.master` is set.
    `state` is a folder or a URI at which what a cycle learns is kept for the next process; None
    takes `state.dir`, where the configuration has it. Raises what keeps Spark from starting.
    """
    # Imported here, since no other command should wait for Spark to be loaded.
    from tsoffset.kafka.clients import CLIENTS
    from tsoffset.spark.session import spark_session

    plans_here = only_plan and "spark.master" not in selection.settings.spark
    with ExitStack() as stack:
        stack.callback(CLIENTS.close_idle, all_of_them=True)

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(selection.settings.spark))

        if not plans_here:
            with progress("starting Spark", wanted=notices.format is LogFormat.CONSOLE):
                session()

        def cycles_of(flow: FlowSettings) -> FlowCycles:
            from tsoffset.group_sync.state import FlowCarryOver, StateFile
            from tsoffset.spark.flow import FlowTask

            carry_over, file = FlowCarryOver(), None
            directory = state or selection.settings.state_dir
            if directory is not None:
                file = StateFile.of(directory, flow, selection.narrowing)
                carry_over, warning = file.load()
                if warning is not None:
                    notices.warning("state_not_read", warning)
            task = FlowTask(selection.configuration, flow.name, selection.narrowing, connect)
            return FlowCycles(session, plans_here, task, flow, carry_over, file, notices)

        yield cycles_of
