"""`plan`, `sync`, `run`, and `lists`, which `run` heeds."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Unpack

import click

from tsoffset.cli.carrying_out import EXIT_STATUS, carried_out, choose, told
from tsoffset.commands.options import (
    CONFIG,
    FLOW,
    FORMAT,
    OUTCOME,
    REASON,
    STATE,
    WIDE,
    YES,
    Choice,
    daemon_logs,
    in_order,
    quiet_logs,
    selection,
)
from tsoffset.errors import UsageError
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

if TYPE_CHECKING:
    from tsoffset.terminal.row_columns import RowFilter


@click.command(
    short_help="Show what `sync` would commit.",
    epilog=f"""\b
Examples:
  tsoffset plan -c mm2.properties
  tsoffset plan -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset plan -c mm2.properties --outcome failed --outcome skipped

{EXIT_STATUS}""",
)
@selection
@OUTCOME
@REASON
@FORMAT
@WIDE
@STATE
@quiet_logs
@carried_out
def plan(
    notices: Notices,
    *,
    outcomes: tuple[str, ...],
    reasons: tuple[str, ...],
    format: Format,
    wide: bool,
    state: str | None,
    **choice: Unpack[Choice],
) -> int:
    """Show what `sync` would commit.

    Runs one cycle that commits nothing. Prints a row for each group-partition that has a committed
    offset on the source: its target offset, the precision of that offset, and the reason where the
    row is skipped.
    """
    from tsoffset.commands.plan_sync import run_once

    chosen, output = choose(notices, **choice), Output(sys.stdout, format, wide=wide)
    only = _only(outcomes, reasons)
    return run_once(chosen, output, notices, commit=False, state=state, only=only)


@click.command(
    short_help="Translate all offsets and commit them on the target, once.",
    epilog=f"""\b
Examples:
  tsoffset sync -c mm2.properties
  tsoffset sync -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset sync -c mm2.properties --format json | jq 'select(.outcome == "failed")'
  tsoffset sync -c mm2.properties --groups billing --allow-rewind

{EXIT_STATUS}""",
)
@selection
@click.option(
    "--allow-rewind",
    is_flag=True,
    help="Also rewind groups that are ahead of their translated offset on the target. A snapshot"
    " is written first, and you are asked to confirm.",
)
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --allow-rewind: use this snapshot of the groups' current offsets.  [default: a new"
    " one is written]",
)
@YES
@OUTCOME
@REASON
@FORMAT
@WIDE
@STATE
@quiet_logs
@carried_out
def sync(
    notices: Notices,
    *,
    allow_rewind: bool,
    snapshot: Path | None,
    yes: bool,
    outcomes: tuple[str, ...],
    reasons: tuple[str, ...],
    format: Format,
    wide: bool,
    state: str | None,
    **choice: Unpack[Choice],
) -> int:
    """Translate all groups' offsets and commit them on the target, once.

    Never moves a group backwards unless --allow-rewind is given. Skips groups that have active
    members on the target. With sync.group.offsets.enabled = false, commits nothing, like `plan`.
    """
    from tsoffset.commands.plan_sync import run_once
    from tsoffset.commands.snapshots.rewinding import Rewinding

    if not allow_rewind and (snapshot is not None or yes):
        raise UsageError(
            "sync: --snapshot and --yes need --allow-rewind; add it, or leave them out"
        )
    chosen, output = choose(notices, **choice), Output(sys.stdout, format, wide=wide)
    rewinding = Rewinding.asked_for(chosen, snapshot, yes=yes) if allow_rewind else None
    only = _only(outcomes, reasons)
    return run_once(
        chosen, output, notices, commit=True, state=state, rewinding=rewinding, only=only
    )


def _only(outcomes: tuple[str, ...], reasons: tuple[str, ...]) -> "RowFilter | None":
    from tsoffset.terminal.row_columns import RowFilter

    return RowFilter(outcomes, reasons) if outcomes or reasons else None


@click.command(
    short_help="Run as a daemon: a cycle of each flow at every interval.",
    epilog="""\b
Examples:
  tsoffset run -c mm2.properties
  tsoffset run -c mm2.properties --log-format json

\b
Exit status:
  0  stopped by SIGTERM or Ctrl-C
  1  Spark could not be started
  2  bad usage or configuration""",
)
@selection
@daemon_logs
@carried_out
def run(notices: Notices, **choice: Unpack[Choice]) -> int:
    """Run as a daemon: a cycle of each flow at every interval.

    The interval is sync.group.offsets.interval.seconds. Each flow runs in its own thread, and all
    flows share one Spark session. A failed cycle is logged, and the next one runs at its time; an
    unreachable cluster does not stop the daemon. A changed configuration file is loaded
    automatically, or immediately on SIGHUP. SIGTERM and Ctrl-C stop the daemon within ten seconds.
    """
    from tsoffset.commands.run import run_daemon
    from tsoffset.commands.scope import warn_of_no_match
    from tsoffset.config.selection import Selector
    from tsoffset.daemon.signals import Ending

    selector = Selector(**choice)
    selection = told(selector.select(), notices)
    warn_of_no_match(selection, notices)
    if run_daemon(selector, selection) is Ending.ABANDONED:
        _leave_at_once()
    return 0


def _leave_at_once() -> NoReturn:
    """End the process although a thread hangs; Spark's JVM ends with its parent's pipe."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _list_options(work: Callable[..., int]) -> Callable[..., int]:
    """Options that add to each of the four lists and take from it."""
    for key in ("topics.exclude", "topics", "groups.exclude", "groups"):
        option = f"--{key.replace('.', '-')}"
        work = click.option(
            f"{option}-remove",
            multiple=True,
            metavar="ENTRY",
            help=f"Remove this entry from `{key}`, wherever it was added.",
        )(work)
        work = click.option(
            f"{option}-add",
            multiple=True,
            metavar="REGEX",
            help=f"Add a name or regular expression to `{key}`.",
        )(work)
    return work


@click.command(
    short_help="Show or change which groups and topics a flow selects.",
    epilog="""\b
Examples:
  tsoffset lists -c mm2.properties
  tsoffset lists -c mm2.properties --flow 'A->B' --groups-add 'billing-.*'
  tsoffset lists -c mm2.properties --flow 'A->B' --topics-exclude-add audit --groups-remove search
  tsoffset lists -c mm2.properties --flow 'A->B' --reset

\b
Exit status:
  0  done
  1  the change is saved, but a running daemon has not applied it
  2  bad usage or configuration""",
)
@in_order(CONFIG, FLOW)
@_list_options
@click.option(
    "--reset", is_flag=True, help="Undo all changes, so that only the configuration file applies."
)
@FORMAT
@WIDE
@quiet_logs
@carried_out
def lists(
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    flows: tuple[str, ...],
    reset: bool,
    format: Format,
    wide: bool,
    **entries: tuple[str, ...],
) -> int:
    """Show which groups and topics a flow selects, or change the selection.

    Changes are saved in `state.dir`, not in the configuration file, and apply to every command that
    uses the same file. A running `tsoffset run` applies them in its next cycle, and this command
    asks it to confirm that. Commits nothing and connects to no cluster.
    """
    from tsoffset.commands.lists import run_lists
    from tsoffset.config.overrides import LIST_KEYS

    selection = choose(notices, config=config, strict=strict, flows=flows, groups=None, topics=None)
    changes = {}
    for key in LIST_KEYS:
        name = key.replace(".", "_")
        changes[key] = (entries[f"{name}_add"], entries[f"{name}_remove"])
    output = Output(sys.stdout, format, wide=wide)
    return run_lists(selection, changes, output, notices, reset=reset)
