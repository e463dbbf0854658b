"""What cannot be read costs its own rows, never those of others."""

import json
import subprocess
import sys
from pathlib import Path

import javaproperties
import pytest
from kafka.errors import KafkaError

from tests.embedded_cluster import EmbeddedCluster
from tests.scenarios.flows import Flows, Rows
from tests.scenarios.holdings import ALL_AWAY, DAMAGED, HALF_AWAY, SOUND, TRIMMED
from tests.waiting import wait_until
from tsoffset.model import FailureKind, OutcomeKind, Precision

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
OFFSET = 555
# What each group has committed: one reads all topics, the others one each.
GROUPS = {
    "sound": ((SOUND, 0),),
    "damaged": ((DAMAGED, 0),),
    "half-away": ((HALF_AWAY, 0), (HALF_AWAY, 1)),
    "all-away": ((ALL_AWAY, 0),),
    "all-of-them": ((SOUND, 0), (DAMAGED, 0), (HALF_AWAY, 0), (HALF_AWAY, 1), (ALL_AWAY, 0)),
}
READABLE = {(SOUND, 0), (HALF_AWAY, 0)}
FAILURES = {
    (DAMAGED, 0): FailureKind.CORRUPT_BATCH,
    (HALF_AWAY, 1): FailureKind.NO_LEADER,
    (ALL_AWAY, 0): FailureKind.NO_LEADER,
}


@pytest.fixture(scope="module")
def crippled(estate: Flows, clusters: dict[str, EmbeddedCluster]) -> Flows:
    """D after its second node is lost, and a bit of its first one's disk."""
    contents = estate.contents["D"]
    for run in ("in-process", "by-command"):
        for group, places in GROUPS.items():
            contents.commit_offsets(f"{run}-{group}", dict.fromkeys(places, OFFSET))
    first, second = clusters["D"].nodes
    (segment,) = (first.directory / "data" / f"{DAMAGED}-0").glob("*.log")
    log = segment.read_bytes()
    with segment.open("r+b") as file:
        file.seek(log.index(b"value-%d" % OFFSET))
        file.write(b"VALUE")
    second.kill()

    def leaderless() -> bool:
        try:
            described = contents.admin.describe_topics([HALF_AWAY, ALL_AWAY])
        except KafkaError:
            # The client may ask the dead node first.
            return False
        leaders = {
            (topic["name"], partition["partition_index"]): partition["leader_id"]
            for topic in described
            for partition in topic["partitions"]
        }
        return leaders == {(HALF_AWAY, 0): 1, (HALF_AWAY, 1): -1, (ALL_AWAY, 0): -1}

    wait_until(leaderless, "the cluster has noticed that a node is gone")
    return estate


@pytest.fixture(scope="module")
def rows(crippled: Flows) -> Rows:
    """A sync of all groups from what is left of D."""
    return crippled.sync("D->B", "in-process-.*")


@pytest.mark.parametrize("group", GROUPS)
def test_what_can_be_read_is_synced(crippled: Flows, rows: Rows, group: str) -> None:
    """A topic with a damaged batch, a partition or a whole topic without a leader: every
    other partition is committed as ever, of the same group and of others."""
    for topic, partition in GROUPS[group]:
        if (topic, partition) in READABLE:
            row = rows.of(f"in-process-{group}", topic, partition)
            assert row.outcome is OutcomeKind.COMMITTED, row
            assert (row.target_offset, row.precision) == (OFFSET - TRIMMED, Precision.EXACT)
    committed = crippled.contents["B"].committed_offsets(f"in-process-{group}")
    assert committed == {
        (f"D.{topic}", partition): (OFFSET - TRIMMED, "")
        for topic, partition in GROUPS[group]
        if (topic, partition) in READABLE
    }


@pytest.mark.parametrize("group", GROUPS)
def test_what_cannot_be_read_says_why(rows: Rows, group: str) -> None:
    """These rows say `failed`, with a kind, the partition and a next step, and no offset."""
    for topic, partition in GROUPS[group]:
        if (topic, partition) in FAILURES:
            row = rows.of(f"in-process-{group}", topic, partition)
            assert (row.outcome, row.reason) == (OutcomeKind.FAILED, FAILURES[topic, partition])
            assert (row.target_offset, row.precision, row.reread_bound) == (None, None, None)
            assert row.message is not None
            assert f"{topic}-{partition}" in row.message
            assert "; " in row.message


def test_row_for_each_partition_and_no_other(rows: Rows) -> None:
    """What fails has its row like everything else."""
    assert sorted((row.group, row.source_topic, row.partition) for row in rows.all) == sorted(
        (f"in-process-{group}", topic, partition)
        for group, places in GROUPS.items()
        for topic, partition in places
    )


def command(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tsoffset", *words, "--config", str(path), "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_command_ends_with_1_if_some_row_failed(crippled: Flows, tmp_path: Path) -> None:
    """`tsoffset sync` commits what it can, has the failed rows in its output, and its exit
    status is 1."""
    flow = crippled.settings.flow("D->B")
    path = tmp_path / "d-to-b.properties"
    path.write_text(
        javaproperties.dumps(
            {
                "clusters": "D, B",
                "D.bootstrap.servers": ",".join(flow.source.bootstrap_servers),
                "B.bootstrap.servers": ",".join(flow.target.bootstrap_servers),
                "D->B.enabled": "true",
                "D->B.groups": "by-command-.*",
                "spark.master": "local[2]",
            }
        )
    )
    done = command(path, "sync")
    assert done.returncode == 1, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {
        (row["group"], row["source_topic"], row["partition"]): row["reason"] for row in found
    } == {
        (f"by-command-{group}", topic, partition): FAILURES.get((topic, partition))
        for group, places in GROUPS.items()
        for topic, partition in places
    }
    for group, places in GROUPS.items():
        assert crippled.contents["B"].committed_offsets(f"by-command-{group}") == {
            (f"D.{topic}", partition): (OFFSET - TRIMMED, "")
            for topic, partition in places
            if (topic, partition) in READABLE
        }
