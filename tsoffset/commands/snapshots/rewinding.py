"""`sync --allow-rewind`: groups that are further on the target than on the source go back to their
translations, once a snapshot holds what they have.

A group goes back from the very offset that a person has seen, and that the snapshot can bring back:
the commit rule refuses any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl

from tsoffset.cluster import Connect
from tsoffset.commands.options import confirm, kafka_cluster, require_terminal
from tsoffset.commands.snapshots.file import Snapshot
from tsoffset.commands.snapshots.run import refuse_other_cluster, taken
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
    """What an operator asked for: `before` is a snapshot that was taken already, and where it lies
    (None: take one), `yes` says that nobody is to be asked. `groups` is what narrows the flow."""

    settings: Settings
    groups: str | None
    before: tuple[Snapshot, Path] | None
    yes: bool
    connect: Connect = kafka_cluster

    @classmethod
    def of(cls, selection: Selection, snapshot: Path | None, *, yes: bool) -> Self:
        """What the options say. Raises UsageError for what would end it after the cycle."""
        require_terminal(yes=yes)
        before = None if snapshot is None else (Snapshot.read(snapshot), snapshot)
        return cls(selection.settings, selection.narrowing.groups, before, yes)

    def rows(self, flow: FlowSettings, rows: Sequence[Row], notices: Notices) -> list[Row]:
        """The rows of those groups that were to go back, of the rows of a cycle, with what became
        of them; none where there are none, or a person said no.

        Raises UsageError, SnapshotFailed and ClusterUnreachable.
        """
        ahead = {_key(row): row for row in rows if row.reason in REWINDABLE}
        if not ahead:
            notices.note(f"{flow.name}: no group is ahead of its translation, so none is rewound")
            return []
        with open_flow(flow, self.connect, self.settings) as opened:
            if self.before is None:
                snapshot, path = taken(flow, opened.target, self.groups, None)
                notices.note(f"{flow.name}: the groups' present offsets are saved in {path}")
            else:
                snapshot, path = self.before
                refuse_other_cluster(snapshot, path, opened.target)
            kept = _kept(snapshot, ahead)
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


def _kept(snapshot: Snapshot, ahead: Mapping[_Key, Row]) -> dict[_Key, int]:
    """The rows whose commits the snapshot holds as they are, with these."""
    held = {(commit.group, commit.place): commit.offset for commit in snapshot.commits}
    return {
        key: row.current_target_offset
        for key, row in ahead.items()
        if row.current_target_offset is not None and held.get(key) == row.current_target_offset
    }


def _question(flow: FlowSettings, ahead: Mapping[_Key, Row], kept: Mapping[_Key, int]) -> str:
    offsets = sum(there - (ahead[key].target_offset or 0) for key, there in kept.items())
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
