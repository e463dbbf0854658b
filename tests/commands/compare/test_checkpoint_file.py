"""`tsoffset compare` with checkpoints from a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.compare.test_flow_comparison import checkpoint, comparison, judged
from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.memory_flows import flow, mirrored_estate
from tsoffset.commands.compare.checkpoint_file import read_checkpoint_file
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.errors import UsageError
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.model import TopicPartition
from tsoffset.replicators.checkpoints import Checkpoint, CheckpointKey, Checkpoints
from tsoffset.testing.memory_cluster import Verb

Dump = Callable[..., Path]


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    """A function that writes lines to a file."""

    def write(*lines: str | bytes) -> Path:
        path = tmp_path / "dump"
        path.write_bytes(
            b"".join((one.encode() if isinstance(one, str) else one) + b"\n" for one in lines)
        )
        return path

    return write


def printed(
    group: str, source: int, target: int, *, place: str = "A.orders-0", metadata: str = ""
) -> str:
    """A line of MirrorMaker 2's own formatter."""
    return (
        f"Checkpoint{{consumerGroupId={group}, topicPartition={place}, upstreamOffset={source}, "
        f"downstreamOffset={target}, metadata={metadata}}}"
    )


def line(group: str = "billing", **changes: Any) -> str:
    """A line of JSON."""
    fields = {
        **{"group": group, "topic": "A.orders", "partition": 0},
        **{"source_offset": 60, "target_offset": 44},
    }
    return json.dumps(fields | changes)


def read(path: Path) -> Checkpoints:
    found = Checkpoints()
    read_checkpoint_file(path, found, lambda _: True)
    return found


def key(group: str = "billing", topic: str = "A.orders", partition: int = 0) -> CheckpointKey:
    return CheckpointKey(group, TopicPartition(topic, partition))


# --- files ----------------------------------------------------------------------------------


def test_text_of_the_formatter_is_read(dump):
    """Names may hold commas, hyphens and what is not ASCII; of a key the last line holds."""
    path = dump(
        printed("billing", 20, 10),
        printed("a, b=c-7 grüße", 5, 4, place="A.or-ders-12", metadata="x}, y={"),
        printed("billing", 60, 44),
        "",
    )
    found = read(path)
    assert found.malformed == 0
    assert found.newest == {
        key(): Checkpoint(60, 44, None),
        key("a, b=c-7 grüße", "A.or-ders", 12): Checkpoint(5, 4, None),
    }


def test_json_lines_are_read(dump):
    """Where the lines carry times, the youngest of a key holds, wherever it stands."""
    path = dump(line(timestamp_ms=7), line(target_offset=9, timestamp_ms=5), line("other"))
    assert read(path).newest == {
        key(): Checkpoint(60, 44, 7),
        key("other"): Checkpoint(60, 44, None),
    }


@pytest.mark.parametrize(
    "malformed",
    [
        "Processed a total of 7 messages",
        printed("billing", -1, 3),
        printed("billing", 7, 3).replace("7", "7" * 5_000),
        printed("a, topicPartition=b-1, upstreamOffset=1", 1, 1),
        printed("billing", 60, 44)[:-1],
        line(group=7),
        line(topic=None),
        line(partition="0"),
        line(partition=True),
        line(target_offset=None),
        line(source_offset=2**63),
        '{"group": "billing"}',
        # Of `plan`, and of `compare` without MirrorMaker 2's own committed offset.
        line(topic=None, source_topic="orders", target_topic="A.orders"),
        line(theirs=44, target_topic="A.orders"),
        "{",
        "[]",
        b"\xff\xfe",
        "[" * 100_000,
        "{" + '"a":{' * 100_000,
    ],
)
def test_what_is_no_checkpoint_is_counted(dump, malformed):
    """Another line, one that may be read in two ways, fields missing or of another kind."""
    found = read(dump(malformed, line()))
    assert (found.malformed, list(found.newest)) == (1, [key()])


def test_a_file_without_one_checkpoint_is_bad_usage(dump, tmp_path):
    """The sentence says how to make it; so does that of a file that is not there."""
    with pytest.raises(UsageError, match=r"none of its 2 lines.*CheckpointFormatter"):
        read(dump("some", "", "words"))
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "missing")


def test_a_line_without_end_is_not_read_to_it():
    """Its memory would be that of the file."""
    with pytest.raises(UsageError, match="more than 1 MiB"):
        read(Path("/dev/zero"))


def test_a_file_takes_the_topics_place(dump):
    """The topic is not read; groups that the flow leaves out are left out; what was once a
    checkpoint is known for it."""
    estate = mirrored_estate(100, billing=60)
    estate.commit("billing", "A.orders", 10, on="B")
    checkpoint(estate, "billing", 60, 60)
    path = dump(printed("billing", 20, 10), printed("billing", 60, 44), printed("other", 1, 1))
    narrow = flow(group_filter=DefaultGroupFilter(("billing",)))
    (pair,) = comparison(estate, narrow, options=CompareOptions(file=path)).pairs
    assert judged(pair) == (CheckpointVerdict.REREAD, 16)
    assert (pair.target_commit_is, pair.target_commit_reread) == (CommitOrigin.EARLIER, 50)
    assert estate.asked("B", Verb.READ_RAW) == 0


def test_a_comparison_can_be_compared_again(dump):
    """Lines of `--format json` are a dump, too; pairs without a checkpoint have none."""
    path = dump(
        json.dumps(
            {
                **{"group": "billing", "target_topic": "A.orders", "partition": 0, "theirs": 44},
                **{"theirs_source_offset": 60, "theirs_timestamp_ms": 7, "source_offset": 80},
            }
        ),
        json.dumps({"group": "other", "theirs": None}),
    )
    found = read(path)
    assert (found.newest, found.malformed) == ({key(): Checkpoint(60, 44, 7)}, 0)


def test_words_that_do_not_go_together_are_bad_usage(dump, tmp_path):
    """Status 2 and a sentence, before any cluster is asked."""
    config = properties_file(tmp_path, nowhere(), nowhere())
    dumped = dump(line())
    for words, said in (
        (("--against", "timestamps", "--checkpoints", str(dumped)), "leave out --checkpoints"),
        (("--checkpoints", str(tmp_path / "no")), "does not exist"),
        (("--times", "2"), "add --every"),
        (("--every", "soon"), "not a duration"),
        (("--every", "0s"), "not a duration"),
    ):
        result = invoke("compare", "-c", str(config), *words)
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())
