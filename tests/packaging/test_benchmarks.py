"""What the benchmarks compute with: fits, logs, and the guard over their ratios."""

import os
import time
from datetime import datetime
from pathlib import Path

import pytest
from kafka.record.memory_records import MemoryRecords

from benchmarks import guard, mirror_cycles, page
from benchmarks.accuracy.report import MarksMissing, placed
from benchmarks.estates import Verdict
from benchmarks.filling import Batches
from benchmarks.generated import RECORDS, SHIFT, TOPIC, GeneratedCluster, Sizes, connect
from benchmarks.measures import exponent, line, spread
from benchmarks.results import FOLDER, load
from tests.copies import CopiedPartition
from tests.memory_flows import flow
from tests.producing import Stored
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.in_process import cycle
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker
from tsoffset.model import CommittedOffset, OutcomeKind, Precision, TopicPartition


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent_is_that_of_a_power_law(power):
    """Values that grow as a power of the size have that power as their exponent."""
    sizes = [100, 1_000, 10_000]
    assert exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power, rel=1e-3)


def test_slope_over_round_trips_counts_waits():
    assert line([0.0, 0.02, 0.1], [0.5, 0.74, 1.7]) == pytest.approx((12, 0.5))


def test_original_and_copy_hold_equal_records():
    """A log cut into batches of 100 and one of 200 hold the same times, keys and values."""

    def records(batches, count):
        found = []
        for stamped in batches.stamped(count, 1_000):
            batch = MemoryRecords(stamped).next_batch()
            assert batch.validate_crc()
            found += [(record.timestamp, record.key, record.value) for record in batch]
        return found

    copied = records(Batches(200), 2)
    assert records(Batches(100), 4) == copied
    assert len({time for time, _, _ in copied}) == 400


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


def test_last_commit_is_when_the_broker_wrote_to_its_commits(tmp_path):
    """Of all partitions of that topic the youngest counts, and no other topic's."""
    broker = EmbeddedBroker(tmp_path, name="target")
    assert mirror_cycles.last_commit(broker) == 0
    for name, seconds in (("__consumer_offsets-3", 50), ("__consumer_offsets-9", 70), ("t-0", 90)):
        written_at(tmp_path, name, seconds)
    assert mirror_cycles.last_commit(broker) == 70


def written_at(folder: Path, partition: str, seconds: float) -> None:
    file = folder / "data" / partition / "00000000000000000000.log"
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (seconds, seconds))


def test_mirror_is_at_rest_after_syncs_without_a_commit(tmp_path):
    """What was counted after the last commit is given once two syncs have passed without
    another; a commit before the time asked for is none."""
    mirror, broker = MirrorMaker({}, tmp_path), EmbeddedBroker(tmp_path, name="target")
    last = time.time() - 60
    written_at(tmp_path, "__consumer_offsets-0", last)
    job = "refreshing idle consumers group offsets at target cluster took 1 ms (Scheduler)\n"
    syncs = [datetime.fromtimestamp(last + after) for after in (1, 2)]
    mirror.log_path.write_text(
        "".join(f"{at:%Y-%m-%d %H:%M:%S},{at:%f}"[:-3] + f" INFO {job}" for at in syncs)
    )
    log = mirror_cycles.Log(mirror)
    found, counted = log.settled(broker, last - 1, 30, lambda: "counted")
    assert (found, counted) == (pytest.approx(last), "counted")
    with pytest.raises(AssertionError, match="not at rest"):
        log.settled(broker, last + 1, 0.1, lambda: "counted")


def test_mirror_log_tells_of_looks_and_syncs(tmp_path):
    """A sync is its two jobs, on average of those that began since; other jobs are none."""
    mirror = MirrorMaker({}, tmp_path)
    lines = [
        "16:21:16,713 INFO task-thread-MirrorCheckpointConnector-0 checkpointing 100 consumer "
        "groups A->B: [group-00017, group-00018]. (MirrorCheckpointTask)",
        *(
            f"16:21:{at} INFO {what} took {ms} ms (Scheduler)"
            for at, what, ms in (
                ("17,138", "refreshing idle consumers group offsets at target cluster", 900),
                ("18,110", "refreshing idle consumers group offsets at target cluster", 100),
                ("18,134", "sync idle consumer group offset from source to target", 24),
                ("18,135", "refreshing topics", 5_000),
                ("19,233", "refreshing idle consumers group offsets at target cluster", 300),
            )
        ),
    ]
    mirror.log_path.write_text("".join(f"2026-11-21 {line}\n" for line in lines))
    log = mirror_cycles.Log(mirror)
    assert log.first_look() == datetime(2026, 11, 21, 16, 21, 16, 713_000).timestamp()
    since = datetime(2026, 11, 21, 16, 21, 18).timestamp()
    assert log.syncs(since) == 2
    assert log.sync_seconds(since) == pytest.approx(0.2 + 0.024)


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


def test_settled_estate_has_nothing_to_commit():
    sizes = Sizes(groups=20, partitions=7, each=3, settled=True)
    rows = cycle(flow(), generated("A", sizes), generated("B", sizes))
    assert {row.outcome for row in rows} == {OutcomeKind.UNCHANGED}


def test_generated_target_refuses_a_wrong_commit():
    target = generated("B", Sizes(groups=1, partitions=1, each=1, settled=False))
    wrong = {TopicPartition(f"A.{TOPIC}", 0): CommittedOffset(RECORDS + 1)}
    with pytest.raises(AssertionError):
        target.commit({"group-000000": wrong})


@pytest.mark.parametrize(
    ("name", "value", "was", "worse"),
    [
        ("bytes_read.cold", 1.20, 1.10, False),
        ("bytes_read.cold", 1.40, 1.10, True),
        ("bytes_read.warm", 0.0, 0.0, False),
        ("bytes_read.warm", 0.5, 0.0, True),
        ("peers.50x4.cold", 0.5, 0.3, False),
        ("peers.50x4.cold", 0.9, 0.3, True),
        ("peers.50x4.fetches_per_position", 1.5, 1.1, True),
        ("peers.50x4.model_over_cold", 3.0, 10.0, True),
        ("peers.50x4.model_over_cold", 30.0, 10.0, False),
        ("peers.50x4.cold", 9.0, None, False),
    ],
)
def test_ratio_is_worse_beyond_its_tolerance(name, value, was, worse):
    """Counts may grow by a tenth, times by three quarters; a ratio that is new is not worse."""
    assert guard.is_worse(name, value, was) is worse


def test_guard_names_what_became_worse(capsys):
    known = {"bytes_read.cold": 1.0, "fixed_cost.cycle_over_smallest": 1.5}
    assert guard.report(known, {**known, "bytes_read.cold": 1.1}) == 0
    assert "WORSE" not in capsys.readouterr().out
    assert guard.report(known, {**known, "bytes_read.cold": 2.0}) == 1
    (line_of_it,) = [text for text in capsys.readouterr().out.splitlines() if "WORSE" in text]
    assert line_of_it.startswith("bytes_read.cold")


def test_ratios_of_sizes_keep_their_size():
    result = {
        "sizes": [
            {"size": "50x4", "ratios": {"cold": spread([1, 2, 3])}},
            {"size": "9x9", "ratios": {"cold": 4.0}},
        ]
    }
    assert dict(guard.ratios(result)) == {"50x4.cold": 2.0, "9x9.cold": 4.0}


def test_table_takes_the_place_of_the_last_one():
    marks = page.marks("distance")
    first = placed(page.PAGE.read_text(encoding="utf-8"), "| old |", *marks)
    second = placed(first, "| new |", *marks)
    assert "| new |" in second
    assert second.replace("| new |", "| old |") == first


def test_page_without_the_marks_is_refused():
    with pytest.raises(MarksMissing, match="distance"):
        placed("# Performance\n", "| new |", *page.marks("distance"))


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
