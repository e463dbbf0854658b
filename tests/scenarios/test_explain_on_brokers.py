"""`tsoffset explain` as an operator runs it: each sentence is held against the clusters."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetTimestamp

from tests.invoking import start
from tests.producing import Contents, Stored
from tests.scenarios.estate import Estate
from tests.scenarios.holdings import (
    EQUAL_TIMES,
    ORDERS,
    RECORDS,
    SHORTENED,
    TRANSACTIONS,
    TRIMMED,
    TRIMMED_THERE,
)
from tsoffset.testing.embedded import MirrorMaker

pytestmark = pytest.mark.integration

GROUP = "explained"
_SECONDS = 120
# A group with several partitions: it lags, has read all, stands in a run of one time, below
# what the target has left, and among transactions.
COMMITTED: Mapping[tuple[str, int], int] = {
    (EQUAL_TIMES, 0): 777,
    (ORDERS, 0): 555,
    (ORDERS, 1): RECORDS,
    (SHORTENED, 0): TRIMMED + TRIMMED_THERE - 50,
    (TRANSACTIONS, 0): 122,
}
BASES = ("next_record", "next_record", "all_read", "log_start", "next_record")


@dataclass(frozen=True, slots=True)
class Told:
    """What the command printed: as text, and as objects by partition in their order."""

    text: str
    objects: Sequence[Sequence[dict[str, Any]]]


@pytest.fixture(scope="module")
def told(estate: Estate, mirror_maker: MirrorMaker) -> Told:
    """The group explained twice, by processes of their own."""
    estate.contents["A"].commit_offsets(GROUP, COMMITTED)
    words = ["explain", "-c", str(mirror_maker.properties_path), "--flow", "A->B"]
    words += ["--group", GROUP]
    text, lines = (said(*words, "--format", form) for form in ("table", "json"))
    objects = [json.loads(line) for line in lines.splitlines()]
    members = groupby(objects, key=lambda one: (one["source_topic"], one["partition"]))
    return Told(text, [[*some] for _, some in members])


def said(*words: str) -> str:
    """Standard output of a command that ends well."""
    with start(*words) as process:
        out, err = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, err
    return out


def of_kind(objects: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] == kind]


class Sides:
    """The logs of both sides as any other client reads them."""

    def __init__(self, estate: Estate) -> None:
        self._contents = {"A": estate.contents["A"], "B": estate.contents["B"]}
        self.records = cache(self._records)

    def contents(self, cluster: str) -> Contents:
        return self._contents[cluster]

    def first_at(self, cluster: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """What the cluster answers to a time lookup; None for none."""
        place = TopicPartition(topic, partition)
        admin = self._contents[cluster].admin
        found = admin.list_partition_offsets({place: OffsetTimestamp(timestamp_ms)})[place]
        return None if found.offset < 0 else int(found.offset)

    def _records(self, cluster: str, topic: str, partition: int) -> Mapping[int, Stored]:
        read = self._contents[cluster].read(topic, partition)
        return {record.offset: record for record in read}


@pytest.fixture(scope="module")
def sides(estate: Estate) -> Sides:
    return Sides(estate)


def steps(objects: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The questions with their answers, which carry the same number."""
    questions, answers = of_kind(objects, "question"), of_kind(objects, "answer")
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True), start=1):
        assert question["step"] == answer["step"] == number
        yield question, answer


def test_each_partition_is_told_in_the_order_of_a_conversation(told: Told) -> None:
    """The position, the questions each followed by its answer, the pairs, the translation and
    the verdict; partitions by topic and number, as committed on the source."""
    assert [
        ((one[0]["source_topic"], one[0]["partition"]), one[0]["source_offset"])
        for one in told.objects
    ] == [*COMMITTED.items()]
    for one in told.objects:
        kinds = [each["kind"] for each in one]
        number = kinds.count("question")
        assert number >= 3
        assert kinds == [
            *("position", *("question", "answer") * number),
            *("pair",) * kinds.count("pair"),
            *("translation", "verdict"),
        ]


def test_each_answer_is_what_the_cluster_says(told: Told, sides: Sides) -> None:
    """Whoever asks the clusters the same gets the same: log ends, lookups, and the records
    that lie in what was read."""
    asked = set()
    for one in told.objects:
        for question, answer in steps(one):
            where = (question["cluster"], question["topic"], question["partition"])
            asked.add(question["ask"])
            match question["ask"]:
                case "log_range":
                    expected = sides.contents(where[0]).log_range(*where[1:])
                    assert (answer["start"], answer["end"]) == expected
                case "first_at_time":
                    found = sides.first_at(*where, question["timestamp_ms"])
                    assert answer["record_offset"] == found
                case "read":
                    _check_read(question, answer, sides.records(*where))
    assert asked == {"log_range", "first_at_time", "read"}


def _check_read(
    question: dict[str, Any], answer: dict[str, Any], records: Mapping[int, Stored]
) -> None:
    there = [record for at, record in records.items() if answer["start"] <= at < answer["end"]]
    assert answer["records"] == len(there)
    following = next((record for record in there if record.offset >= question["offset"]), None)
    # The log may end in transaction markers.
    told = None if following is None else (following.offset, following.timestamp_ms)
    stated = answer["record_offset"], answer["record_timestamp_ms"]
    assert stated == (told or (None, None))


def test_pairs_are_equal_and_were_read_in_the_steps_they_name(told: Told, sides: Sides) -> None:
    """Time, key and value of both records are the same, and both lie in what those steps read."""
    for one in told.objects:
        position, answers = one[0], of_kind(one, "answer")
        pairs = of_kind(one, "pair")
        assert pairs
        for pair in pairs:
            sources = sides.records("A", position["source_topic"], position["partition"])
            copies = sides.records("B", position["target_topic"], position["partition"])
            source, copy = sources[pair["source_offset"]], copies[pair["target_offset"]]
            assert pair["timestamp_ms"] == source.timestamp_ms == copy.timestamp_ms
            assert (source.key, source.value) == (copy.key, copy.value)
            for side in ("source", "target"):
                read = answers[pair[f"{side}_step"] - 1]
                assert read["side"] == side
                assert read["start"] <= pair[f"{side}_offset"] < read["end"]


def test_the_answer_is_where_the_records_to_read_begin(told: Told, sides: Sides) -> None:
    """From there on lie, of what the target has, exactly the records from the commit on."""
    for one, basis in zip(told.objects, BASES, strict=True):
        position = one[0]
        (answer,) = of_kind(one, "translation")
        (verdict,) = of_kind(one, "verdict")
        assert (answer["precision"], answer["reread_bound"]) == ("exact", 0)
        assert answer["basis"] == basis, position
        assert answer["why"]
        assert (verdict["outcome"], verdict["target_offset"]) == (
            "would_commit",
            answer["target_offset"],
        )
        partition = position["partition"]
        copies = sides.records("B", position["target_topic"], partition)
        on_target = {record.value for record in copies.values()}
        to_read = [
            record.value
            for at, record in sides.records("A", position["source_topic"], partition).items()
            if at >= position["source_offset"] and record.value in on_target
        ]
        left = [record.value for at, record in copies.items() if at >= answer["target_offset"]]
        assert left == to_read, position


def test_the_text_says_what_the_objects_say(told: Told) -> None:
    """A heading for each partition; below it as many numbered lines as questions, then the
    pairs, the answer, why, the commit and the cost, with the same numbers."""
    head, *blocks = told.text.split(f"group {GROUP}, ")
    assert head.splitlines()[0] == "flow A->B"
    assert "equal means the same timestamp, key and value; source read as read_unc" in head
    for one, block in zip(told.objects, blocks, strict=True):
        position, lines = one[0], block.splitlines()
        partition = position["partition"]
        assert lines[0] == (
            f"{position['source_topic']}-{partition} on A, committed {position['source_offset']}; "
            f"the copy is {position['target_topic']}-{partition} on B"
        )
        numbered = [line for line in lines if re.match(r" +\d+  (source|target)  ", line)]
        for line, (question, answer) in zip(numbered, steps(one), strict=True):
            assert line.split()[:2] == [str(question["step"]), question["side"]]
            assert _words(question) in line
            assert line.endswith(_ending(answer)), (line, answer)
        pairs, (answer,) = of_kind(one, "pair"), of_kind(one, "translation")
        labelled = lines[1 + len(numbered) :]
        assert [line.split()[0] for line in labelled[: len(pairs) + 4]] == [
            *("pair",) * len(pairs),
            *("answer", "why", "commit", "cost"),
        ]
        for line, pair in zip(labelled, pairs, strict=False):
            assert f"source {pair['source_offset']} (step {pair['source_step']}) = " in line
            assert f" target {pair['target_offset']} (step {pair['target_step']}), " in line
        found, why, commit, _ = labelled[len(pairs) : len(pairs) + 4]
        assert found.startswith(f"  answer  {answer['target_offset']}, exact: ")
        assert why == f"  why     {answer['why']}"
        assert commit.endswith(f"no commit there; sync commits {answer['target_offset']}")


def _words(question: dict[str, Any]) -> str:
    match question["ask"]:
        case "log_range":
            return "log range"
        case "first_at_time":
            return "first at or after 20"
        case _ if question["max_bytes"] == 1:
            return f"read the batch at {question['offset']} "
        case _:
            return f" from {question['offset']} "


def _ending(answer: dict[str, Any]) -> str:
    match answer["answer"]:
        case "range":
            return f"  start {answer['start']}, end {answer['end']}"
        case "record":
            return f"  {answer['record_offset']} at that time"
        case _ if not answer["records"]:
            return ", no data record"
        case _ if answer["equal_offset"] is not None:
            return f"; {answer['equal_offset']} equals the next record to read"
        case _ if answer["equal_records"] is not None:
            other = "target" if answer["side"] == "source" else "source"
            return f"; {answer['equal_records'] or 'none'} equal to what was read on the {other}"
        case _:
            return "Z"


def test_it_says_nothing_of_what_records_hold(told: Told) -> None:
    """Neither keys nor values, and no digests: only offsets, times and counts."""
    everything = told.text + json.dumps(told.objects)
    for word in ("value-", "key-"):
        assert word not in everything
    assert not re.search(r"[0-9a-f]{16}", everything)


def test_explaining_leaves_the_target_alone(told: Told, estate: Estate) -> None:
    """The group has no commit on the target after it was explained."""
    assert told.text
    assert estate.contents["B"].committed_offsets(GROUP) == {}


def test_one_partition_of_many(mirror_maker: MirrorMaker, told: Told) -> None:
    """--topic and --partition leave the others out, and say the same of the one."""
    path: Path = mirror_maker.properties_path
    words = ("explain", "-c", str(path), "--flow", "A->B", "--group", GROUP)
    text = said(*words, "--topic", ORDERS, "--partition", "1")
    _, block = text.split(f"group {GROUP}, ")
    assert f"group {GROUP}, {block}".rstrip() in told.text
