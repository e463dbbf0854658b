"""`tsoffset plan` and `tsoffset sync`: one cycle of each flow."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog
from rich.text import Text

from tsoffset.cluster import Connect
from tsoffset.commands.cycles import flow_cycles
from tsoffset.commands.scope import on_cluster, require_match
from tsoffset.config.selection import Selection, only_planned
from tsoffset.errors import CycleFailed
from tsoffset.flow.settings import FlowSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import Row
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, Tally
from tsoffset.terminal.rows import cycle_lines

if TYPE_CHECKING:
    from tsoffset.commands.snapshots.rewinding import Rewinding
    from tsoffset.spark.flow import CycleResult
    from tsoffset.terminal.row_columns import RowFilter

log = structlog.get_logger(__name__)


def run_once(
    selection: Selection,
    output: Output,
    notices: Notices,
    *,
    commit: bool,
    state: str | None = None,
    rewinding: "Rewinding | None" = None,
    only: "RowFilter | None" = None,
    connect: Connect = KafkaCluster,
) -> int:
    """Run one cycle of each flow, print its rows, and return the exit status.

    `state` as in `flow_cycles`; `rewinding` is what of the groups goes back after that.
    `only` says which rows are printed. A cycle
    that Spark gives up on costs its own flow only. Raises what keeps Spark from starting, what
    `Rewinding.rows` does, and UsageError where nothing matches.
    """
    require_match(selection, notices, on_cluster(selection.narrowing, connect))
    statuses = [0]
    done: list[tuple[FlowSettings, Sequence[Row]]] = []
    with flow_cycles(selection, notices, connect, only_plan=not commit, state=state) as cycles_of:
        for flow in selection.flows:
            if output.closed and not commit:
                break
            if commit and not flow.commits:
                notices.warning("flow_only_planned", only_planned(flow))
            cycles = cycles_of(flow)
            started = time.monotonic()
            try:
                result = cycles.run(commit=commit)
            except CycleFailed as error:
                notices.error(error, trace=False)
                statuses.append(error.exit_status)
                continue
            status = hand_over(
                result,
                output,
                notices,
                commits=commit and flow.commits,
                started=started,
                config=selection.configuration.path,
                only=only,
            )
            statuses.append(status)
            done.append((flow, result.rows))
    if rewinding is not None:
        for flow, rows in done:
            if flow.commits and (back := rewinding.rows(flow, rows, notices)):
                tally = Tally.of(back)
                config = selection.configuration.path
                output.show(Row, back, partial(_went_back, flow.name, back, tally, config))
                statuses.append(exit_status(tally, unreachable=False))
    return max(statuses)


def _went_back(
    flow: str, rows: Sequence[Row], tally: Tally, config: str, width: int | None
) -> Iterator[Text]:
    return cycle_lines(f"{flow}, back", rows, tally.in_words, config, width)


def hand_over(
    result: "CycleResult",
    output: Output,
    notices: Notices,
    *,
    commits: bool,
    started: float,
    config: str,
    only: "RowFilter | None" = None,
) -> int:
    """Write the cycle's rows to standard output, then say in the log that it has finished, and
    return the flow's exit status.

    `only` says which rows are written; the summary and the status count all.
    A summary stands below the table, else it is for a person alone. `config` is the file of the
    configuration, which next steps name. `started` is when the cycle
    began, in seconds of the monotonic clock: what it took, it took with all that is written here.
    """
    from tsoffset.spark.flow import Rows
    from tsoffset.terminal.row_columns import encoded, tally_of

    tally = tally_of(result.rows.table)
    shown = result.rows if only is None else Rows(only.of(result.rows.table))

    def seconds() -> float:
        return time.monotonic() - started

    def summary() -> str:
        printed = "" if only is None else f"; {len(shown)} of {len(result.rows)} rows printed"
        return f"{tally.in_words()}{printed}; {seconds():.1f} s"

    try:
        if output.format is Format.TABLE:
            output.lines(cycle_lines(result.flow, list(shown), summary, config, output.width))
        else:
            output.encoded(shown.table.schema.names, encoded(shown.table, output.format))
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
