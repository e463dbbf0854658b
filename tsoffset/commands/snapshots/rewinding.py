"""`sync --allow-rewind`: moves groups that are ahead on the target back to their translations, once
a snapshot has their offsets.

A group is moved only from the offset that the person has confirmed and the snapshot has: the commit
rule refuses any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl

from tsoffset.cluster import Connect
from tsoffset.commands.options import confirm, kafka_cluster, require_terminal
from tsoffset.commands.snapshots.file import Snapshot
from tsoffset.commands.snapshots.run import refuse_other_cluster, write_snapshot
from tsoffset.config.selection import Selection
from tsoffset.cycle.source_commits import preflight
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit import commit_groups
from tsoffset.group_sync.commit_rule import REWINDABLE
from tsoffset.group_sync.open_flow import open_flow
from tsoffset.group_sync.translated_commits import commit_work, result_rows
from tsoffset.model import Row, TopicPartition
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import counted

_Key = tuple[str, TopicPartition]


@dataclass(frozen=True, slots=True)
class Rewinding:
    """Rewinds as the options say. `existing` is a snapshot with its path (None: take one), `yes`
    asks for no confirmation, `groups` is the value of --groups."""

    settings: Settings
    groups: str | None
    existing: tuple[Snapshot, Path] | None
    yes: bool
    connect: Connect = kafka_cluster

    @classmethod
    def of(cls, selection: Selection, snapshot: Path | None, *, yes: bool) -> Self:
        """Raises UsageError for what would fail only after the cycle."""
        require_terminal(yes=yes)
        existing = None if snapshot is None else (Snapshot.read(snapshot), snapshot)
        return cls(selection.settings, selection.narrowing.groups, existing, yes)

    def rows(self, flow: FlowSettings, rows: Sequence[Row], notices: Notices) -> list[Row]:
        """Rewind the groups that are ahead by the rows of a cycle, and return their new rows; none
        if no group is ahead, or the person declined. Raises UsageError, SnapshotFailed and
        ClusterUnreachable."""
        ahead = {_key(row): row for row in rows if row.reason in REWINDABLE}
        if not ahead:
            notices.note(f"{flow.name}: no group is ahead of its translation, so none is rewound")
            return []
        with open_flow(flow, self.connect, self.settings) as opened:
            if self.existing is None:
                snapshot, path = write_snapshot(flow, opened.target, self.groups, None)
                notices.note(f"{flow.name}: the groups' present offsets are saved in {path}")
            else:
                snapshot, path = self.existing
                refuse_other_cluster(snapshot, path, opened.target)
            kept = _in_snapshot(snapshot, ahead)
            if left := len(ahead) - len(kept):
                notices.warning(
                    "rewind_left_out",
                    f"{flow.name}: {counted(left, 'row')} not rewound, because {path} does not"
                    " have their present offsets; take a new snapshot",
                )
            if not kept or not confirm(_question(flow, ahead, kept), yes=self.yes):
                notices.note(f"{flow.name}: no group was rewound")
                return []
            groups = {group for group, _ in kept}
            start = preflight(flow, opened.source, opened.target)
            commits = [
                commit
                for commit in opened.commits([w for w in start.groups if w.group in groups])
                if commit.target is not None and (commit.group, commit.target) in kept
            ]
            work = commit_work(opened.translated(commits)).with_columns(
                rewind_from=pl.Series([kept[c.group, c.target] for c in commits if c.target])
            )
            done = commit_groups(flow, opened.target, work, commit=True)
            return list(result_rows(flow.name, work, done.rows))


def _in_snapshot(snapshot: Snapshot, ahead: Mapping[_Key, Row]) -> dict[_Key, int]:
    """The current offsets of the rows that the snapshot has."""
    saved = {(commit.group, commit.place): commit.offset for commit in snapshot.commits}
    return {
        key: row.current_target_offset
        for key, row in ahead.items()
        if row.current_target_offset is not None and saved.get(key) == row.current_target_offset
    }


def _question(flow: FlowSettings, ahead: Mapping[_Key, Row], kept: Mapping[_Key, int]) -> str:
    offsets = sum(current - (ahead[key].target_offset or 0) for key, current in kept.items())
    groups = counted(len({group for group, _ in kept}), "group")
    places = counted(len(kept), "partition")
    return (
        f"{flow.name}: move {groups} back on {flow.target.alias}, in {places} by"
        f" {counted(offsets, 'offset')} in all? Their consumers will re-read these records."
    )


def _key(row: Row) -> _Key:
    assert row.group is not None
    assert row.target_topic is not None
    assert row.partition is not None
    return row.group, TopicPartition(row.target_topic, row.partition)
