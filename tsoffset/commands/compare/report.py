"""A comparison for a person: the table, what there is to say, and the totals."""

from collections.abc import Iterator

from rich.text import Text

from tsoffset.commands.compare.flow_comparison import Compared
from tsoffset.commands.compare.judgement import ComparedPair, Verdict
from tsoffset.commands.compare.totals import Totals
from tsoffset.terminal.output import counted
from tsoffset.terminal.report import head, notes
from tsoffset.terminal.tables import Cell, Column, place, table, wrapped

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.REREAD: "yellow",
    Verdict.UNSAFE: "bold red",
    Verdict.BEYOND: "yellow",
    Verdict.FAILED: "bold red",
}


def comparison_lines(compared: Compared, width: int | None) -> Iterator[Text]:
    """The pairs of a flow as a table, the messages of those that have one, and the totals."""
    pairs = compared.pairs
    yield head(f"flow {compared.flow}")
    if pairs:
        yield from table(_COLUMNS, pairs, width)
        yield Text()
        yield from notes(((pair.verdict, pair.message) for pair in pairs), "pair", width)
    yield head(f"{compared.flow}: {counted(len(pairs), 'pair')} of a group and a partition")
    for name, words in Totals.of(pairs).in_words().items():
        yield from wrapped(f"{name:6}  {words}", width, "  ", " " * 10)


def _precision(pair: ComparedPair) -> Cell | str | None:
    if pair.ours is None:
        return None if pair.ours_reason is None else Cell(pair.ours_reason, "yellow")
    bound = f" {pair.ours_reread_bound}" if pair.ours_reread_bound else ""
    return f"{pair.ours_precision}{bound}"


_COLUMNS: tuple[Column[ComparedPair], ...] = (
    Column("GROUP", lambda pair: pair.group, elastic=True, heads=2),
    Column("SOURCE", lambda pair: place(pair.source_topic, pair.partition), elastic=True),
    Column("COMMIT", lambda pair: pair.source_offset, right=True),
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
)
