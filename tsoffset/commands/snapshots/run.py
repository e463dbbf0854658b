"""Runs `tsoffset snapshot`, `tsoffset restore` and `sync --allow-rewind`."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import structlog
from rich.text import Text

from tsoffset.cluster import Cluster
from tsoffset.commands.options import confirm, only_flow
from tsoffset.commands.scope import require_match
from tsoffset.commands.snapshots.file import Snapshot, default_path, take
from tsoffset.commands.snapshots.restoring import RestoredCommit, commit_restored, plan
from tsoffset.config.selection import Selection, plan_only_notice
from tsoffset.cycle.source_commits import preflight, selected_groups
from tsoffset.daemon.pauses import is_paused
from tsoffset.errors import UsageError
from tsoffset.flow.narrowing import expression
from tsoffset.flow.patterns import matches
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit import commit_groups
from tsoffset.group_sync.commit_rule import REWINDABLE
from tsoffset.group_sync.log_ranges import with_log_ranges
from tsoffset.group_sync.no_match import no_match
from tsoffset.group_sync.open_flow import open_flow
from tsoffset.group_sync.same_logs import (
    is_same_topic,
    source_topics,
    target_topics,
    without_changed,
)
from tsoffset.group_sync.translated_commits import commit_work, result_rows
from tsoffset.kafka import kafka_cluster
from tsoffset.model import OutcomeKind, Row, Side, TopicPartition
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, abridge, by_name, plural
from tsoffset.terminal.report import RowMessage, head, notes, total
from tsoffset.terminal.rows import OUTCOME_STYLES
from tsoffset.terminal.tables import Cell, Column, partition_name, table

log = structlog.get_logger(__name__)


def run_snapshot(selection: Selection, path: Path | None, output: Output, notices: Notices) -> int:
    """Write a snapshot of the one selected flow, print the file's name, and return the exit status.
    Raises UsageError, SnapshotFailed and ClusterUnreachable."""
    flow = only_flow(selection, "snapshot")
    if selection.narrowing.narrows:
        for error in require_match(selection, notices, Side.TARGET).values():
            raise error
    with notices.progress(f"reading {flow.target.alias}"), kafka_cluster(flow.target) as target:
        snapshot, path = write_snapshot(flow, target, selection.narrowing.groups, path)
    output.lines([Text(str(path))])
    output.flush()
    if not snapshot.commits:
        notices.warning(
            "snapshot_empty",
            f"Cluster {flow.target.alias} has no committed offset of a selected group that this "
            f"user can see, so {path} is empty: check its addresses, and that this user has "
            "DESCRIBE on its groups.",
        )
    log.info("snapshot_taken", flow=flow.name, path=str(path), commits=len(snapshot.commits))
    words = (
        f"tsoffset restore -c {shlex.quote(selection.configuration.path)} {shlex.quote(str(path))}"
    )
    notices.note(f"{_in_words(snapshot)}; restore it with: {words}")
    return 0


def write_snapshot(
    flow: FlowSettings, target: Cluster, groups: str | None, path: Path | None
) -> tuple[Snapshot, Path]:
    """Take a snapshot and write it to `path`, or to a file in the working directory named for
    cluster and time. Raises as `take` and `Snapshot.write`."""
    snapshot = take(flow, target, groups)
    path = path or default_path(snapshot)
    snapshot.write(path)
    return snapshot, path


def run_restore(
    settings: Settings,
    path: Path,
    output: Output,
    notices: Notices,
    *,
    groups: str | None,
    topics: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Restore the committed offsets of a snapshot, or with `dry_run` print what that would do, and
    return the exit status: 1 if one was not restored. Raises UsageError, also for a snapshot of
    another cluster, and ClusterUnreachable."""
    snapshot = Snapshot.read(path)
    flow = settings.flow(snapshot.flow)
    is_group, is_topic = _matcher("--groups", groups), _matcher("--topics", topics)
    in_snapshot = _matcher("--groups", snapshot.groups)
    for noun, wanted, matching, names in (
        ("group", groups, is_group, {commit.group for commit in snapshot.commits}),
        ("topic", topics, is_topic, {commit.topic for commit in snapshot.commits}),
    ):
        if wanted is not None and not any(map(matching, names)):
            raise UsageError(f"{no_match(noun, wanted, names)} These names are from {path}.")
    wanted_commits = [c for c in snapshot.commits if is_group(c.group) and is_topic(c.topic)]
    snapshot = replace(snapshot, commits=tuple(wanted_commits))
    with kafka_cluster(flow.target) as target:

        def plan_rows() -> tuple[list[RestoredCommit], list[RestoredCommit]]:
            """All rows, and those that would be committed."""
            refuse_other_cluster(snapshot, path, target)
            listed = target.groups()
            narrowed = (name for name in listed.groups if is_group(name) and in_snapshot(name))
            selected, broken = selected_groups(flow, narrowed)
            for failed in (*listed.failures, *broken.values()):
                notices.warning("groups_not_listed", failed.message)
            rows = plan(
                snapshot,
                target,
                listed,
                is_group=frozenset(selected).__contains__,
                is_topic=is_topic,
            )
            return rows, [row for row in rows if row.outcome is OutcomeKind.WOULD_COMMIT]

        with notices.progress(f"reading {snapshot.cluster}"):
            rows, moving = plan_rows()
        _warn_of_moves_forward(moving, notices)
        if not flow.commits and not dry_run:
            notices.warning("flow_only_planned", plan_only_notice(flow))
        elif moving and not is_paused(settings.state_dir, flow.name):
            notices.warning(
                "flow_not_paused",
                f"flow {flow.name} is not paused: the next cycle of a running `tsoffset run` moves"
                " groups that were restored backwards to their translated offsets again, unless it"
                " skips them (TARGET_REWOUND). Pause the flow on the status page, or stop"
                " `tsoffset run`.",
            )
        while moving and flow.commits and not dry_run:
            if output.format is Format.TABLE and not yes:
                output.show(RestoredCommit, rows, partial(_lines, rows, snapshot))
            question = (
                f"Set {plural(len(moving), 'committed offset')} of"
                f" {plural(len({row.group for row in moving}), 'group')} on {snapshot.cluster} to"
                f" what they were at {snapshot.taken_at}?"
            )
            if not confirm(question, yes=yes):
                notices.note("nothing was restored")
                return 1
            confirmed = moving
            if not yes:
                # Groups and topics may have changed since the question was asked.
                rows, moving = plan_rows()
            if moving == confirmed:
                rows = commit_restored(rows, snapshot, target)
                break
            notices.warning(
                "restore_plan_changed",
                f"what can be restored on {snapshot.cluster} changed before you answered, so"
                " nothing was restored yet",
            )
            _warn_of_moves_forward(moving, notices)
    output.show(RestoredCommit, rows, partial(_lines, rows, snapshot))
    only_planned_moves = bool(moving) and not flow.commits and not dry_run
    return int(only_planned_moves or any(row.not_restored for row in rows))


def _warn_of_moves_forward(moving: Sequence[RestoredCommit], notices: Notices) -> None:
    """A group that was moved back after the snapshot skips records if the snapshot's offset is
    restored before its consumers have read them."""
    forward = [row for row in moving if row.offsets_forward]
    if not forward:
        return
    groups = sorted({row.group for row in forward})
    offsets = sum(row.offsets_forward for row in forward)
    notices.warning(
        "restore_moves_forward",
        f"this restore moves {abridge(groups)} forward in {plural(len(forward), 'partition')}, by"
        f" {plural(offsets, 'offset')} in all: consumers skip the records in between, unless they"
        " have read them already. To restore other groups only, use --groups.",
    )


def _matcher(option: str, text: str | None) -> Callable[[str], bool]:
    pattern = expression(option, text)
    return lambda name: pattern is None or matches(pattern, name)


def refuse_other_cluster(snapshot: Snapshot, path: Path, target: Cluster) -> None:
    """Raise UsageError if the snapshot is of another cluster. Raises ClusterUnreachable."""
    cluster_id = target.describe().cluster_id
    if cluster_id != snapshot.cluster_id:
        raise UsageError(
            f"snapshot {path}: it was taken of the cluster with id {snapshot.cluster_id}, but"
            f" {target.alias} has id {cluster_id}; use the snapshot of {target.alias}"
        )


def _lines(rows: Sequence[RestoredCommit], snapshot: Snapshot, width: int | None) -> Iterator[Text]:
    yield head(_in_words(snapshot))
    if rows:
        yield from table(_COLUMNS, rows, width)
        yield Text()
        messages = (RowMessage(row.reason or row.outcome, row.message) for row in rows)
        yield from notes(messages, "row", width)
    yield from total(_summary(rows), width)


def _summary(rows: Sequence[RestoredCommit]) -> str:
    outcomes = Counter(row.outcome for row in rows)
    would = outcomes[OutcomeKind.WOULD_COMMIT]
    done = f"{would} would be restored" if would else f"{outcomes[OutcomeKind.COMMITTED]} restored"
    words = [done, f"{outcomes[OutcomeKind.UNCHANGED]} unchanged"]
    for kind in (OutcomeKind.SKIPPED, OutcomeKind.FAILED):
        reasons = Counter(str(row.reason) for row in rows if row.outcome is kind)
        words.append(f"{outcomes[kind]} {kind}{by_name(reasons)}")
    return ", ".join(words)


def _in_words(snapshot: Snapshot) -> str:
    groups = len({commit.group for commit in snapshot.commits})
    return (
        f"{snapshot.cluster} at {snapshot.taken_at}:"
        f" {plural(len(snapshot.commits), 'committed offset')} of {plural(groups, 'group')}"
    )


def _moves(row: RestoredCommit) -> str | None:
    if row.restored_offset is None or row.current_offset is None:
        return None
    return f"{row.restored_offset - row.current_offset:+d}"


_COLUMNS: tuple[Column[RestoredCommit], ...] = (
    Column("GROUP", lambda row: row.group, elastic=True, heads=2),
    Column("PARTITION", lambda row: partition_name(row.topic, row.partition), elastic=True),
    Column("SNAPSHOT", lambda row: row.snapshot_offset, right=True),
    Column("CURRENT", lambda row: row.current_offset, right=True),
    Column("RESTORED", lambda row: row.restored_offset, right=True),
    Column("MOVES", _moves, right=True),
    Column("OUTCOME", lambda row: Cell(row.outcome, OUTCOME_STYLES[row.outcome])),
    Column("REASON", lambda row: row.reason, drops=1),
)


_Key = tuple[str, TopicPartition]


def rewind(
    selection: Selection,
    flow: FlowSettings,
    rows: Iterable[Row],
    existing: tuple[Snapshot, Path] | None,
    notices: Notices,
    *,
    yes: bool,
) -> list[Row]:
    """`sync --allow-rewind`: move the groups that are ahead, according to a cycle's `rows`, back to
    their translations. Their offsets are saved in a new snapshot first, unless there is an
    `existing` one. Returns their new rows; none if no group is ahead, or the user declined. Raises
    UsageError, SnapshotFailed and ClusterUnreachable.

    A group is moved only from the offset that the person has confirmed and the snapshot has: the
    commit rule refuses any other.
    """
    ahead = {_key(row): row for row in rows if row.reason in REWINDABLE}
    if not ahead:
        notices.note(f"{flow.name}: no group is ahead of its translation, so none is rewound")
        return []
    with open_flow(flow, kafka_cluster, selection.settings) as opened:
        if existing is None:
            groups = selection.narrowing.groups
            snapshot, path = write_snapshot(flow, opened.target, groups, None)
            notices.note(f"{flow.name}: the groups' present offsets are saved in {path}")
        else:
            snapshot, path = existing
            refuse_other_cluster(snapshot, path, opened.target)
        saved = {
            (commit.group, commit.topic_partition): commit.offset for commit in snapshot.commits
        }
        kept = {
            key: row.current_target_offset
            for key, row in ahead.items()
            if row.current_target_offset is not None and saved.get(key) == row.current_target_offset
        }
        if left := len(ahead) - len(kept):
            notices.warning(
                "rewind_left_out",
                f"{flow.name}: {plural(left, 'row')} not rewound, because {path} does not"
                " have their present offsets; take a new snapshot",
            )
        moved = {group for group, _ in kept}
        offsets = sum(current - (ahead[key].target_offset or 0) for key, current in kept.items())
        question = (
            f"{flow.name}: move {plural(len(moved), 'group')} back on {flow.target.alias}, in"
            f" {plural(len(kept), 'partition')} by {plural(offsets, 'offset')} in all? Their"
            " consumers will re-read these records."
        )
        if not kept or not confirm(question, yes=yes):
            notices.note(f"{flow.name}: no group was rewound")
            return []
        start = preflight(flow, opened.source, opened.target)
        found = opened.commits([one for one in start.groups if one.group in moved])
        commits = [
            commit
            for commit in found
            if commit.target is not None and (commit.group, commit.target) in kept
        ]
        if left := len(kept) - len(commits):
            unread = (one.verdict for one in found if one.target is None and one.verdict)
            whys = [one.message for one in (*start.failures, *unread)] or ["they have none"]
            notices.warning(
                "rewind_left_out",
                f"{flow.name}: {plural(left, 'row')} not rewound, because their offsets on"
                f" {flow.source.alias} could not be read again ({whys[0]}); run this command again",
            )
        topics = target_topics(opened.target, {c.target.topic for c in commits if c.target})
        read = source_topics(opened.source, {c.partition.topic for c in commits if c.partition})
        work = commit_work(opened.translate(commits)).with_columns(
            rewind_from=pl.Series([kept[c.group, c.target] for c in commits if c.target])
        )
        now = source_topics(opened.source, read["source_topic"].to_list())
        is_changed = ~is_same_topic(read, now) & pl.col("target_offset").is_not_null()
        work = without_changed(work, is_changed)
        # A group may be past the readable end of its log, in an open transaction.
        work = with_log_ranges(opened.target, work)
        done = commit_groups(flow, opened.target, work, commit_to=topics)
        return list(result_rows(flow.name, work, done.rows))


def _key(row: Row) -> _Key:
    assert row.group is not None
    assert row.target_topic is not None
    assert row.partition is not None
    return row.group, TopicPartition(row.target_topic, row.partition)
