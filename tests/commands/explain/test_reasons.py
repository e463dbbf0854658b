"""What `explain` says of small logs, one for each basis, held against `explain_answers.jsonl`.

The file has the pairs and the translation of each world as `--format json` prints them, without
nulls and without the steps, which are the search's. After an intended change, write it again with
`python -m tests.commands.explain.test_reasons` and read the difference.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.commands.explain.test_flow_explanation import explained, unlike
from tests.memory_flows import NOW_MS, Estate, flow, mirrored_estate, with_floor
from tsoffset.commands.explain.reasons import explain_outcome
from tsoffset.commands.explain.report import explanation_lines
from tsoffset.commands.explain.trace import Explanation, Trace, TranslationStatement
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.model import (
    Basis,
    CommittedOffset,
    LogRange,
    Precision,
    Proof,
    Safety,
    Side,
    TopicPartition,
    Translated,
)
from tsoffset.rule.inquiry import Question, RangeOf
from tsoffset.testing.memory_cluster import Message, mirror_partition

FILE = Path(__file__).with_name("explain_answers.jsonl")
LEFT_OUT = ("flow", "group", "source_topic", "partition", "source_step", "target_step")

World = tuple[Estate, FlowSettings]
BY_TIME = flow(translation=TranslationSettings(proof="timestamps"))
KEEPS_OFFSETS = flow(translation=TranslationSettings(expect=SAME_OFFSETS))


def standing(estate: Estate, offset: int, settings: FlowSettings | None = None) -> World:
    """The estate with a group at an offset."""
    estate.commit("billing", "orders", offset)
    return estate, settings or flow()


WORLDS: dict[str, Callable[[], World]] = {
    # The mirror is complete, the group in the middle.
    "lagging": lambda: standing(mirrored_estate(100, first_offset=1000), 45),
    # The group has read all, and the mirror is complete, or behind.
    "read_to_the_end": lambda: standing(mirrored_estate(100, first_offset=1000), 100),
    "read_further_than_mirrored": lambda: standing(mirrored_estate(100, up_to=60), 100),
    # An empty partition.
    "nothing_to_read": lambda: standing(mirrored_estate(0), 0),
    # The mirror has not reached the group.
    "past_the_mirror": lambda: standing(mirrored_estate(100, up_to=60), 80),
    "by_time_alone": lambda: standing(mirrored_estate(100), 45, BY_TIME),
    "in_a_mirror_that_keeps_offsets": lambda: standing(mirrored_estate(100), 45, KEEPS_OFFSETS),
    "in_a_mirror_that_diverged": lambda: standing(
        mirrored_estate(100, first_offset=7), 45, KEEPS_OFFSETS
    ),
    # Records that cannot be looked up: the nearest equal ones prove nothing. Near the source's
    # first record the target's log start is of use.
    "without_times": lambda: standing(mirrored_estate(700, stamped=False), 600),
    "without_times_near_the_beginning": lambda: standing(mirrored_estate(20, stamped=False), 15),
}


def world(build: Callable[[], World]) -> Callable[[], World]:
    """Take the world in, by the name of the function that builds it."""
    WORLDS[build.__name__] = build
    return build


@world
def among_twins() -> World:
    """Of two equal records, the next one to read and one before it, the first has no copy."""
    estate = Estate()
    estate.write("orders", 1)
    twin, between = Message(NOW_MS + 1, b"k", b"twin"), Message(NOW_MS + 1, b"k", b"between")
    estate["A"].log("orders").append([twin, between, twin, Message(NOW_MS + 2, b"k", b"last")])
    estate.mirror("orders")
    estate["B"].log("A.orders").remove([1, 2])
    return standing(estate, 3)


@world
def left_out() -> World:
    """The replicator has left out the next record to read."""
    estate = Estate()
    estate.write("orders", 100)
    estate["B"].create_topic("A.orders")
    source, target = estate["A"].log("orders"), estate["B"].log("A.orders")
    mirror_partition(source, target, drop=lambda offset, _: offset == 45)
    return standing(estate, 45)


@world
def all_the_same() -> World:
    """Equal records between the logs' beginnings and the first that is unmistakable."""
    estate = Estate()
    estate["A"].create_topic("orders")
    same = [Message(NOW_MS, b"k", b"same")] * 4
    estate["A"].log("orders").append([*same, Message(NOW_MS + 1, b"k", b"last")])
    estate.mirror("orders")
    return standing(estate, 2)


@world
def failed_back() -> World:
    """The target holds the original, and records that the replica never had."""
    estate = mirrored_estate(20)
    estate["A"].log("orders").append([Message(NOW_MS + 99, b"new", b"on the original")])
    estate.commit("billing", "A.orders", 20, on="B")
    return estate, flow("B", "A")


@world
def written_late() -> World:
    """A record with an old time before the commit; the replicator did not copy its neighbors."""
    estate = Estate()
    estate["A"].create_topic("orders")
    estate["B"].create_topic("A.orders")
    times = (0, 1, 2, 0, 3, 4, 5, 6)
    records = [Message(NOW_MS + time, b"k", b"%d" % n) for n, time in enumerate(times)]
    source, target = estate["A"].log("orders"), estate["B"].log("A.orders")
    source.append(records)
    mirror_partition(source, target, drop=lambda offset, _: offset in (2, 4, 5))
    return standing(estate, 5)


@world
def past_a_repeat() -> World:
    """The mirror has not reached the group, and its log ends inside a repeat."""
    estate = mirrored_estate(100, up_to=60)
    mirror_partition(estate["A"].log("orders"), estate["B"].log("A.orders"), start=30, end=40)
    return standing(estate, 80)


@world
def before_a_repeat() -> World:
    """The next record to read lies on the target twice, once behind all others."""
    estate, settings = past_a_repeat()
    return standing(estate, 35, settings)


@world
def trimmed() -> World:
    """Retention has taken more on the target than the group has read."""
    estate = mirrored_estate(100)
    estate["B"].log("A.orders").delete_records(60)
    return standing(estate, 45)


@world
def trimmed_and_restarted() -> World:
    """After that, the mirror was restarted, and has copied most again."""
    estate, settings = trimmed()
    mirror_partition(estate["A"].log("orders"), estate["B"].log("A.orders"), end=80)
    return estate, settings


@world
def of_others() -> World:
    """The target holds nothing of the source; translation.floor = log_start."""
    return standing(unlike(), 645, flow(translation=with_floor()))


@world
def compacted() -> World:
    """More than may be read lies behind the commit, and the target is compacted."""
    estate = Estate()
    estate.write("orders", 2_000)
    estate["B"].create_topic("A.orders", configs={"cleanup.policy": "compact"})
    mirror_partition(estate["A"].log("orders"), estate["B"].log("A.orders"))
    return standing(estate, 45)


@world
def failed_back_to_the_next_record() -> World:
    """The target is the original, which lost its first records; the group is on the replica."""
    estate = mirrored_estate(100, first_offset=1000)
    estate["A"].log("orders").delete_records(20)
    estate.commit("billing", "A.orders", 1045, on="B")
    return estate, flow("B", "A")


def said(name: str) -> Iterator[dict[str, Any]]:
    """The pairs and the translation of a world."""
    (one,) = explained(*WORLDS[name]()).explanations
    for statement in (*one.pairs, one.translation):
        told = {key: it for key, it in asdict(statement).items() if key not in LEFT_OUT}
        yield {"world": name} | {key: it for key, it in told.items() if it is not None}


def expected() -> list[dict[str, Any]]:
    """All lines of the file."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_said_of_a_world(name):
    """Its pairs, and the answer with basis and reason."""
    assert list(said(name)) == [line for line in expected() if line["world"] == name]


def test_the_worlds_have_every_basis():
    """But for what is remembered, which explain does not use."""
    assert {line.get("basis") for line in expected()} - {None} == {*Basis}


def said_of(
    answer: Translated, *, failback: bool = False
) -> tuple[TranslationStatement, Explanation]:
    """What is said of an answer to a commit at 45, without steps of its own."""
    orders, copy = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
    commit = SourceCommit("billing", orders, CommittedOffset(45), copy, failback=failback)
    seen = Trace(flow(), commit)
    for side, place in ((Side.TARGET, copy), (Side.SOURCE, orders)):
        seen.add(Question(side, RangeOf(place)), LogRange(0, 10_000))
    (row,) = standing(mirrored_estate(), 45)[0].plan()
    found, pairs = explain_outcome(seen, answer, answer)
    return found, Explanation(row, True, seen.position, tuple(seen.steps), pairs, found)


def test_a_pair_that_these_steps_did_not_read_has_no_steps():
    """What other positions of the partition have read: neither steps nor a time, and the text of
    it is as true."""
    safety = Safety(Proof.FRONTIER, (99, 99))
    pairs = ((45, 45),)
    by_others = Translated(45, Precision.EXACT, 0, 45, 45, Basis.NEXT_RECORD, pairs, safety)
    found, one = said_of(by_others)
    (pair,) = one.pairs
    assert (pair.source_step, pair.target_step, pair.timestamp_ms) == (None, None, None)
    assert pair.role == "next_record"
    assert found.why == expected()[1]["why"].replace("1,045", "45").replace("1,099", "99")
    said = [line.plain for line in explanation_lines([one], None)]
    assert "  pair    source 45 = target 45, the next record to read" in said


@pytest.mark.parametrize(
    ("safety", "failback", "sentence"),
    [
        (
            Safety(Proof.TIME, None, 46, 412, 1_800_000_000_123, 9_101),
            False,
            "Safe by time: the oldest of the 412 records from offset 46 on is from "
            "2027-01-15T08:00:00.123Z, and everything on the target before 9,101 is older, or was "
            "read and is none of them.",
        ),
        (
            Safety(Proof.TIME, None, 46, 3, None, 9_101),
            False,
            "Safe by time: the 3 records from offset 46 on were read, not all of them have a "
            "timestamp, and the target was read to 9,101 and has none of them before that.",
        ),
        (
            Safety(Proof.TIME, None, 46, 0, None, 9_101),
            False,
            "Safe by time: the source has no record from offset 46 on.",
        ),
        (
            Safety(Proof.FIRST_COPY, (3, 20)),
            True,
            "Safe by first copy: source 3 has its original at 20; from there to 9,100 the "
            "replicator passed every record of the original, and the group has read the copies.",
        ),
        (
            Safety(Proof.FRONTIER, (99, 9_500)),
            False,
            "Safe by the frontier: no record after source 99 lies before its copy at 9,500, and on "
            "the way there from 9,100 the replicator passed every earlier record from the "
            "committed offset on.",
        ),
        (
            Safety(Proof.FRONTIER, (45, 9_100)),
            False,
            "Safe by the frontier: no record after source 45 lies before its copy at 9,100.",
        ),
        (
            Safety(Proof.FRONTIER, (40, 9_000)),
            True,
            "Safe by the frontier: source 40 has its original at 9,000; from there to 9,100 the "
            "replicator passed every record of the original, and the group has read the copies.",
        ),
    ],
)
def test_the_proof_is_said(safety, failback, sentence):
    """A sentence that names the proof, and what it rests on as fields."""
    pairs = ((45, 9_100),)
    answer = Translated(9_100, Precision.EXACT, 0, 9_100, 9_100, Basis.NEXT_RECORD, pairs, safety)
    found, _ = said_of(answer, failback=failback)
    at = "original" if failback else "copy"
    assert found.why == f"The next record to read, source 45, has its {at} at 9,100. {sentence}"
    assert found.proof is safety.proof
    rests_on = safety.pair or (safety.from_offset, safety.limit)
    assert (found.proof_source_offset, found.proof_target_offset) == rests_on


def test_where_a_log_begins_or_ends_no_proof_is_said():
    """Nothing lies before the log start: the pair that the bound rests on proves no more."""
    safety = Safety(Proof.FIRST_COPY, (0, 0))
    pairs = ((46, 60),)
    answer = Translated(0, Precision.BOUNDED, 45, 0, 0, Basis.LOG_START, pairs, safety)
    found, _ = said_of(answer)
    assert (found.proof, found.proof_source_offset) == (None, None)
    assert found.why == (
        "Nothing lies before the target's log start, so nothing is skipped. Source 46, which the "
        "group has yet to read, has its copy at 60. At most 45 records that the group has read may "
        "be on the target."
    )


if __name__ == "__main__":
    lines = [json.dumps(line) for name in WORLDS for line in said(name)]
    FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
