"""The models of other rules, for docs/accuracy.md, answer as their originals do."""

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.accuracy.judging import RULES, TOGETHER, TSOFFSET, Tally
from benchmarks.accuracy.report import (
    BEGIN,
    END,
    MarksMissing,
    comparison_table,
    placed,
    precision_table,
    unsafe_table,
)
from benchmarks.accuracy.rivals import (
    KipRule,
    OffsetSyncRule,
    PrototypeRule,
    Sync,
    SyncStore,
    SyncWriter,
)
from tests.random_logs import Kind
from tests.replication_model import build
from tsoffset.model import Precision


@pytest.mark.parametrize(
    ("committed", "translated"),
    [(99, None), (100, 40), (101, 41), (149, 41), (150, 90), (10_000, 91)],
)
def test_commit_is_translated_to_its_sync_or_one_past_it(committed, translated):
    """OffsetSyncStore.translateDownstream: older than all syncs gives none."""
    store = SyncStore()
    for sync in (Sync(100, 40), Sync(150, 90)):
        store.add(sync)
    assert store.translate(committed) == translated


def test_sync_that_goes_back_forgets_the_others():
    """A replicator that begins again further back makes all syncs invalid."""
    store = SyncStore()
    for sync in (Sync(100, 40), Sync(150, 90), Sync(120, 95)):
        store.add(sync)
    assert store.translate(110) is None
    assert store.translate(160) == 96


def test_sync_is_written_after_a_gap_on_the_source():
    """OffsetSyncWriter: at the first record, where an offset was passed over, and after
    `offset.lag.max` copies."""
    writer = SyncWriter(offset_lag_max=3)
    pairs = ((5, 0), (6, 1), (8, 2), (9, 3), (10, 4), (11, 5), (12, 6))
    written = [writer.copied(upstream, downstream) for upstream, downstream in pairs]
    assert [sync.upstream for sync in written if sync is not None] == [5, 8, 12]


def test_rules_answer_a_plain_log_as_published():
    """On distinct rising timestamps KIP-1292 finds each record but none for a caught-up group,
    its prototype adds one to the record before, MM2 knows its last sync."""
    world = build(Kind(records=50), seed=3)
    first, end = world.target.start, world.source.end
    kip, prototype, mm2 = KipRule(world), PrototypeRule(world), OffsetSyncRule(world)
    assert [kip.translate(at) for at in (0, 20, end)] == [first, first + 20, None]
    assert [prototype.translate(at) for at in (0, 20, end)] == [0, first + 20, first + 50]
    assert [mm2.translate(at) for at in (0, 20, end - 1, end)] == [
        first,
        first + 1,
        first + 49,
        first + 50,
    ]


def test_tables_replace_those_between_the_marks():
    """What stands around the marks stays; a page without them is refused."""
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert placed(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(MarksMissing):
        placed("no marks", "new")


def kinds_of(table: str) -> list[str]:
    """The first cells of a table's rows."""
    return [row.removeprefix("| ").partition(" | ")[0] for row in table.splitlines()[4:]]


def test_tables_leave_out_no_kind_with_a_wrong_or_inexact_answer():
    """A kind without a row has exact and safe answers in all logs, alone and together; a kind
    without a row of unsafe answers has none by any rule."""
    exact = Tally(
        positions=200,
        answered=200,
        without_rereads=200,
        precisions=Counter({Precision.EXACT: 200}),
    )
    unsafe = replace(exact, unsafe=20, without_rereads=180)
    rereads = replace(exact, without_rereads=100, rereads=3_000, most_rereads=90)
    good = dict.fromkeys((TSOFFSET, TOGETHER, *RULES), exact)
    small = {
        "good": good,
        "rival skips": {**good, "MM2": unsafe},
        "together": {**good, TOGETHER: unsafe},
        "long": good,
    }
    long = {**small, "long": {**good, TSOFFSET: rereads}}
    assert kinds_of(precision_table(small)) == ["together"]
    assert kinds_of(precision_table(long)) == ["together", "long"]
    assert unsafe_table(small, {**long, "rival skips": good}).splitlines()[2:] == [
        "| rival skips | 0 | 0 | 0 | **20** / 0 |"
    ]
    assert comparison_table(long).splitlines()[-1] == (
        "| long | 50.0 % (15) | 100 % | 100 % | 100 % |"
    )
