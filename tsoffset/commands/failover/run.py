"""Runs `tsoffset failover`.

If both clusters are reachable, it runs cycles until every group is ready or nothing changes any
more, and judges the last cycle. If the source is unreachable, it reports what past cycles have
committed. Then it pauses the flow, and prints the next steps.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from tsoffset.commands.cycles import RunCycle, flow_cycles
from tsoffset.commands.failover.last_known import judge_unverified, known_pairs
from tsoffset.commands.failover.verdicts import (
    SOURCE_ACTIVE,
    FailoverVerdict,
    GroupVerdict,
    failover_lines,
    in_words,
    verdicts,
)
from tsoffset.commands.options import only_flow
from tsoffset.commands.scope import require_match, warn_of_unseen_names
from tsoffset.config.selection import Selection
from tsoffset.daemon.pauses import Pauses, is_paused, why_not_kept
from tsoffset.errors import ClusterRefused, ClusterUnreachable, UsageError
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.kafka import kafka_cluster
from tsoffset.model import Side
from tsoffset.terminal.next_step import SuggestedCommand, next_step
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, in_utc
from tsoffset.terminal.templates import rendered_lines
from tsoffset.threads import in_thread

log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 1.0
"""The pause between cycles."""

# The wait ends if nothing changes for this long: a working replicator makes progress in this time.
_STABLE_SECONDS = 5.0


def _nothing_committed(flow: FlowSettings, cluster: str, note: str = "") -> UsageError:
    return UsageError(
        f"failover {flow.name}: cluster {cluster} shows this user no committed offset of the"
        f" selected groups in the selected topics, so there is nothing to fail over.{note}"
    )


@dataclass(frozen=True, slots=True)
class FailoverResult:
    verdicts: Sequence[GroupVerdict]
    source_error: ClusterUnreachable | None = None
    target_error: ClusterUnreachable | None = None
    # False: groups that never had an offset on the target may be missing.
    lists_all: bool = True
    resets: Mapping[str, SuggestedCommand | None] = field(default_factory=dict)

    @property
    def source_refuses(self) -> bool:
        """The source answers, so it may be running: it is not lost."""
        return isinstance(self.source_error, ClusterRefused)

    @property
    def not_ready(self) -> bool:
        return any(one.verdict is FailoverVerdict.NOT_READY for one in self.verdicts)

    @property
    def none_ready(self) -> bool:
        return all(one.verdict is FailoverVerdict.NOT_READY for one in self.verdicts)

    @property
    def lacks_offsets(self) -> bool:
        """A group that is not ready has partitions without a known offset on the target. If the
        source is lost, the message of NO_COMMIT names them."""
        return self.source_error is None and any(
            len(one.resumes_at.split()) < max(1, one.partitions)
            for one in self.verdicts
            if one.verdict is FailoverVerdict.NOT_READY
        )

    @property
    def still_read(self) -> bool:
        return any(SOURCE_ACTIVE in (one.reason or "").split() for one in self.verdicts)

    @property
    def exit_status(self) -> int:
        return 3 if self.source_error or self.target_error else int(self.not_ready)


def run_failover(
    selection: Selection,
    output: Output,
    notices: Notices,
    *,
    timeout_seconds: float,
    pause: bool,
    resume: bool,
    dry_run: bool = False,
) -> int:
    """Fail over the one selected flow, print the verdicts, and return the exit status. With
    `dry_run` nothing is changed; with `resume` only the pause of the flow ends. Raises UsageError
    and CycleFailed."""
    flow, directory = only_flow(selection, "failover"), selection.settings.state_dir
    if resume:
        return _resume(directory, flow.name, notices)
    if not flow.commits:
        raise UsageError(
            f"failover: sync.group.offsets.enabled of {flow.name} is false, so nothing can be"
            " committed; set it to true, or write the offsets with `tsoffset export`"
        )
    # A pause would stop all groups of the flow, so a part of them is failed over without one.
    pause = pause and not selection.narrowing.narrows
    lost_pause = why_not_kept(directory) if pause else None
    if lost_pause is not None:
        notices.warning(
            "pause_not_kept",
            f"failover {flow.name}: {lost_pause}, so the flow cannot be paused after the failover,"
            " and a running `tsoffset run` would continue to commit for groups that have moved. Set"
            " state.dir, stop `tsoffset run` first, or use --no-pause if none runs.",
        )
    found = _judge(selection, flow, notices, None if dry_run else timeout_seconds)
    was_paused = is_paused(directory, flow.name)
    paused = True if was_paused else None
    if (
        pause
        and not was_paused
        and not (found.target_error or found.source_refuses or found.still_read)
    ):
        paused = lost_pause is None if dry_run else Pauses(directory).set(flow.name, True)
    for error in filter(None, (found.source_error, found.target_error)):
        notices.warning("cluster_unreachable", str(error))
    config = selection.configuration.path
    steps = next_steps(flow, found, config, paused=paused, was_paused=was_paused, dry_run=dry_run)

    def command_for(one: GroupVerdict) -> SuggestedCommand | None:
        lost = found.source_error is not None
        return found.resets.get(one.group or "") or next_step(
            config, flow.name, one.group, one.reason, source_lost=lost
        )

    lines = partial(failover_lines, flow.name, found.verdicts, steps, command_for)
    output.show(GroupVerdict, found.verdicts, lines)
    log.info(
        "failover_finished",
        flow=flow.name,
        dry_run=dry_run,
        paused=paused and (was_paused or not dry_run),
        result=in_words(found.verdicts),
    )
    if output.format is not Format.TABLE:
        for sentence in (f"{flow.name}: {in_words(found.verdicts)}", *steps):
            notices.note(sentence)
    return found.exit_status


def _judge(
    selection: Selection,
    flow: FlowSettings,
    notices: Notices,
    timeout_seconds: float | None,
) -> FailoverResult:
    """Judge the groups by final cycles, or by past cycles if the source is unreachable; without a
    timeout by a plan. Raises CycleFailed, UsageError if there is nothing to fail over, and
    ClusterUnreachable for a cluster that was unreachable only for a moment."""
    with notices.progress(f"connecting to {flow.source.alias} and {flow.target.alias}"):
        source_error, target_error = _errors_of(flow)
    if source_error is None and target_error is None:
        require_match(selection, notices, must_have_groups=True)
        warn_of_unseen_names(flow, notices)
        only_plan = timeout_seconds is None
        with flow_cycles(selection, notices, only_plan=only_plan) as cycles_of:
            found = final_cycles(cycles_of(flow), flow, timeout_seconds)
        if found == []:
            raise _nothing_committed(flow, flow.source.alias)
        if found is not None:
            return FailoverResult(found)
        source_error, target_error = _errors_of(flow)
        if source_error is None and target_error is None:
            why = "a cluster was unreachable for a moment; run this command again"
            raise ClusterUnreachable(f"failover {flow.name}: {why}")
    if target_error is not None:
        return FailoverResult((), source_error, target_error)
    with notices.progress(f"reading {flow.target.alias}"), kafka_cluster(flow.target) as target:
        known, unnamed, lists_all = known_pairs(selection.settings, flow)
        found, resets = judge_unverified(flow, target, known, unnamed, time.time())
    if not found:
        notices.warning("cluster_unreachable", str(source_error))
        require_match(selection, notices, Side.TARGET)
        raise _nothing_committed(
            flow,
            flow.target.alias,
            " A group that was never synced starts at its consumers' auto.offset.reset, and"
            " `latest` skips unread records.",
        )
    return FailoverResult(found, source_error, lists_all=lists_all, resets=resets)


def _errors_of(flow: FlowSettings) -> tuple[ClusterUnreachable | None, ClusterUnreachable | None]:
    """Why source and target cannot be reached, if so; both are asked at once."""

    def ask(settings: ClusterSettings) -> ClusterUnreachable | None:
        with kafka_cluster(settings) as cluster:
            try:
                cluster.describe()
            except ClusterUnreachable as error:
                return error
        return None

    of_target = in_thread(lambda: ask(flow.target))
    return ask(flow.source), of_target.result()


def final_cycles(
    run_cycle: RunCycle, flow: FlowSettings, timeout_seconds: float | None
) -> list[GroupVerdict] | None:
    """Run cycles until every group is ready, nothing has changed for a while, or the timeout has
    passed, and judge the last one; without a timeout run one plan. None if a cluster is
    unreachable. Raises CycleFailed."""
    commit = timeout_seconds is not None
    started = since = time.monotonic()
    previous: object = None
    while True:
        try:
            # Listed before the cycle: a member that has left by now has committed its last offsets.
            with kafka_cluster(flow.source) as source:
                listings = source.groups()
        except ClusterUnreachable:
            return None
        result = run_cycle(commit=commit, keep=commit)
        if result.unreachable:
            return None
        rows = list(result.rows)
        active = {name for name, one in listings.groups.items() if one.active}
        # Groups that no broker listed may have consumers, too.
        active |= {row.group for row in rows if row.group is not None} - listings.groups.keys()
        found = verdicts(flow.name, rows, active, in_utc(time.time() * 1000))
        now = time.monotonic()
        facts = [(row.group, row.source_offset, row.target_offset, row.reason) for row in rows]
        if facts != previous:
            previous, since = facts, now
        if (
            timeout_seconds is None
            or all(one.verdict is FailoverVerdict.READY for one in found)
            or now - since >= _STABLE_SECONDS
            or now - started >= timeout_seconds
        ):
            return found
        time.sleep(_PAUSE_SECONDS)


def _resume(directory: str | None, flow: str, notices: Notices) -> int:
    was_paused = is_paused(directory, flow)
    if not Pauses(directory).set(flow, False):
        raise UsageError(
            f"failover: the pause of {flow} is kept in state.dir, which is not set or cannot"
            " be written; resume the flow on the status page, or without state.dir restart"
            " `tsoffset run`"
        )
    notices.note(
        f"{flow} is no longer paused: `tsoffset run` continues with its next cycle."
        if was_paused
        else f"{flow} was not paused; nothing was changed."
    )
    return 0


def next_steps(
    flow: FlowSettings,
    found: FailoverResult,
    config: str,
    *,
    paused: bool | None,
    was_paused: bool,
    dry_run: bool,
) -> list[str]:
    """The next steps. `paused`: whether the flow is paused now, or would be after a dry run (None:
    no pause was attempted). `was_paused`: whether it was paused before. `config`: the configuration
    file, for the commands in the steps."""
    example = next((one.resumes_at for one in found.verdicts if one.resumes_at), "")
    return rendered_lines(
        "tsoffset.commands.failover",
        "next_steps.txt",
        flow=flow.name,
        source=flow.source.alias,
        target=flow.target.alias,
        found=found,
        config=config,
        topic=example.partition(" ")[0].rpartition("-")[0],
        paused=paused,
        was_paused=was_paused,
        dry_run=dry_run,
    )
