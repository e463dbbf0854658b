"""The demo: its judge by made-up logs, and all of it once, as a stranger runs it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import serving
from tests.invoking import ROOT, Command, invoke, run_program, start, succeeds
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.lab.demo.consumers import stops
from tsoffset.lab.demo.stopping import remember
from tsoffset.lab.demo.topics import GROUPS, PARTITIONS, TOPICS, DemoRecord
from tsoffset.lab.demo.verdict import (
    Count,
    GroupResult,
    Logs,
    Read,
    Resumed,
    conclusion,
    group_verdict,
    judge,
    way,
)
from tsoffset.model import OutcomeKind, Precision, Reason, Row


def entries(*numbers: int, first_offset: int = 0, keys: int = 1_000) -> tuple[DemoRecord, ...]:
    """Records by their numbers, one after the other from an offset on."""
    return tuple(
        DemoRecord(first_offset + at, b"%d" % (number % keys), b"value-%d" % number)
        for at, number in enumerate(numbers)
    )


def values(*numbers: int) -> frozenset[bytes]:
    return frozenset(b"value-%d" % number for number in numbers)


# Ten records, of which the source has lost the first two offsets: the target's are lower.
SOURCE = entries(*range(10), first_offset=2)
TARGET = entries(*range(10))
MIRRORED = Logs(SOURCE, TARGET)


def row(
    outcome: OutcomeKind = OutcomeKind.COMMITTED,
    *,
    target_offset: int | None = 6,
    current: int | None = None,
    bound: int | None = 0,
    reason: Reason | None = None,
) -> Row:
    return serving.row(
        "g",
        source_offset=8,
        target_offset=target_offset,
        current_target_offset=current,
        outcome=outcome,
        reason=reason,
        precision=Precision.BOUNDED if bound else Precision.EXACT,
        reread_bound=bound,
    )


def resumed(start: int, *, metadata: str = "", at: Row | None = None) -> Resumed:
    """A consumer that got all of the target from `start` on, after six records."""
    read = Read(start, TARGET[start:], metadata)
    return Resumed(at or row(), MIRRORED, values(*range(6)), read)


# --- the judge ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "count"),
    [
        (6, Count(read=4)),
        (4, Count(read=6, reread=2)),
        (0, Count(read=10, reread=6)),
        (7, Count(read=3, skipped=1)),
        (10, Count(read=0, skipped=4)),
    ],
)
def test_reread_and_skipped_are_told_by_content(start, count):
    """What came and had been processed is re-read, what lies on the source and did neither come
    nor was processed is skipped, whatever the offsets."""
    assert resumed(start).count == count
    assert resumed(0).count_from(start) == count


def test_record_that_was_never_mirrored_counts_as_skipped():
    """The judge looks at the source, not at what the mirror happens to hold."""
    mirrored_in_part = Logs(SOURCE, TARGET[:8])
    got = TARGET[6:8]
    assert judge(mirrored_in_part, values(*range(6)), Read(6, got)).skipped == 2


@pytest.mark.parametrize(("start", "reread"), [(9, 0), (3, 4)])
def test_copy_by_a_repeat_is_no_reread_unless_the_first_one_came_too(start, reread):
    """A replicator that repeats a part of the log makes copies that no offset could keep away."""
    target = entries(0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 4, 9)
    logs = Logs(SOURCE, target)
    assert judge(logs, values(*range(7)), Read(start, target[start:])).reread == reread


@pytest.mark.parametrize(("compacted", "skipped"), [(True, 0), (False, 1)])
def test_newer_record_of_the_key_makes_up_only_in_a_compacted_topic(compacted, skipped):
    """The copy may be compacted further than the source: then the key's newest value is what
    counts; in any other topic each record does."""
    source = entries(0, 1, 2, 3, keys=2)
    logs = Logs(source, source[2:], compacted)
    got = source[2:]
    assert judge(logs, values(0), Read(2, got)).skipped == skipped


def test_older_record_of_the_key_makes_up_for_nothing():
    """To get an old value in place of the newest is a loss in a compacted topic too."""
    source = entries(0, 1, 2, 3, keys=2)
    logs = Logs(source, source[:2], compacted=True)
    assert judge(logs, frozenset(), Read(0, source[:2])).skipped == 2


# --- the verdict on a group ---------------------------------------------------------------


def verdict_on(*resumed: Resumed, metadata: str = "") -> GroupResult:
    return group_verdict("g", resumed, metadata)


def test_group_that_goes_on_where_its_row_says_has_no_fault():
    """Nothing skipped, nothing again, the metadata there: the exit status is 0."""
    verdict = verdict_on(resumed(6, metadata="m"), metadata="m")
    assert verdict.moved
    assert verdict.faults == ()
    status, sentences = conclusion([verdict], "backup")
    assert status == 0
    assert sentences[0].startswith("No record was skipped.")


def test_skipped_record_makes_the_exit_status_one():
    lossy = verdict_on(resumed(7, at=row(target_offset=7)))
    status, sentences = conclusion([verdict_on(resumed(6)), lossy], "backup")
    assert status == 1
    assert sentences == [
        "1 record skipped, which must never happen; please report it.",
        "g skipped 1 record.",
    ]


@pytest.mark.parametrize(
    ("start", "of_row", "announced", "status"),
    [
        # The bound of a row is a promise.
        (4, row(target_offset=4, bound=2), 2, 0),
        (4, row(target_offset=4, bound=1), 1, 1),
        (4, row(target_offset=4, bound=0), 0, 1),
        # A group that was left alone goes on from offsets of its own: it announces no re-read, and
        # may skip nothing either.
        (0, row(OutcomeKind.SKIPPED, reason=Reason.GROUP_ACTIVE, current=0), 0, 0),
        (9, row(OutcomeKind.SKIPPED, reason=Reason.TARGET_AHEAD, current=9), 0, 1),
    ],
)
def test_no_more_is_read_again_than_the_row_announces(start, of_row, announced, status):
    verdict = verdict_on(resumed(start, at=of_row))
    assert verdict.moved is (of_row.outcome is OutcomeKind.COMMITTED)
    assert verdict.announced == announced
    assert conclusion([verdict], "backup")[0] == status


def test_consumer_that_begins_elsewhere_is_a_fault():
    verdict = verdict_on(resumed(0, at=row(bound=6)))
    assert verdict.faults == ("g did not start orders-0 at the offset in its row",)


def test_lost_metadata_is_a_fault():
    verdict = verdict_on(resumed(6, metadata=""), metadata="m")
    assert verdict.faults == ("g has lost its commit's metadata on orders-0",)


def test_way_counts_positions_without_an_answer_apart():
    """What has no offset re-reads and skips nothing: it is silent."""
    starts = iter([8, None])
    found = way("copied", [resumed(6), resumed(6)], lambda _: next(starts))
    assert (found.count, found.positions, found.silent) == (Count(2, 0, 2), 2, 1)


@pytest.mark.parametrize(("length", "copied"), [(10, 8), (8, 8), (7, None)])
def test_copied_offset_behind_the_targets_end_is_no_answer(length, copied):
    """A consumer is reset from an offset that its log does not have."""
    logs = Logs(SOURCE, TARGET[:length])
    assert Resumed(row(), logs, frozenset(), Read(0, ())).copied == copied


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_record_has_a_value_of_its_own(topic):
    """Else content could not tell which record a consumer got."""
    written = [
        record.value
        for partition in range(PARTITIONS)
        for record in topic.fresh(partition, 0, topic.records, 0)
    ]
    assert len(set(written)) == len(written)


@pytest.mark.parametrize(
    ("stand", "offsets"),
    [
        (None, [None] * PARTITIONS),
        (-1, [104] * PARTITIONS),
        (-5, [100] * PARTITIONS),
        (0, [100] * PARTITIONS),
        ((-1, -2, 0, 1), [104, 103, 100, 101]),
    ],
)
def test_group_stops_at_a_record(stand, offsets):
    log = {("orders", n): entries(*range(5), first_offset=100) for n in range(PARTITIONS)}
    assert stops(stand, "orders", log) == dict(enumerate(offsets))


# --- all of it ----------------------------------------------------------------------------


def demo(folder: Path, *options: str) -> Command:
    """The command as a stranger runs it, its temporary files in `folder`."""
    return start("demo", *options, env={"TMPDIR": str(folder)})


def left_of(folder: Path) -> tuple[list[str], list[str]]:
    """The processes that name the folder in their command lines, and what lies in it."""
    listed = succeeds("ps", "-Aww", "-o", "args")
    processes = [line for line in listed.splitlines() if str(folder) in line]
    return processes, [path.name for path in folder.glob("tsoffset-*")]


def played(folder: Path, *options: str) -> str:
    """What it prints, played to its end; it has to end well."""
    with demo(folder, *options) as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, ""), output + errors
    return output


def rows_in(output: str) -> Mapping[str, list[str]]:
    """The lines of the outcome table by the group they begin with."""
    (_, table) = output.split("GROUP  ", 1)
    lines = table.split("\n\n", 1)[0].splitlines()[1:]
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.split()[0], []).append(line)
    return found


# The streaming scenario runs on secured clusters, too.
SECURE = pytest.param(("--secure",), id="secure", marks=pytest.mark.long)


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.parametrize("options", [pytest.param((), id="plain"), SECURE])
def test_demo_tells_its_story_and_leaves_nothing(tmp_path, options):
    """Exit status 0, the whole outcome table, a verdict, plain text; and no process, no file."""
    output = played(tmp_path, *options)
    assert "\x1b" not in output
    rows = rows_in(output)
    assert rows.keys() == {group.name for group in GROUPS}
    assert {len(lines) for lines in rows.values()} == {PARTITIONS}
    assert all("GROUP_ACTIVE" in line for line in rows["alerts"])
    assert all("TARGET_AHEAD" in line for line in rows["pricing"])
    assert all("EXPIRED" in line for line in rows["archive"])
    moved = rows.keys() - {"alerts", "pricing", "archive"}
    assert all(" committed " in line for group in moved for line in rows[group]), output
    assert "Neither cluster has an offset-syncs or a checkpoints topic." in " ".join(output.split())
    assert "A second sync: 0 to commit" in " ".join(output.split())
    assert re.search(r"No record was skipped\. 15 groups resumed on backup and read \d", output)
    assert left_of(tmp_path) == ([], [])


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.thorough
def test_failback_comes_home_with_all_that_was_done_away(tmp_path):
    """Groups that worked on the target resume on the source, records that were never mirrored
    included; each row of the way back is in place, and exact."""
    output = played(tmp_path, "--scenario", "failback")
    rows = rows_in(output)
    assert rows.keys() == {g.name for g in GROUPS if g.on_target is None and not g.early}
    assert all(" exact " in line for lines in rows.values() for line in lines), output
    assert re.search(r"No record was skipped\. 11 groups resumed on primary and read \d", output)
    assert left_of(tmp_path) == ([], [])


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.thorough
def test_migration_takes_the_steps_that_migrate_prints(tmp_path):
    """Each printed step is taken in its order; tsoffset moves groups on from where MirrorMaker 2
    had them, and goes on without what is deleted in the end."""
    output = played(tmp_path, "--scenario", "migration")
    printed = re.findall(r"(?m)^     \d\. (.+)$", output)
    assert len(printed) == 7
    assert [
        title for title in re.findall(r"(?m)^\d+\. (.+)$", output) if title in printed
    ] == printed
    before, after = (
        [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", line)[-4:]]
        for line in re.findall(
            r"(?m)^   as (?:MirrorMaker 2 had|tsoffset has) set them +(.+)$", output
        )
    )
    assert before[0] > 0 == before[1], output
    assert after == [0, 0, 0, 48], output
    words = " ".join(output.split())
    assert re.search(r"[1-9]\d* committed, \d+ unchanged", words)
    assert "and the topics have not been created again: neither cluster has one." in words
    assert (
        "0 to commit, 48 unchanged, 12 skipped (4 EXPIRED, 4 GROUP_ACTIVE, 4 TARGET_AHEAD)" in words
    )
    assert re.search(r"No record was skipped\. 15 groups resumed on backup and read \d", words)
    assert "the 12 groups whose offsets tsoffset committed re-read 0 of them" in words
    assert "No offset went backwards." in words
    assert left_of(tmp_path) == ([], [])


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.thorough
def test_streaming_query_counts_each_record_once(tmp_path):
    """A query's checkpoint is migrated between secured clusters; every offset in it is exact."""
    output = played(tmp_path, "--scenario", "streaming", "--secure")
    assert len(re.findall(r"would_commit  -       exact            0 ", output)) == 16, output
    words = " ".join(output.split())
    assert "8,000 records that it had not counted before" in words
    assert "has counted each of 49,078 records of primary exactly once" in words
    assert left_of(tmp_path) == ([], [])


def test_stop_ends_what_was_kept_and_nothing_else(tmp_path, monkeypatch):
    """A process whose id another program has now is left alone; so is a folder that is a link, and
    a demo that is being played."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder, playing = tmp_path / "tsoffset-demo-a", tmp_path / "tsoffset-demo-b"
    (elsewhere := tmp_path / "elsewhere").mkdir()
    for each in (folder, playing):
        each.mkdir()
    (tmp_path / "tsoffset-demo-c").symlink_to(elsewhere)
    sleeps = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    names_folder = [*sleeps, f"-Dconfiguration={folder}/log4j2.properties"]
    with (
        subprocess.Popen(names_folder, stdout=subprocess.PIPE) as ours,
        subprocess.Popen(sleeps, stdout=subprocess.PIPE) as other,
    ):
        try:
            # Popen returns while the command line in /proc is still empty.
            assert ours.stdout.readline() == other.stdout.readline() == b"\n"
            remember(folder, {"backup": ours.pid, "primary": other.pid, "mirror-maker": None})
            remember(elsewhere, {"backup": other.pid})
            result = invoke("demo", "--stop")
            assert (result.exit_code, result.output) == (0, f"Stopped backup; removed {folder}.\n")
            assert ours.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
            assert other.poll() is None
        finally:
            other.kill()
            ours.kill()
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "elsewhere",
        "tsoffset-demo-b",
        "tsoffset-demo-c",
    ]
    assert "There is no kept demo" in invoke("demo", "--stop").output
    assert invoke("demo", "--stop", "--keep").exit_code == 2


@pytest.mark.integration
@pytest.mark.thorough
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_interrupted_demo_leaves_nothing(tmp_path):
    """Ctrl-C while the brokers are starting: exit status 130, and all is gone."""
    with demo(tmp_path) as process:
        for line in process.stdout:
            if line.startswith("1. "):
                break
        wait_until(lambda: bool(left_of(tmp_path)[0]))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (process.returncode, errors) == (130, "interrupted\n"), output + errors
    assert left_of(tmp_path) == ([], [])


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("options", [pytest.param((), id="plain"), SECURE])
def test_kept_clusters_can_be_explored_and_ended(tmp_path, options):
    """With --keep the clusters outlive the demo, and the commands it prints work as they are."""
    output = played(tmp_path, "--keep", *options)
    commands = [line.strip() for line in output.split("To look around", 1)[1].splitlines()]
    (end,) = [line for line in commands if line.endswith(" demo --stop")]
    try:
        assert len(left_of(tmp_path)[0]) == 3
        tried = [line for line in commands if " -c " in line or "--bootstrap-server" in line]
        (daemon,) = [line for line in tried if " run -c " in line]
        tried.remove(daemon)
        assert len(tried) == 6
        for line in tried:
            done = run_program(*shlex.split(line))
            assert done.returncode == 0, line + done.stdout + done.stderr
            assert done.stdout
    finally:
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        subprocess.run(shlex.split(end), cwd=ROOT, env=env, check=True)
    wait_until(lambda: not left_of(tmp_path)[0])
    assert left_of(tmp_path) == ([], [])
