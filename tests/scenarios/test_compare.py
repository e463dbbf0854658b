"""`tsoffset compare` beside a real MirrorMaker 2 that emits checkpoints and syncs groups."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.invoking import invoke
from tests.producing import Contents, numbered
from tests.scenarios.flows import SYNCED_GROUPS, newest_checkpoints, prepare_mirror
from tests.waiting import wait_until
from tsoffset.lab.embedded.process import JavaProcess

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

# Aliases of their own, so that no other test's checkpoints lie in the same topic.
SOURCE, TARGET = "east", "west"
CHECKPOINTS = f"{SOURCE}.checkpoints.internal"
RECORDS, TRIMMED = 2_000, 100
STOOD, MOVED = RECORDS // 2, RECORDS // 2 + 50
POSITIONS = {
    "caught-up": RECORDS,
    "rewound": RECORDS,
    "nearly": RECORDS - 3,
    "half": STOOD,
    "far": TRIMMED + 1,
    "first": TRIMMED,
    "grüße aus köln": 700,
}

Key = tuple[str, str]
_PRINTED = re.compile(
    r"Checkpoint\{consumerGroupId=(.*?), topicPartition=(.*?), upstreamOffset=(\d+), "
    r"downstreamOffset=(\d+), metadata="
)


@dataclass(frozen=True, slots=True)
class Peers:
    """What MirrorMaker 2 made of the groups, and how tsoffset is asked about it."""

    topic: str
    properties: Path
    target: Contents

    def pairs(self, *words: str) -> dict[tuple[str, int], dict[str, Any]]:
        """The objects that the command prints, by group and partition."""
        result = invoke("compare", "-c", str(self.properties), "--format", "json", *words)
        assert result.exit_code == 0, result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        return {(pair["group"], pair["partition"]): pair for pair in found}


@pytest.fixture(scope="session")
def peers(source, target, unique, tmp_path_factory) -> Peers:
    """Groups at many depths of two partitions, mirrored, checkpointed and synced; then
    MirrorMaker 2 is stopped."""
    topic = unique("compared")
    folder = tmp_path_factory.mktemp("peers")
    overrides = {f"{SOURCE}->{TARGET}.groups": f"{topic}-.*", **SYNCED_GROUPS}
    clusters = {SOURCE: source, TARGET: target}
    mirror = prepare_mirror(folder, clusters, {f"{SOURCE}->{TARGET}": [topic]}, overrides)
    source.create_topic(topic, 2)
    for partition in range(2):
        source.produce(topic, numbered(RECORDS), partition=partition, batch=100)
        source.delete_records(topic, TRIMMED, partition=partition)
    with mirror:
        remote = f"{SOURCE}.{topic}"
        mirror.wait_until_mirrored(source.bootstrap, target.bootstrap, {topic: remote})
        for name, position in POSITIONS.items():
            source.commit_offsets(
                f"{topic}-{name}", {(topic, partition): position for partition in range(2)}
            )

        def synced():
            return all(len(target.committed_offsets(f"{topic}-{name}")) == 2 for name in POSITIONS)

        wait_until(synced, "MirrorMaker 2 has synced all groups")
    # One goes on, and has a checkpoint that is older than its commit.
    source.commit_offsets(f"{topic}-half", {(topic, 1): MOVED})
    # And one is set back.
    source.commit_offsets(f"{topic}-rewound", {(topic, 0): STOOD})
    return Peers(topic, mirror.properties_path, target)


def checkpoints(contents: Contents) -> dict[Key, tuple[int, int]]:
    """The newest checkpoints, decoded by us from what an ordinary consumer gets."""
    return {
        (key.group, str(key.target)): (value.source_offset, value.target_offset)
        for key, value in newest_checkpoints(contents, SOURCE).items()
    }


def dumped(contents: Contents, directory: Path) -> Path:
    """What Kafka's own console consumer prints of the topic, with MirrorMaker 2's formatter."""
    records = len(contents.read(CHECKPOINTS))
    consumer = JavaProcess(
        "formatted",
        [
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", contents.bootstrap, "--topic", CHECKPOINTS),
            *("--from-beginning", "--max-messages", str(records)),
            *("--formatter", "org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"),
        ],
        directory=directory,
        java_options=("-Xmx128m",),
    )
    assert consumer.run(timeout_seconds=180) == 0
    return consumer.log_path


def formatted(dump: Path) -> dict[Key, tuple[int, int]]:
    """The newest checkpoints of such a dump."""
    return {
        (group, place): (int(upstream), int(downstream))
        for group, place, upstream, downstream in _PRINTED.findall(dump.read_text(encoding="utf-8"))
    }


def test_checkpoints_are_decoded_as_mirror_maker_prints_them(peers, tmp_path):
    """Our decoding of each checkpoint that MirrorMaker 2 wrote is that of its own formatter."""
    ours = checkpoints(peers.target)
    assert len(ours) == 2 * len(POSITIONS)
    dump = dumped(peers.target, tmp_path)
    assert ours == formatted(dump)
    times = {"compared_at_ms": 0, "theirs_timestamp_ms": 0}
    of_topic, of_dump = (
        {key: one | times for key, one in peers.pairs(*words).items()}
        for words in ((), ("--checkpoints", str(dump)))
    )
    assert of_topic == of_dump


def test_what_is_reread_is_counted_from_the_true_position(peers):
    """tsoffset's offset is exact, so a consumer at MirrorMaker 2's offset re-reads the records
    between the two. All offsets here hold a record; the source's and the target's differ by what
    the source had lost. No checkpoint is unsafe."""
    pairs = peers.pairs()
    rereads = 0
    rewound = f"{peers.topic}-rewound", 0
    for pair in [pair for key, pair in pairs.items() if key != rewound]:
        assert pair["ours"] == pair["source_offset"] - TRIMMED
        assert pair["ours_precision"] == "exact"
        between = pair["ours"] - pair["theirs"]
        assert between >= 0
        assert pair["verdict"] == ("reread" if between else "equal")
        assert pair["records"] == between
        assert pair["lag"] == RECORDS - pair["source_offset"]
        assert pair["true_position"] == pair["ours"]
        rereads += between
    assert rereads > 0
    assert pairs[f"{peers.topic}-first", 0]["verdict"] == "equal"


def test_a_group_that_was_set_back_would_skip(peers, tmp_path):
    """Its checkpoint is of the later commit: what lies between would never come, and the report
    has it before all others."""
    report = tmp_path / "report.html"
    pair = peers.pairs("--html", str(report))[f"{peers.topic}-rewound", 0]
    assert (pair["source_offset"], pair["theirs_source_offset"]) == (STOOD, RECORDS)
    assert pair["verdict"] == "unsafe"
    assert pair["records"] == pair["theirs"] - (STOOD - TRIMMED) > 0
    assert f"the group was reset to {STOOD}" in pair["message"]
    page = report.read_text(encoding="utf-8")
    assert re.findall(r">(unsafe|reread)</td>", page)[:2] == ["unsafe", "reread"]
