"""`tsoffset compare` with checkpoints from a file, and with translations that history has."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.commands.test_compare import checkpoint, judged
from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.memory_flows import flow, mirrored_estate
from tests.past_cycles import FLOW, MINUTE, Past, row
from tsoffset.commands.compare.checkpoints import read_checkpoint_file
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgement import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.errors import UsageError
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.flow.settings import FlowSettings, HistorySettings, Settings
from tsoffset.model import OutcomeKind, Precision, Reason, TopicPartition
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
    (found,) = compare(
        [narrow],
        estate.connect,
        settings=Settings((narrow,), ("A", "B")),
        options=CompareOptions(file=path),
    )
    (pair,) = found.pairs
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


# --- history --------------------------------------------------------------------------------


def no_cluster(_: object) -> NoReturn:
    raise AssertionError("a cluster was asked")


def recorded(directory: Path, path: Path, one: FlowSettings | None = None) -> FlowComparison:
    """What is found without any cluster."""
    chosen = one or flow()
    settings = Settings((chosen,), ("A", "B"), history=HistorySettings(str(directory)))
    options = CompareOptions(file=path, recorded=True)
    (found,) = compare([chosen], no_cluster, settings=settings, options=options)
    return found


def by_group(found: FlowComparison) -> dict[str | None, ComparedPair]:
    return {pair.group: pair for pair in found.pairs}


def test_history_and_a_file_need_no_cluster(dump, tmp_path):
    """Each pair of the last cycle beside its checkpoint, with what the target group had after
    that cycle; the lag counts to the furthest group."""
    past = Past(tmp_path / "history")
    past.keep(row("billing", offset=50), row("search", offset=90))
    past.keep(
        row("billing", offset=60, current_target_offset=50, outcome=OutcomeKind.COMMITTED),
        row("search", offset=90),
        row("unread", offset=80, precision=Precision.FRONTIER, reread_bound=3),
    )
    path = dump(printed("billing", 60, 44), printed("search", 90, 90), printed("unread", 80, 85))
    found = recorded(past.directory, path)
    assert found.known_at_ms == (past.started + 2 * MINUTE + 1.5) * 1000
    pairs = by_group(found)
    billing = pairs["billing"]
    assert judged(billing) == (CheckpointVerdict.REREAD, 16)
    assert (billing.ours, billing.true_position, billing.lag) == (60, 60, 30)
    assert (billing.target_commit, billing.target_commit_is) == (60, CommitOrigin.TSOFFSET)
    assert judged(pairs["search"]) == (CheckpointVerdict.EQUAL, 0)
    assert judged(pairs["unread"]) == (CheckpointVerdict.BEYOND, 5)
    assert pairs["unread"].true_position is None


def test_a_recorded_pair_accuses_nobody(dump, tmp_path):
    """Past an exact translation may lie a repeat, which nobody was asked for; a checkpoint of a
    later commit than history has is not judged."""
    past = Past(tmp_path / "history")
    past.keep(row("billing", offset=60), row("search", offset=60))
    path = dump(printed("billing", 60, 70), printed("search", 70, 70))
    found = recorded(past.directory, path)
    pairs = by_group(found)
    assert judged(pairs["billing"]) == (CheckpointVerdict.BEYOND, 10)
    assert "compare without --history" in (pairs["billing"].message or "")
    assert judged(pairs["search"]) == (CheckpointVerdict.UNJUDGED, None)
    assert "history ends at 60" in (pairs["search"].message or "")


def test_skips_and_failures_of_history_keep_their_reasons(dump, tmp_path):
    """A pair without a translation, one that failed, and a checkpoint that history knows nothing
    of."""
    past = Past(tmp_path / "history")
    skipped = {"outcome": OutcomeKind.SKIPPED, "target_offset": None, "precision": None}
    past.keep(row("a", reason=Reason.NO_PROOF, message="nothing proven", **skipped), row("b"))
    path = dump(printed("a", 7, 5), printed("gone", 7, 5))
    found = recorded(past.directory, path)
    pairs = by_group(found)
    assert judged(pairs["a"]) == (CheckpointVerdict.UNJUDGED, None)
    assert (pairs["a"].ours_reason, pairs["a"].message) == (Reason.NO_PROOF, "nothing proven")
    assert judged(pairs["b"]) == (CheckpointVerdict.NONE, None)
    assert judged(pairs["gone"]) == (CheckpointVerdict.UNJUDGED, None)
    assert "history has nothing" in (pairs["gone"].message or "")


def test_history_with_the_topic_asks_the_target_alone(tmp_path):
    """Without a dump the checkpoints are read from the target; the source may be gone."""
    estate = mirrored_estate(100)
    checkpoint(estate, "billing", 60, 44)
    estate["A"].unreachable = True
    past = Past(tmp_path / "history")
    past.keep(row("billing", offset=60))
    settings = Settings((flow(),), ("A", "B"), history=HistorySettings(str(past.directory)))
    (found,) = compare(
        [flow()], estate.connect, settings=settings, options=CompareOptions(recorded=True)
    )
    assert [judged(pair) for pair in found.pairs] == [(CheckpointVerdict.REREAD, 16)]
    estate["B"].unreachable = True
    (found,) = compare(
        [flow()], estate.connect, settings=settings, options=CompareOptions(recorded=True)
    )
    assert found.exit_status == 3


def test_a_history_without_the_flow_is_a_warning(dump, tmp_path):
    """Nothing was kept yet: the sentence says what to see to."""
    found = recorded(tmp_path / "empty", dump(printed("billing", 60, 44)))
    assert FLOW in found.warnings[0]
    assert "history has no cycle of it" in found.warnings[0]


def test_words_that_do_not_go_together_are_bad_usage(dump, tmp_path):
    """Status 2 and a sentence, before any cluster is asked."""
    config = properties_file(tmp_path, nowhere(), nowhere())
    for words, said in (
        (("--history",), "history.dir is not set"),
        (("--against", "timestamps", "--history"), "leave out --checkpoints and --history"),
        (("--checkpoints", str(tmp_path / "no")), "does not exist"),
        (("--times", "2"), "add --every"),
        (("--every", "soon"), "not a duration"),
        (("--every", "0s"), "not a duration"),
    ):
        result = invoke("compare", "-c", str(config), *words)
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())


def test_the_command_asks_no_cluster(dump, tmp_path):
    """With a history and a dump the words of the command are enough: nobody answers at the
    addresses of the file."""
    past = Past(tmp_path / "history")
    past.keep(row("billing", offset=60), row("billing", 1, offset=90), row("search", offset=80))
    history = f"history.dir = {past.directory}"
    config = properties_file(tmp_path, nowhere(), nowhere(), history)
    dumped = dump(printed("billing", 60, 44), printed("search", 80, 80))
    report = tmp_path / "report.html"
    words = ("--history", "--checkpoints", str(dumped), "--html", str(report))
    result = invoke("compare", "-c", str(config), *words, "--by", "group", "--format", "csv")
    assert result.exit_code == 0, result.output
    header, *lines = result.stdout.splitlines()
    names = header.split(",")
    found = [dict(zip(names, one.split(","), strict=True)) for one in lines]
    assert [(one["name"], one["pairs"], one["reread_records"], one["none"]) for one in found] == [
        ("billing", "2", "16", "1"),
        ("search", "1", "0", "0"),
    ]
    text = report.read_text(encoding="utf-8")
    assert "tsoffset's offsets are those of the last cycle in the history" in text
    assert "tsoffset's offsets are of the cycle that ended 2026-11-22T12:01" in text
    assert dumped.name in text
