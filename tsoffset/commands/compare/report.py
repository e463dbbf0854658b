"""Prints a comparison for a person: the table, messages and totals."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgement import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import By
from tsoffset.commands.compare.totals import ComparisonTotals, Sum, sums
from tsoffset.terminal.output import counted, in_utc
from tsoffset.terminal.report import RowMessage, head, notes
from tsoffset.terminal.tables import Cell, Column, place, table, wrapped

_STYLES = {
    CheckpointVerdict.EQUAL: "green",
    CheckpointVerdict.REREAD: "yellow",
    CheckpointVerdict.UNSAFE: "bold red",
    CheckpointVerdict.BEYOND: "yellow",
    CheckpointVerdict.FAILED: "bold red",
}


def comparison_lines(
    compared: FlowComparison,
    width: int | None,
    by: By = By.PAIR,
    *,
    other: str = "MirrorMaker 2",
    with_time: bool = False,
) -> Iterator[Text]:
    """The table of group-partitions or sums, messages and totals. `other` is the name of what
    tsoffset is compared with; with `with_time` the heading has the time of the comparison."""
    pairs = compared.pairs
    at = f", {in_utc(compared.at_ms)}" if with_time else ""
    if compared.known_at_ms is not None:
        at += f"; tsoffset's offsets are of the cycle that ended {in_utc(compared.known_at_ms)}"
    yield head(f"flow {compared.flow}{at}")
    if pairs and by is not By.PAIR:
        yield from table(_sum_columns(by), sums(by, pairs), width)
        yield Text()
    elif pairs:
        yield from table(_columns(other), pairs, width)
        yield Text()
    if pairs:
        yield from notes(
            (RowMessage(pair.verdict, pair.message) for pair in pairs), "group-partition", width
        )
    yield head(f"{compared.flow}: {counted(len(pairs), 'group-partition')}")
    for name, words in ComparisonTotals.of(pairs).in_words(other).items():
        yield from wrapped(f"{name:13}  {words}", width, "  ", " " * 17)


def _sum_columns(by: By) -> Sequence[Column[Sum]]:
    return (
        Column(by.value.upper(), lambda one: one.name, elastic=True),
        Column("PARTITIONS", lambda one: one.pairs, right=True, short="PARTS"),
        Column("EQUAL", lambda one: one.equal, right=True, drops=2),
        Column("RE-READ", lambda one: one.reread, right=True),
        Column("RECORDS", lambda one: one.reread_records, right=True),
        Column("MOST", lambda one: one.reread_most, right=True, drops=1),
        Column(
            "UNSAFE",
            lambda one: Cell(str(one.unsafe), "bold red" if one.unsafe else ""),
            right=True,
        ),
        Column("SKIPPED", lambda one: one.unsafe_records, right=True, drops=3),
        Column("BEYOND", lambda one: one.beyond, right=True, drops=3),
        Column("NONE", lambda one: one.none, right=True),
        Column("UNJUDGED", lambda one: one.unjudged, right=True, drops=2),
        Column("FAILED", lambda one: one.failed, right=True, drops=2),
        Column("EXACT", lambda one: one.ours_exact, right=True),
        Column("BOUND", lambda one: one.ours_reread_bound, right=True),
        Column("TARGET GROUPS RE-READ", lambda one: one.target_commit_reread, right=True, drops=3),
    )


def _short(other: str) -> str:
    return "MM2" if other == "MirrorMaker 2" else other


def _precision(pair: ComparedPair) -> Cell | str | None:
    if pair.ours is None:
        return None if pair.ours_reason is None else Cell(pair.ours_reason, "yellow")
    bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
    return f"{pair.ours_precision}{bound}"


def _columns(other: str) -> tuple[Column[ComparedPair], ...]:
    names = {CommitOrigin.CHECKPOINT: other, CommitOrigin.TSOFFSET: "tsoffset"}
    return (
        Column("GROUP", lambda pair: pair.group, elastic=True, heads=2),
        Column("SOURCE", lambda pair: place(pair.source_topic, pair.partition), elastic=True),
        Column("COMMITTED", lambda pair: pair.source_offset, right=True, short="OFFSET"),
        Column("LAG", lambda pair: pair.lag, right=True, drops=2),
        # The policy gives the target's name.
        Column(
            "TARGET", lambda pair: place(pair.target_topic, pair.partition), elastic=True, drops=1
        ),
        Column("TSOFFSET", lambda pair: pair.ours, right=True),
        Column("PRECISION", _precision),
        Column(other.upper(), lambda pair: pair.theirs, right=True, short=_short(other).upper()),
        Column("OF SOURCE OFFSET", lambda pair: pair.theirs_source_offset, right=True, drops=2),
        Column("VERDICT", lambda pair: Cell(pair.verdict, _STYLES.get(pair.verdict, ""))),
        Column("RECORDS", lambda pair: pair.records, right=True, folds=2),
        Column("TARGET COMMIT", lambda pair: pair.target_commit, right=True, short="ON TARGET"),
        Column("SET BY", lambda pair: names.get(pair.target_commit_is, pair.target_commit_is)),
        Column("RE-READS", lambda pair: pair.target_commit_reread, right=True, folds=2),
    )
