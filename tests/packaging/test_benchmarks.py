"""What the benchmarks compute with: fits, logs, and the guard over their ratios."""

import pytest

from benchmarks import guard, page
from benchmarks.accuracy.report import placed
from benchmarks.estates import Verdict
from benchmarks.generated import SHIFT, GeneratedCluster, Sizes, connect
from benchmarks.results import FOLDER, load
from tests.copies import CopiedPartition
from tests.memory_flows import flow
from tests.producing import Stored
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.cycle import cycle
from tsoffset.model import OutcomeKind, Precision, TopicPartition


def test_verdict_counts_what_is_read_again():
    """A commit below the true one re-reads the difference; a pair without commit counts as
    neither."""
    place, copy = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
    commits = {"exact": {place: 50}, "early": {place: 50}, "none": {place: 50}}
    verdict = Verdict.of(commits, {"exact": {copy: 40}, "early": {copy: 33}}, shift=10)
    assert verdict == Verdict(pairs=3, synced=2, exact=1, reread=7)


def test_verdict_refuses_a_skip():
    """A benchmark ends where a commit skips a record."""
    place, copy = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
    with pytest.raises(AssertionError, match="skips 1 record"):
        Verdict.of({"group": {place: 50}}, {"group": {copy: 41}}, shift=10)


@pytest.mark.parametrize(
    ("target_offset", "reread", "skips"),
    [(0, 7, False), (4, 3, False), (7, 0, False), (8, 0, True), (10, 0, True)],
)
def test_judge_counts_rereads_and_sees_skips(target_offset, reread, skips):
    """For a group that has read seven of ten records, whose copies have other offsets."""
    logs = CopiedPartition()
    logs.add_source(Stored(number + 5, 0, b"%d" % number) for number in range(10))
    logs.add_target(Stored(number, 0, b"%d" % number) for number in range(10))
    assert len(logs.reread(12, target_offset)) == reread
    assert bool(logs.skipped(12, target_offset)) is (target_offset > logs.largest_safe(12)) is skips


def generated(alias: str, sizes: Sizes) -> GeneratedCluster:
    return connect(ClusterSettings(alias, ("nowhere:9092",), {"client.id": sizes.text()}))


def test_generated_estate_is_translated_exactly():
    """The made-up clusters hold an estate in which every pair has an exact answer, and take
    the commits of a cycle over it."""
    sizes = Sizes(groups=20, partitions=7, each=3, settled=False)
    rows = cycle(flow(), generated("A", sizes), generated("B", sizes))
    assert len(rows) == 60
    assert {row.outcome for row in rows} == {OutcomeKind.COMMITTED}
    assert {row.precision for row in rows} == {Precision.EXACT}
    assert all(row.target_offset == (row.source_offset or 0) - SHIFT for row in rows)


@pytest.mark.parametrize(
    ("name", "value", "was", "worse"),
    [
        ("bytes_read.cold", 1.20, 1.10, False),
        ("bytes_read.cold", 1.40, 1.10, True),
        ("bytes_read.warm", 0.0, 0.0, False),
        ("bytes_read.warm", 0.5, 0.0, True),
        ("peers.50x4.cold", 0.5, 0.3, False),
        ("peers.50x4.cold", 0.9, 0.3, True),
        ("peers.50x4.moved", 0.9, 0.3, False),
        ("peers.50x4.moved_over_cold", 0.9, 0.3, True),
        ("peers.50x4.fetches_per_position", 1.5, 1.1, True),
        ("peers.50x4.model_over_cold", 3.0, 10.0, True),
        ("peers.50x4.model_over_cold", 30.0, 10.0, False),
        ("peers.50x4.cold", 9.0, None, False),
    ],
)
def test_ratio_is_worse_beyond_its_tolerance(name, value, was, worse):
    """Counts may grow by a tenth, times by three quarters. A ratio that is new, or mostly of a
    wait, is not worse."""
    assert guard.is_worse(name, value, was) is worse


def test_guard_names_what_became_worse(capsys):
    known = {"bytes_read.cold": 1.0, "fixed_cost.cycle_over_smallest": 1.5}
    assert guard.report(known, {**known, "bytes_read.cold": 1.1}) == 0
    assert "WORSE" not in capsys.readouterr().out
    assert guard.report(known, {**known, "bytes_read.cold": 2.0}) == 1
    (line_of_it,) = [text for text in capsys.readouterr().out.splitlines() if "WORSE" in text]
    assert line_of_it.startswith("bytes_read.cold")


COMMITTED = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_results_are_of_full_runs(name):
    """No quick run has taken the place of a full one, and each makes its table."""
    result = load(name)
    assert not result["quick"]
    for _, tables, _ in page.PAGES:
        assert name not in tables or "| ---" in tables[name](result)


@pytest.mark.parametrize("name", COMMITTED)
def test_page_shows_the_committed_results(name):
    for path, tables, _ in page.PAGES:
        if name in tables:
            text = path.read_text(encoding="utf-8")
            assert placed(text, tables[name](load(name)), *page.marks(name)) == text
