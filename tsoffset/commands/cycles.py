"""Runs cycles of flows for commands, in one Spark session, or in this process if a small flow is
only planned."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

from tsoffset.terminal.notices import Notices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tsoffset.config.selection import Selection
    from tsoffset.errors import ClusterUnreachable
    from tsoffset.flow.settings import FlowSettings
    from tsoffset.group_sync.flow_cycle import CycleResult


class RunCycle(Protocol):
    """Runs one cycle of a flow, prints its warnings, and saves the cache unless `keep` is false.
    Raises CycleFailed."""

    def __call__(self, *, commit: bool, keep: bool = True) -> "CycleResult": ...


@contextmanager
def flow_cycles(
    selection: "Selection",
    notices: Notices,
    *,
    only_plan: bool,
    state: str | None = None,
    unreachable: "Mapping[str, ClusterUnreachable] | None" = None,
) -> "Iterator[Callable[[FlowSettings], RunCycle]]":
    """Yield a function that opens the cycles of a flow; Spark, if it was started, ends with the
    block.

    Spark starts with the first cycle that needs it: cycles that `only_plan` need it only if they
    are large, or if `spark.master` is set. `state` is a folder or URI for the cache; None means
    `state.dir`. `unreachable` has the error of each flow (by name) that is known to be unreachable.
    A cycle raises the error if Spark cannot start.
    """
    from tsoffset.group_sync.flow_cycle import FlowTask, unreachable_cycle
    from tsoffset.group_sync.state import FlowCache, StateFile, reverse_commits
    from tsoffset.kafka.clients import CLIENTS
    from tsoffset.spark.dataflow import plan_cycle, run_cycle
    from tsoffset.spark.session import spark_session

    plans_here = only_plan and "spark.master" not in selection.settings.spark
    directory = state or selection.settings.state_dir
    with ExitStack() as stack:
        stack.callback(CLIENTS.close_idle, all_of_them=True)

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(selection.settings.spark))

        def cycles_of(flow: "FlowSettings") -> RunCycle:
            cached, file = FlowCache(), None
            if directory is not None:
                file = StateFile.of(directory, flow, selection.narrowing)
                cached, warning = file.load()
                if warning is not None:
                    notices.warning("state_not_read", warning)
            task = FlowTask(selection.configuration, flow.name, selection.narrowing)

            def run(*, commit: bool, keep: bool = True) -> "CycleResult":
                # Only a daemon uses a list of groups for several cycles.
                cached.listed_at = None
                flows = selection.settings.flows
                cached.reverse = reverse_commits(directory, flow, flows, cached.reverse)
                commit = commit and flow.commits
                if commit:
                    selection.require_known_lists(flow)
                if (error := (unreachable or {}).get(flow.name)) is not None:
                    return unreachable_cycle(flow, error)
                if not plans_here:
                    with notices.progress("starting Spark"):
                        session()
                with notices.progress(flow.name) as report:
                    result = (
                        plan_cycle(session, task, cache=cached, progress=report)
                        if plans_here
                        else run_cycle(
                            session(), task, commit=commit, cache=cached, progress=report
                        )
                    )
                if keep and file is not None and (warning := file.save(cached)):
                    notices.warning("state_not_written", warning)
                for warning in result.warnings_of(flow):
                    notices.warning("cycle_warning", warning)
                return result

            return run

        yield cycles_of
