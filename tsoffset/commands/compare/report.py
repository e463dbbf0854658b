"""A comparison for a person: the table, what there is to say, and the totals."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.text import Text

from tsoffset.commands.compare.asked import By
from tsoffset.commands.compare.flow_comparison import Compared
from tsoffset.commands.compare.judgement import ComparedPair, Verdict
from tsoffset.commands.compare.totals import Sum, Totals, sums
from tsoffset.terminal.output import counted
from tsoffset.terminal.report import Said, head, notes
from tsoffset.terminal.tables import Cell, Column, place, table, wrapped

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.REREAD: "yellow",
    Verdict.UNSAFE: "bold red",
    Verdict.BEYOND: "yellow",
    Verdict.FAILED: "bold red",
}


def comparison_lines(
    compared: Compared, width: int | None, by: By = By.PAIR, *, times: bool = False
) -> Iterator[Text]:
    """The pairs of a flow as a table, or their sums, the messages of pairs that have one, and the
    totals; with `times` when it was compared, too."""
    pairs = compared.pairs
    at = f", {at_words(compared.at_ms)}" if times else ""
    if compared.known_at_ms is not None:
        at += f"; ours by the cycle that ended {at_words(compared.known_at_ms)}"
    yield head(f"flow {compared.flow}{at}")
    if pairs and by is not By.PAIR:
        yield from table(_sum_columns(by), sums(by, pairs), width)
        yield Text()
    elif pairs:
        yield from table(_COLUMNS, pairs, width)
        yield Text()
    if pairs:
        yield from notes((Said(pair.verdict, pair.message) for pair in pairs), "pair", width)
    yield head(f"{compared.flow}: {counted(len(pairs), 'pair')} of a group and a partition")
    for name, words in Totals.of(pairs).in_words().items():
        yield from wrapped(f"{name:6}  {words}", width, "  ", " " * 10)


def at_words(at_ms: int) -> str:
    """A time of a comparison, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _sum_columns(by: By) -> Sequence[Column[Sum]]:
    return (
        Column(by.value.upper(), lambda one: one.name, elastic=True),
        Column("PAIRS", lambda one: one.pairs, right=True),
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
        Column("OURS EXACT", lambda one: one.ours_exact, right=True),
        Column("OURS AGAIN", lambda one: one.ours_reread_bound, right=True),
        Column("TARGET AGAIN", lambda one: one.target_commit_reread, right=True, drops=3),
    )


def _precision(pair: ComparedPair) -> Cell | str | None:
    if pair.ours is None:
        return None if pair.ours_reason is None else Cell(pair.ours_reason, "yellow")
    bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
    return f"{pair.ours_precision}{bound}"


_COLUMNS: tuple[Column[ComparedPair], ...] = (
    Column("GROUP", lambda pair: pair.group, elastic=True, heads=2),
    Column("SOURCE", lambda pair: place(pair.source_topic, pair.partition), elastic=True),
    Column("COMMIT", lambda pair: pair.source_offset, right=True),
    Column("LAG", lambda pair: pair.lag, right=True, drops=2),
    # The policy gives the target's name.
    Column("TARGET", lambda pair: place(pair.target_topic, pair.partition), elastic=True, drops=1),
    Column("OURS", lambda pair: pair.ours, right=True),
    Column("PRECISION", _precision),
    Column("THEIRS", lambda pair: pair.theirs, right=True),
    Column("CHECKPOINT OF", lambda pair: pair.theirs_source_offset, right=True, drops=2),
    Column("VERDICT", lambda pair: Cell(pair.verdict, _STYLES.get(pair.verdict, ""))),
    Column("RECORDS", lambda pair: pair.records, right=True, folds=2),
    Column("TARGET COMMIT", lambda pair: pair.target_commit, right=True),
    Column("SET BY", lambda pair: pair.target_commit_is),
    Column("AGAIN", lambda pair: pair.target_commit_reread, right=True, folds=2),
)
