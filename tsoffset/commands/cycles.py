"""Runs cycles of flows for commands, in one Spark session, or in this process if a small flow is
only planned."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tsoffset.commands.options import kafka_cluster
from tsoffset.terminal.notices import Notices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tsoffset.cluster import Connect
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings
    from tsoffset.group_sync.state import FlowCarryOver, StateFile
    from tsoffset.spark.flow import CycleResult, FlowTask


@dataclass(frozen=True, slots=True)
class FlowCycles:
    """The cycles of one flow.

    `session` starts Spark if it is not started yet. Cycles that plan in this process (`plans_here`)
    do without Spark while they are small.
    """

    session: "Callable[[], SparkSession]"
    plans_here: bool
    task: "FlowTask"
    flow: "FlowSettings"
    carry_over: "FlowCarryOver"
    file: "StateFile | None"
    notices: Notices

    def run(self, *, commit: bool, keep: bool = True) -> "CycleResult":
        """Run one cycle, print its warnings, and save the cache unless `keep` is false. Raises
        CycleFailed."""
        from tsoffset.spark.dataflow import plan_cycle, run_cycle

        commit, carry_over = commit and self.flow.commits, self.carry_over
        with self.notices.progress(self.flow.name) as report:
            if self.plans_here:
                result = plan_cycle(self.session, self.task, carry_over=carry_over, progress=report)
            else:
                result = run_cycle(
                    self.session(), self.task, commit=commit, carry_over=carry_over, progress=report
                )
        if keep and self.file is not None and (warning := self.file.save(carry_over)):
            self.notices.warning("state_not_written", warning)
        for warning in result.warnings:
            self.notices.warning("cycle_warning", warning)
        return result


@contextmanager
def flow_cycles(
    selection: "Selection",
    notices: Notices,
    connect: "Connect",
    *,
    only_plan: bool,
    state: str | None = None,
) -> "Iterator[Callable[[FlowSettings], FlowCycles]]":
    """Yield a function that makes the cycles of a flow; Spark, if it was started, ends with the
    block.

    Cycles that `only_plan` start Spark only if they are large, or if `spark.master` is set. `state`
    is a folder or URI for the cache; None means `state.dir`. Raises what keeps Spark from starting.
    """
    from tsoffset.group_sync.state import FlowCarryOver, StateFile
    from tsoffset.kafka.clients import CLIENTS
    from tsoffset.spark.flow import FlowTask
    from tsoffset.spark.session import spark_session

    plans_here = only_plan and "spark.master" not in selection.settings.spark
    # Executors have their own function for this, which loads nothing of the commands.
    given: dict[str, Connect] = {} if connect is kafka_cluster else {"connect": connect}
    with ExitStack() as stack:
        stack.callback(CLIENTS.close_idle, all_of_them=True)

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(selection.settings.spark))

        if not plans_here:
            with notices.progress("starting Spark"):
                session()

        def cycles_of(flow: "FlowSettings") -> FlowCycles:
            carry_over, file = FlowCarryOver(), None
            directory = state or selection.settings.state_dir
            if directory is not None:
                file = StateFile.of(directory, flow, selection.narrowing)
                carry_over, warning = file.load()
                if warning is not None:
                    notices.warning("state_not_read", warning)
            task = FlowTask(selection.configuration, flow.name, selection.narrowing, **given)
            return FlowCycles(session, plans_here, task, flow, carry_over, file, notices)

        yield cycles_of
