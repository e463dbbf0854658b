"""`tsoffset failover` as the command line calls it.

With both clusters there it runs cycles until nothing is left to be gained, and what these find is
the verdict. With the source away the verdict is what past cycles have left. It ends with the flow
paused, and what to do next.
"""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from tsoffset.cluster import Connect
from tsoffset.commands.cycles import FlowCycles, flow_cycles
from tsoffset.commands.failover.last_known import known_pairs, unverified
from tsoffset.commands.failover.report import failover_lines, in_words
from tsoffset.commands.failover.verdicts import (
    SOURCE_ACTIVE,
    GroupVerdict,
    Verdict,
    in_utc,
    verdicts,
)
from tsoffset.commands.options import kafka_cluster, only_flow
from tsoffset.commands.scope import on_cluster, require_match
from tsoffset.config.selection import Selection
from tsoffset.daemon.pauses import Pauses, why_not_kept
from tsoffset.errors import ClusterRefused, ClusterUnreachable, UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import Side
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

log = structlog.get_logger(__name__)

# Between cycles, and how long nothing may change until nothing more is waited for: a replicator
# that is at work is seen to be within that time.
_PAUSE_SECONDS = 1.0
_STABLE_SECONDS = 5.0
_NOTHING_COMMITTED = (
    "failover {flow}: the selected groups have no committed offset in the selected topics on "
    "cluster {cluster}, so there is nothing to fail over."
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a failover came to; `away` says why the source, or the target, could not be asked."""

    verdicts: Sequence[GroupVerdict]
    source_away: ClusterUnreachable | None = None
    target_away: ClusterUnreachable | None = None

    @property
    def not_ready(self) -> bool:
        """Whether some group cannot move over."""
        return any(one.verdict is Verdict.NOT_READY for one in self.verdicts)

    @property
    def none_ready(self) -> bool:
        """Whether no group can move over."""
        return all(one.verdict is Verdict.NOT_READY for one in self.verdicts)

    @property
    def still_read(self) -> bool:
        """Whether some group still has consumers on the source."""
        return any(SOURCE_ACTIVE in (one.reason or "").split() for one in self.verdicts)

    @property
    def exit_status(self) -> int:
        """3 where a cluster is away, 1 where a group is not ready, else 0."""
        return 3 if self.source_away or self.target_away else int(self.not_ready)


def run_failover(
    selection: Selection,
    output: Output,
    notices: Notices,
    *,
    timeout_seconds: float,
    pause: bool,
    resume: bool,
    dry_run: bool = False,
    connect: Connect = kafka_cluster,
) -> int:
    """Let the one flow selected fail over, print the verdicts, and return the exit status; with
    `dry_run` say what that would come to, and change nothing; with `resume` end its pause, and
    nothing else. Raises UsageError and CycleFailed."""
    flow = only_flow(selection, "failover")
    if resume:
        return _resume(selection, flow, notices)
    if not flow.commits:
        raise UsageError(
            f"failover: sync.group.offsets.enabled of {flow.name} is false, so nothing can be"
            " committed; set it to true, or write the offsets with `tsoffset export`"
        )
    # A pause is of all groups, and of a failover that takes place.
    pause = pause and not selection.narrowing.narrows
    lost = why_not_kept(selection.settings.state_dir) if pause else None
    if lost is not None:
        notices.warning(
            "pause_not_kept",
            f"failover {flow.name}: {lost}, so the flow cannot be paused after the failover, and a"
            " running `tsoffset run` would continue to commit for groups that have moved. Set"
            " state.dir, stop `tsoffset run` first, or use --no-pause if none runs.",
        )
    found = _found(selection, flow, notices, None if dry_run else timeout_seconds, connect)
    paused = None
    if pause and found.target_away is None and not found.still_read:
        paused = lost is None if dry_run else set_paused(selection, flow, True)
    for away in (found.source_away, found.target_away):
        if away is not None:
            notices.warning("cluster_unreachable", str(away))
    config = selection.configuration.path
    steps = next_steps(flow, found, config, paused=paused, dry_run=dry_run)
    lines = partial(failover_lines, flow.name, found.verdicts, steps, config)
    output.show(GroupVerdict, found.verdicts, lines)
    log.info(
        "failover_finished",
        flow=flow.name,
        dry_run=dry_run,
        paused=paused and not dry_run,
        result=in_words(found.verdicts),
    )
    if output.format is not Format.TABLE:
        for sentence in (f"{flow.name}: {in_words(found.verdicts)}", *steps):
            notices.note(sentence)
    return found.exit_status


def _found(
    selection: Selection,
    flow: FlowSettings,
    notices: Notices,
    timeout_seconds: float | None,
    connect: Connect,
) -> Found:
    """The verdicts, of final cycles or of what is left; without a timeout of a plan, which changes
    nothing. Raises CycleFailed,
    ClusterUnreachable (for a cluster that comes and goes), and UsageError where there is nothing to
    fail over."""
    source_away, target_away = _away(flow.source, connect), _away(flow.target, connect)
    if source_away is None and target_away is None:
        names_of = on_cluster(selection.narrowing, connect)
        require_match(selection, notices, names_of, must_have_groups=True)
        only_plan = timeout_seconds is None
        with flow_cycles(selection, notices, connect, only_plan=only_plan) as cycles_of:
            found = final_cycles(cycles_of(flow), flow, timeout_seconds, connect)
        if found == []:
            raise UsageError(_NOTHING_COMMITTED.format(flow=flow.name, cluster=flow.source.alias))
        if found is not None:
            return Found(found)
        source_away, target_away = _away(flow.source, connect), _away(flow.target, connect)
        if source_away is None and target_away is None:
            raise ClusterUnreachable(
                f"failover {flow.name}: a cluster was unreachable for a moment; run this command"
                " again"
            )
    if target_away is not None:
        return Found((), source_away, target_away)
    with connect(flow.target) as target:
        known = known_pairs(selection.settings, flow)
        found = unverified(flow, target, known, time.time())
    if not found:
        notices.warning("cluster_unreachable", str(source_away))
        listed = on_cluster(Narrowing(), connect, Side.TARGET)
        require_match(selection, notices, listed, must_have_groups=True)
        raise UsageError(_NOTHING_COMMITTED.format(flow=flow.name, cluster=flow.target.alias))
    return Found(found, source_away)


def _away(settings: ClusterSettings, connect: Connect) -> ClusterUnreachable | None:
    """Why a cluster cannot be asked; None where it can."""
    with connect(settings) as cluster:
        try:
            cluster.describe()
        except ClusterUnreachable as error:
            return error
    return None


def final_cycles(
    cycles: FlowCycles, flow: FlowSettings, timeout_seconds: float | None, connect: Connect
) -> list[GroupVerdict] | None:
    """Cycles until each group is ready, or none has changed for a while, or the time is over: what
    the last of them found; without a timeout one plan. None where a cluster is away. Raises
    CycleFailed."""
    commit = timeout_seconds is not None
    started = since = time.monotonic()
    before: object = None
    while True:
        try:
            # Asked before the cycle: a consumer that leaves has committed before.
            with connect(flow.source) as source:
                listings = source.groups()
        except ClusterUnreachable:
            return None
        result = cycles.run(commit=commit, keep=commit)
        if result.unreachable:
            return None
        rows = list(result.rows)
        active = {name for name, one in listings.groups.items() if one.active}
        if listings.failed_brokers:
            # Those that no broker listed may have consumers, too.
            active |= {row.group for row in rows if row.group is not None} - listings.groups.keys()
        found = verdicts(flow.name, rows, active, in_utc(time.time()))
        now = time.monotonic()
        facts = [(row.group, row.source_offset, row.target_offset, row.reason) for row in rows]
        if facts != before:
            before, since = facts, now
        if (
            timeout_seconds is None
            or all(one.verdict is Verdict.READY for one in found)
            or now - since >= _STABLE_SECONDS
            or now - started >= timeout_seconds
        ):
            return found
        time.sleep(_PAUSE_SECONDS)


def set_paused(selection: Selection, flow: FlowSettings, paused: bool) -> bool:
    """Tell a running daemon to leave the flow alone, or to go on with it; whether that is kept."""
    directory = selection.settings.state_dir
    if directory is None:
        return False
    Pauses(directory).set(flow.name, paused)
    return is_paused(directory, flow) is paused


def is_paused(directory: str, flow: FlowSettings) -> bool:
    """Whether `state.dir` has a pause of the flow."""
    kept = Pauses(directory)
    kept.look([flow.name])
    return kept.paused(flow.name)


def _resume(selection: Selection, flow: FlowSettings, notices: Notices) -> int:
    directory = selection.settings.state_dir
    was_paused = directory is not None and is_paused(directory, flow)
    if not set_paused(selection, flow, False):
        raise UsageError(
            f"failover: the pause of {flow.name} is kept in state.dir, which is not set or cannot"
            " be written; resume the flow on the status page, or restart `tsoffset run`"
        )
    notices.note(
        f"{flow.name} is no longer paused: `tsoffset run` continues with its next cycle."
        if was_paused
        else f"{flow.name} was not paused; nothing was changed."
    )
    return 0


def next_steps(
    flow: FlowSettings, found: Found, config: str, *, paused: bool | None, dry_run: bool
) -> list[str]:
    """What to do next, or after a `dry_run` what a failover would say; `paused` tells whether the
    flow could be paused, None where it was not to be. `config` is the file that commands take."""
    here, there = flow.source.alias, flow.target.alias
    if found.target_away:
        return [f"Follow the message about {there}, and run this command again."]
    steps = []
    if dry_run:
        steps.append(
            "This was a dry run: nothing was committed or paused. Run this command without"
            " --dry-run to fail over; the steps below come after that."
        )
    if isinstance(found.source_away, ClusterRefused):
        steps.append(
            f"{here} refuses this user or has another cluster id, but may be running: follow the"
            " message about it, and run this command again. The steps below are for a lost cluster."
        )
    if found.none_ready:
        steps.append(
            "No group is ready. Follow the messages and run this command again, or accept this and"
            f" start the consumers on {there}."
        )
    elif found.not_ready:
        steps.append(
            "For the groups that are not ready, follow the messages and run this command again, or"
            " accept this and start their consumers."
        )
    if found.source_away:
        steps.append(
            f"Make sure that no consumer reads from {here} any more: records that are read on"
            f" {here} from now on are re-read on {there}."
        )
    example = next((one.resumes_at for one in found.verdicts if one.resumes_at), "")
    topic = example.partition(" ")[0].rpartition("-")[0]
    named = f", with the topic names on the target ({topic})" if topic else ""
    if not found.none_ready:
        whose = " of the ready groups" if found.not_ready else ""
        steps += [
            f"Start the consumers{whose} on {there}, in their groups{named}.",
            f"Let producers write to {there}.",
        ]
    match paused:
        case True:
            is_paused = "would be paused, so that" if dry_run else "is paused,"
            steps.append(
                f"{flow.name} {is_paused} a running daemon does not sync it; `tsoffset failover -c"
                f" {shlex.quote(config)} --flow '{flow.name}' --resume` resumes it."
                f" docs/failover.md describes the way back to {here}."
            )
        case False:
            steps.append(
                f"{flow.name} {'cannot' if dry_run else 'could not'} be paused, because state.dir"
                " is not set or cannot be written: pause it on the status page of `tsoffset run`,"
                " or stop `tsoffset run`."
            )
        case None:
            steps.append(
                f"{flow.name} is not paused, and a running daemon continues to sync it"
                + (f": groups still have consumers on {here}." if found.still_read else ".")
            )
    return steps
