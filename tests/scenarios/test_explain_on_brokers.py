"""`tsoffset explain` as an operator runs it: each sentence is held against the clusters."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetTimestamp

from tests.invoking import start
from tests.producing import Contents, Stored
from tests.scenarios.flows import Flows
from tests.scenarios.holdings import (
    EQUAL_TIMES,
    ORDERS,
    RECORDS,
    SHORTENED,
    TRANSACTIONS,
    TRIMMED,
    TRIMMED_THERE,
)
from tsoffset.lab.embedded import MirrorMaker

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


# The objects that the command prints, by partition in their order.
Told = Sequence[Sequence[dict[str, Any]]]


@pytest.fixture(scope="module")
def told(estate: Flows, mirror_maker: MirrorMaker) -> Told:
    """The group explained by a process of its own."""
    estate.contents["A"].commit_offsets(GROUP, COMMITTED)
    words = ["explain", "-c", str(mirror_maker.properties_path), "--flow", "A->B"]
    with start(*words, "--group", GROUP, "--format", "json") as process:
        out, err = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, err
    objects = [json.loads(line) for line in out.splitlines()]
    members = groupby(objects, key=lambda one: (one["source_topic"], one["partition"]))
    found = [[*some] for _, some in members]
    assert [(one[0]["source_topic"], one[0]["partition"]) for one in found] == [*COMMITTED]
    return found


def of_kind(objects: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] == kind]


class Sides:
    """The logs of both sides as any other client reads them."""

    def __init__(self, estate: Flows) -> None:
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
def sides(estate: Flows) -> Sides:
    return Sides(estate)


def steps(objects: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The questions with their answers, which carry the same number."""
    questions, answers = of_kind(objects, "question"), of_kind(objects, "answer")
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True), start=1):
        assert question["step"] == answer["step"] == number
        yield question, answer


def test_each_answer_is_what_the_cluster_says(told: Told, sides: Sides) -> None:
    """Whoever asks the clusters the same gets the same: log ends, lookups, and the records
    that lie in what was read."""
    asked = set()
    for one in told:
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
    for one in told:
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
    for one, basis in zip(told, BASES, strict=True):
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
