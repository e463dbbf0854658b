"""The columns of the tables of group-partitions and of sums, on a terminal and in the report."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import By
from tsoffset.terminal.tables import Cell, Column, partition_name

_STYLES = {
    CheckpointVerdict.EQUAL: "green",
    CheckpointVerdict.REREAD: "yellow",
    CheckpointVerdict.UNSAFE: "bold red",
    CheckpointVerdict.BEYOND: "yellow",
    CheckpointVerdict.FAILED: "bold red",
}


def sum_columns(by: By) -> Sequence[Column[dict[str, Any]]]:
    def unsafe(one: dict[str, Any]) -> Cell:
        return Cell(str(one["unsafe"]), "bold red" if one["unsafe"] else "")

    return (
        Column(by.value.upper(), itemgetter("name"), elastic=True),
        Column("PARTITIONS", itemgetter("pairs"), right=True, short="PARTS"),
        Column("EQUAL", itemgetter("equal"), right=True, drops=2),
        Column("RE-READ", itemgetter("reread"), right=True),
        Column("RECORDS", itemgetter("reread_records"), right=True),
        Column("MOST", itemgetter("reread_most"), right=True, drops=1),
        Column("UNSAFE", unsafe, right=True),
        Column("SKIPPED", itemgetter("unsafe_records"), right=True, drops=3),
        Column("BEYOND", itemgetter("beyond"), right=True, drops=3),
        Column("NONE", itemgetter("none"), right=True),
        Column("UNJUDGED", itemgetter("unjudged"), right=True, drops=2),
        Column("FAILED", itemgetter("failed"), right=True, drops=2),
        Column("EXACT", itemgetter("ours_exact"), right=True),
        Column("BOUND", itemgetter("ours_reread_bound"), right=True),
        Column("TARGET GROUPS RE-READ", itemgetter("target_commit_reread"), right=True, drops=3),
    )


def _precision(pair: ComparedPair) -> Cell | str | None:
    if pair.ours is None:
        return None if pair.ours_reason is None else Cell(pair.ours_reason, "yellow")
    bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
    return f"{pair.ours_precision}{bound}"


def pair_columns(other: str) -> tuple[Column[ComparedPair], ...]:
    names = {CommitOrigin.CHECKPOINT: other, CommitOrigin.TSOFFSET: "tsoffset"}
    short = "MM2" if other == "MirrorMaker 2" else other.upper()
    return (
        Column("GROUP", lambda pair: pair.group, elastic=True, heads=2),
        Column(
            "SOURCE", lambda pair: partition_name(pair.source_topic, pair.partition), elastic=True
        ),
        Column("COMMITTED", lambda pair: pair.source_offset, right=True, short="OFFSET"),
        Column("CONSUMER LAG", lambda pair: pair.lag, right=True, drops=2),
        # May be dropped: the replication policy gives the target's name.
        Column(
            "TARGET",
            lambda pair: partition_name(pair.target_topic, pair.partition),
            elastic=True,
            drops=1,
        ),
        Column("TSOFFSET", lambda pair: pair.ours, right=True),
        Column("PRECISION", _precision),
        Column(other.upper(), lambda pair: pair.theirs, right=True, short=short),
        Column("OF SOURCE OFFSET", lambda pair: pair.theirs_source_offset, right=True, drops=2),
        Column("VERDICT", lambda pair: Cell(pair.verdict, _STYLES.get(pair.verdict, ""))),
        Column("RECORDS", lambda pair: pair.records, right=True, folds=2),
        Column("TARGET COMMIT", lambda pair: pair.target_commit, right=True, short="ON TARGET"),
        Column("SET BY", lambda pair: names.get(pair.target_commit_is, pair.target_commit_is)),
        Column("RE-READS", lambda pair: pair.target_commit_reread, right=True, folds=2),
    )
