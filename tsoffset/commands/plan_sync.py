"""`tsoffset plan` and `tsoffset sync`: one cycle of each flow, in one Spark session."""

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import structlog

from tsoffset.config.selection import Selection, only_planned
from tsoffset.errors import CycleFailed
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, Tally
from tsoffset.terminal.progress import progress
from tsoffset.terminal.rows import cycle_lines

if TYPE_CHECKING:
    from tsoffset.spark.flow import CycleResult

log = structlog.get_logger(__name__)


def run_once(
    selection: Selection,
    output: Output,
    notices: Notices,
    *,
    commit: bool,
    state: str | None = None,
) -> int:
    """Run one cycle of each flow, print its rows, and return the exit status.

    `state` is a folder or a URI at which what a cycle learns is kept for the next one; None takes
    `state.dir`, where the configuration has it. A cycle that Spark gives up on costs its own
    flow only. Raises what keeps Spark from starting.
    """
    # Imported here, since no other command should wait for Spark to be loaded.
    from tsoffset.spark.dataflow import run_cycle
    from tsoffset.spark.flow import FlowCarryOver, FlowTask
    from tsoffset.spark.session import spark_session
    from tsoffset.spark.state import StateFile

    wanted = notices.format is LogFormat.CONSOLE
    statuses = [0]
    with ExitStack() as stack:
        with progress("starting Spark", wanted=wanted):
            session = stack.enter_context(spark_session(selection.settings.spark))
        for flow in selection.flows:
            if output.closed and not commit:
                break
            if commit and not flow.commits:
                notices.warning("flow_only_planned", only_planned(flow))
            task = FlowTask(selection.configuration, flow.name, selection.narrowing)
            carry_over, file = FlowCarryOver(), None
            if (directory := state or selection.settings.state_dir) is not None:
                file = StateFile(directory, flow.name, selection.narrowing)
                carry_over, warning = file.load()
                if warning is not None:
                    notices.warning("state_not_read", warning)
            started = time.monotonic()
            try:
                with progress(flow.name, wanted=wanted) as report:
                    result = run_cycle(
                        session,
                        task,
                        commit=commit and flow.commits,
                        carry_over=carry_over,
                        progress=report,
                    )
            except CycleFailed as error:
                notices.error(error, trace=False)
                statuses.append(error.exit_status)
                continue
            if file is not None and (warning := file.save(carry_over)) is not None:
                notices.warning("state_not_written", warning)
            for warning in result.warnings:
                notices.warning("cycle_warning", warning)
            status = hand_over(
                result,
                output,
                notices,
                commits=commit and flow.commits,
                started=started,
            )
            statuses.append(status)
    return max(statuses)


def hand_over(
    result: "CycleResult",
    output: Output,
    notices: Notices,
    *,
    commits: bool,
    started: float,
) -> int:
    """Write the cycle's rows to standard output, then say in the log that it has finished, and
    return the flow's exit status.

    A summary stands below the table, else it is for a person alone. `started` is when the cycle
    began, in seconds of the monotonic clock: what it took, it took with all that is written here.
    """
    from tsoffset.terminal.row_columns import encoded, tally_of

    table = result.rows.table
    tally = tally_of(table)

    def seconds() -> float:
        return time.monotonic() - started

    def summary() -> str:
        return f"{tally.in_words()}; {seconds():.1f} s"

    try:
        if output.format is Format.TABLE:
            output.lines(cycle_lines(result.flow, list(result.rows), summary, output.width))
        else:
            output.encoded(table.schema.names, encoded(table, output.format))
        output.flush()
    finally:
        # Groups have been moved, whatever becomes of the printing.
        fields = result.facts(tally, commits=commits, seconds=seconds())
        log.info("cycle_finished", **fields)
    if output.format is not Format.TABLE:
        notices.note(f"{result.flow}: {summary()}")
    return exit_status(tally, unreachable=result.unreachable)


def exit_status(tally: Tally, *, unreachable: bool) -> int:
    """Of one flow: 3 where a cluster could not be reached, 1 where a row failed, else 0."""
    return 3 if unreachable else int(tally.failed > 0)
