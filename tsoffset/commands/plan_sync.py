"""`tsoffset plan` and `tsoffset sync`: one cycle of each flow."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from tsoffset.commands.cycles import flow_cycles
from tsoffset.commands.options import (
    EXIT_STATUS,
    INPUT_FILE,
    OUTCOME,
    OUTPUT,
    REASON,
    SELECTION,
    STATE,
    YES,
    command,
    flag,
    require_terminal,
)
from tsoffset.commands.scope import require_match
from tsoffset.errors import CycleFailed, UsageError
from tsoffset.model import Row
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings
    from tsoffset.group_sync.flow_cycle import CycleResult
    from tsoffset.terminal.output import Tally

log = structlog.get_logger(__name__)


@command(
    "Show what `sync` would commit.",
    f"""\b
Examples:
  tsoffset plan -c mm2.properties
  tsoffset plan -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset plan -c mm2.properties --outcome failed --outcome skipped

{EXIT_STATUS}""",
    *(*SELECTION, OUTCOME, REASON, *OUTPUT, STATE),
)
def plan(selection: "Selection", output: Output, notices: Notices, **options: Any) -> int:
    """Show what `sync` would commit.

    Runs one cycle that commits nothing. Prints a row for each group-partition that has a committed
    offset on the source: its target offset, the precision of that offset, and the reason where the
    row is skipped.
    """
    return run_once(selection, output, notices, commit=False, **options)


@command(
    "Translate all offsets and commit them on the target, once.",
    f"""\b
Examples:
  tsoffset sync -c mm2.properties
  tsoffset sync -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset sync -c mm2.properties --format json | jq 'select(.outcome == "failed")'
  tsoffset sync -c mm2.properties --groups billing --allow-rewind

{EXIT_STATUS}""",
    *SELECTION,
    flag(
        "--allow-rewind",
        "Also rewind groups that are ahead of their translated offset on the target. A"
        " snapshot is written first, and you are asked to confirm.",
    ),
    click.option(
        "--snapshot",
        type=INPUT_FILE,
        metavar="FILE",
        help="With --allow-rewind: use this snapshot of the groups' current offsets.  [default: a"
        " new one is written]",
    ),
    *(YES, OUTCOME, REASON, *OUTPUT, STATE),
    commits=True,
)
def sync(
    selection: "Selection",
    output: Output,
    notices: Notices,
    *,
    allow_rewind: bool,
    snapshot: Path | None,
    yes: bool,
    **options: Any,
) -> int:
    """Translate all groups' offsets and commit them on the target, once.

    Never moves a group backwards unless --allow-rewind is given. Skips groups that have active
    members on the target. With sync.group.offsets.enabled = false, commits nothing, like `plan`.
    """
    if not allow_rewind and (snapshot is not None or yes):
        raise UsageError(
            "sync: --snapshot and --yes need --allow-rewind; add it, or leave them out"
        )
    rewinds = None
    if allow_rewind:
        from tsoffset.commands.snapshots.file import Snapshot
        from tsoffset.commands.snapshots.run import rewind

        # Checked before the cycle, because the rewind after it needs both.
        require_terminal(yes=yes)
        existing = None if snapshot is None else (Snapshot.read(snapshot), snapshot)
        rewinds = partial(rewind, selection, existing=existing, notices=notices, yes=yes)
    return run_once(selection, output, notices, commit=True, rewinds=rewinds, **options)


def run_once(
    selection: "Selection",
    output: Output,
    notices: Notices,
    *,
    commit: bool,
    state: str | None = None,
    rewinds: "Callable[[FlowSettings, Iterable[Row]], list[Row]] | None" = None,
    outcomes: tuple[str, ...] = (),
    reasons: tuple[str, ...] = (),
) -> int:
    """Run one cycle of each flow, print its rows, and return the exit status.

    `state` is as in `flow_cycles`; `rewinds` moves groups back after the cycles of all flows, and
    returns their rows. `outcomes` and `reasons`, if there are any, select the rows that are
    printed. If Spark gives up a cycle, only this flow fails. Raises the error if Spark cannot
    start, the errors of `rewinds`, and UsageError if nothing matches.
    """
    from tsoffset.config.selection import plan_only_notice
    from tsoffset.group_sync.rows import rows_table
    from tsoffset.terminal.row_columns import tally_of
    from tsoffset.terminal.rows import cycle_lines

    unreachable = require_match(selection, notices)
    statuses = [0]
    config = selection.configuration.path
    finished: list[tuple[FlowSettings, Iterable[Row]]] = []
    with flow_cycles(
        selection, notices, only_plan=not commit, state=state, unreachable=unreachable
    ) as cycles_of:
        for flow in selection.flows:
            if output.closed and not commit:
                break
            if commit and not flow.commits:
                notices.warning("flow_only_planned", plan_only_notice(flow))
            run_cycle = cycles_of(flow)
            started = time.monotonic()
            try:
                result = run_cycle(commit=commit)
            except CycleFailed as error:
                notices.error(error, trace=False)
                statuses.append(error.exit_status)
                continue
            status = print_cycle(
                result,
                output,
                notices,
                commits=commit and flow.commits,
                started=started,
                config=config,
                outcomes=outcomes,
                reasons=reasons,
            )
            statuses.append(status)
            if not result.unreachable:
                finished.append((flow, result.rows))
    for flow, rows in finished:
        if rewinds is None or not flow.commits:
            continue
        if rewound := rewinds(flow, rows):
            tally, title = tally_of(rows_table(rewound)), f"{flow.name}, rewound"
            output.show(Row, rewound, partial(cycle_lines, title, rewound, tally.in_words, config))
            statuses.append(exit_status(tally, unreachable=False))
    return max(statuses)


def print_cycle(
    result: "CycleResult",
    output: Output,
    notices: Notices,
    *,
    commits: bool,
    started: float,
    config: str,
    outcomes: tuple[str, ...] = (),
    reasons: tuple[str, ...] = (),
) -> int:
    """Print the cycle's rows, log that it has finished, and return the flow's exit status.

    `outcomes` and `reasons`, if there are any, select the rows that are printed; the summary and
    the status count all rows. `config` is the configuration file that next steps name. `started` is
    when the cycle began, in seconds of the monotonic clock: its duration includes the printing.
    """
    from tsoffset.group_sync.rows import Rows
    from tsoffset.terminal.row_columns import encode_rows, filter_rows, tally_of
    from tsoffset.terminal.rows import cycle_lines

    tally = tally_of(result.rows.table)
    shown = Rows(filter_rows(result.rows.table, outcomes=outcomes, reasons=reasons))

    def summary() -> str:
        is_narrowed = bool(outcomes or reasons)
        printed = f"; {len(shown)} of {len(result.rows)} rows printed" if is_narrowed else ""
        return f"{tally.in_words()}{printed}; {time.monotonic() - started:.1f} s"

    try:
        if output.format is Format.TABLE:
            output.lines(cycle_lines(result.flow, list(shown), summary, config, output.width))
        else:
            output.write_encoded(shown.table.schema.names, encode_rows(shown.table, output.format))
        output.flush()
    finally:
        # The offsets are committed, whether printing succeeds or not.
        seconds = time.monotonic() - started
        log.info("cycle_finished", **result.facts(tally, commits=commits, seconds=seconds))
    if output.format is not Format.TABLE:
        notices.note(f"{result.flow}: {summary()}")
    return exit_status(tally, unreachable=result.unreachable)


def exit_status(tally: "Tally", *, unreachable: bool) -> int:
    """One flow's exit status: 3 if a cluster could not be reached, 1 if a row failed, else 0."""
    return 3 if unreachable else int(tally.failed > 0)
