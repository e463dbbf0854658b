"""`tsoffset explain`: the questions about one group as an operator and a program read it."""

import base64
import io
import json
import random
import re
import string
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.invoking import ROOT, in_memory
from tests.memory_flows import NOW_MS, Estate, after_each, flow, identity_flow, mirrored_estate
from tests.random_examples import scaled
from tsoffset.commands.explain.flow_explanation import ExplainOptions, ExplainResult, explain
from tsoffset.commands.explain.report import VERDICT_FIELDS, explanation_lines
from tsoffset.commands.explain.trace import (
    AnswerStatement,
    Explanation,
    PairStatement,
    PositionStatement,
    RequestStatement,
    Statement,
    Trace,
    TranslationStatement,
)
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.errors import UsageError
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Basis,
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupListings,
    GroupType,
    Isolation,
    OutcomeKind,
    Precision,
    ReadFrom,
    Reason,
    Side,
    TimedOffset,
    TimestampType,
    TopicPartition,
    Youngest,
)
from tsoffset.records import content_digest
from tsoffset.rule.inquiry import Question
from tsoffset.terminal.output import Format, Output
from tsoffset.testing.memory_cluster import Message, Verb, mirror_partition

KINDS: tuple[type[Statement], ...] = (
    PositionStatement,
    RequestStatement,
    AnswerStatement,
    PairStatement,
    TranslationStatement,
)


@pytest.fixture
def estate() -> Estate:
    """`billing` at 45 of 100 mirrored records."""
    return mirrored_estate(100, billing=45)


def explained(
    estate: Estate,
    *flows: FlowSettings,
    group: str = "billing",
    of: int | None = None,
    **which: Any,
) -> ExplainResult:
    """What is explained of a group; of the first flows alone, where so many are asked for."""
    chosen = flows or (flow(),)
    settings = Settings(chosen, tuple(estate.clusters))
    return explain(ExplainOptions(group, **which), chosen[:of], estate.connect, settings=settings)


def the_one(estate: Estate, *flows: FlowSettings) -> Explanation:
    (one,) = explained(estate, *flows).explanations
    return one


def text(*explanations: Explanation, width: int | None = None) -> str:
    return "\n".join(line.plain for line in explanation_lines(explanations, width))


def answer(one: Explanation) -> tuple[Basis | None, int | None, Precision | None, int | None]:
    found = one.translation
    return found.basis, found.target_offset, found.precision, found.reread_bound


def pairs(one: Explanation) -> list[tuple[int, int, str, bool]]:
    return [(p.source_offset, p.target_offset, p.role, p.proves) for p in one.pairs]


# --- the steps ----------------------------------------------------------------------------


def test_the_steps_of_a_lagging_group_read_like_questions_and_answers(estate):
    """Numbered questions with their answers, the pair, the answer and why, the commit."""
    at = "2027-01-15T08:00:00.045Z"
    said = text(the_one(estate)).splitlines()
    assert said[:8] == [
        "flow A->B",
        "  equal means the same timestamp, key and value; source read as read_uncommitted; "
        "translation.budget = 8",
        "group billing, orders-0 on A, committed 45; the copy is A.orders-0 on B",
        "   1  target  log range                                   start 0, end 100",
        "   2  source  log range                                   start 0, end 100",
        "   3  source  read the batch at 45                        40 .. 49, 10 records; 45 at "
        f"{at}",
        f"   4  target  first at or after {at}  45 at that time",
        "   5  target  read the batch at 45                        42 .. 48, 7 records; 45 equals "
        "the next record to read",
    ]
    assert said[-5:-1] == [
        f"  pair    source 45 (step 3) = target 45 (step 5), the next record to read, {at} "
        f"({NOW_MS + 45})",
        "  answer  45, exact: no record is re-read, and no record is skipped",
        "  why     The next record to read, source 45, has its copy at 45. Safe by the frontier: "
        "no record after source 99 lies before its copy at 99, and on the way there from 45 the "
        "replicator passed every earlier record from the committed offset on.",
        "  commit  would_commit: the target group has no committed offset; sync commits 45",
    ]
    assert re.fullmatch(
        r"  cost    \d questions to A \(\d+ bytes read\), \d questions to B \(\d+ bytes read\)",
        said[-1],
    )


def test_the_steps_are_what_the_clusters_were_asked():
    """Each range, read and lookup that a cluster got for the group is a step, and no other."""
    estate = mirrored_estate(200, up_to=150, billing=170)
    one = the_one(estate)
    for alias in ("A", "B"):
        verbs = (Verb.LOG_RANGES, Verb.READ, Verb.FIRST_AT_TIMES, Verb.YOUNGEST)
        got = [i for r in estate[alias].requests if r.verb in verbs for i in r.items]
        told = [asked for asked, _ in one.steps if asked.cluster == alias]
        assert len(got) == len(told)
        for item, asked in zip(got, told, strict=True):
            place = TopicPartition(asked.topic, 0)
            if isinstance(item, ReadFrom):
                assert item == ReadFrom(place, asked.offset or 0, asked.max_bytes or 0)
            elif isinstance(item, FirstAtTime):
                assert item == FirstAtTime(place, asked.timestamp_ms or 0)
            elif isinstance(item, Youngest):
                assert (asked.ask, item) == ("youngest", Youngest(place))
            else:
                assert (asked.ask, item) == ("log_range", place)


def test_a_question_for_the_youngest_record_is_told():
    """In words and in JSON, with its offset and time, or none, which proves nothing."""
    orders, copy = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
    heard = Trace(flow(), SourceCommit("billing", orders, CommittedOffset(3), copy))
    heard.add(Question(Side.TARGET, Youngest(copy)), TimedOffset(7, 1_700_000_000_123))
    heard.add(Question(Side.SOURCE, Youngest(orders)), None)
    estate = mirrored_estate(10, billing=3)
    one = replace(the_one(estate), steps=tuple(heard.steps))
    assert [line for line in text(one).splitlines() if "largest timestamp" in line] == [
        "   1  target  record with the largest timestamp  7 at 2023-11-14T22:13:20.123Z",
        "   2  source  record with the largest timestamp  none (a compacted log may hold one)",
    ]
    asked, told = heard.steps[0]
    assert (asked.ask, told.answer, told.record_offset) == ("youngest", "record", 7)


def test_open_transactions_are_a_question_of_their_own():
    """A read_committed flow asks where the log itself ends, and is not caught up before it."""
    estate = mirrored_estate(20)
    estate["A"].log("orders").begin().append([Message(NOW_MS + 50, b"later", b"later")])
    estate.commit("billing", "orders", 20)
    one = the_one(estate, flow(isolation=Isolation.READ_COMMITTED))
    assert [asked.ask for asked, _ in one.steps][:3] == ["log_range", "log_itself", "log_range"]
    assert answer(one) == (Basis.MIRROR_END, 20, Precision.FRONTIER, 0)


@pytest.mark.parametrize("isolation", Isolation)
def test_a_flow_whose_names_tell_no_direction_says_its_isolation_level(isolation):
    """Also `read_committed`, which omits aborted records, although open transactions are read."""
    estate = Estate()
    estate.write("orders", 20)
    estate.mirror("orders", "orders")
    estate.commit("billing", "orders", 12)
    one = the_one(estate, identity_flow(isolation=isolation))
    assert f"source read as {isolation};" in text(one)


# --- no translation, and what the commit rule says ----------------------------------------


def unlike() -> Estate:
    """A target whose records are others, later than those of the source."""
    estate = Estate()
    estate.write("orders", 700)
    estate["B"].create_topic("A.orders")
    estate["B"].log("A.orders").append([Message(NOW_MS + 5_000, b"other", b"other")])
    estate.commit("billing", "orders", 645)
    return estate


def test_without_proof_the_reason_is_the_answer():
    """A skip says which, with the rule's own sentence; no record equals another here."""
    one = the_one(unlike())
    found = one.translation
    assert (found.target_offset, found.basis, found.reason) == (None, None, Reason.NO_PROOF)
    assert pairs(one) == []
    assert f"answer  none, NO_PROOF: {found.message}" in text(one)
    assert "commit  skipped, NO_PROOF: nothing is committed" in text(one)


def test_a_group_that_has_read_lost_records_has_no_answer(estate):
    """As in a cycle: the source has other records at its offset, which it has not read."""
    place = TopicPartition("orders", 0)
    estate["A"].elect_leader(place, 0)
    estate.write("orders", 20)
    estate.commit("billing", "orders", 115, leader_epoch=1)
    estate["A"].elect_leader(place, 0, log_end=110)
    estate.write("orders", 30)
    one = the_one(estate)
    assert (one.row.reason, one.row.target_offset) == (Reason.PAST_LOG_END, None)
    assert "leader epoch 1, which ends at 110" in text(one)


@pytest.mark.parametrize(
    ("standing", "outcome", "words"),
    [
        (
            None,
            OutcomeKind.WOULD_COMMIT,
            "the target group has no committed offset; sync commits 45",
        ),
        (30, OutcomeKind.WOULD_COMMIT, "the target group has 30; sync commits 45"),
        (45, OutcomeKind.UNCHANGED, "unchanged: the target group has 45 already"),
        (80, OutcomeKind.SKIPPED, "skipped, TARGET_AHEAD: the target group is already at 80"),
        (
            500,
            OutcomeKind.SKIPPED,
            "skipped, TARGET_PAST_LOG_END: the target group's committed offset 500",
        ),
    ],
)
def test_the_commit_rule_is_the_last_word(estate, standing, outcome, words):
    """The target group's offset decides whether the translation is committed."""
    if standing is not None:
        estate.commit("billing", "A.orders", standing, on="B")
    one = the_one(estate)
    assert (one.row.outcome, one.translation.target_offset) == (outcome, 45)
    assert words in text(one)


@pytest.mark.parametrize(("standing", "is_said"), [(None, False), (30, True)])
def test_only_a_cycle_recognizes_a_reset(estate, standing, is_said):
    """With flows in both directions, `sync` may commit nothing for a group that was reset."""
    if standing is not None:
        estate.commit("billing", "A.orders", standing, on="B")
    one = explained(estate, flow(), flow("B", "A"), of=1).explanations[0]
    assert (
        "; sync commits 45, unless `tsoffset plan` shows TARGET_REWOUND" in text(one)
    ) is is_said
    assert "unless `tsoffset plan`" not in text(the_one(estate))


def test_a_hole_between_makes_no_difference():
    """A commit from which the same record is read next is as good: unchanged, with the reason."""
    estate = mirrored_estate(100)
    estate["B"].log("A.orders").remove(range(42, 45))
    estate.commit("billing", "orders", 45)
    estate.commit("billing", "A.orders", 43, on="B")
    one = the_one(estate)
    assert one.row.outcome is OutcomeKind.UNCHANGED
    assert "the target group has 43, and no record lies between it and 45" in text(one)


def test_a_flow_that_is_only_planned_says_so(estate):
    """sync.group.offsets.enabled = false: what would be committed is not."""
    said = text(the_one(estate, flow(sync_enabled=False)))
    assert "sync.group.offsets.enabled is false" in said


def test_a_question_that_fails_is_the_last_one(estate):
    """Exit 1, with the failure in its step, in the answer and in the verdict."""
    failed = Failed(FailureKind.NO_LEADER, "read A.orders-0, cluster B: no leader; elect one")
    estate["B"].fail(failed, verb=Verb.READ)
    found = explained(estate)
    (one,) = found.explanations
    told = one.steps[-1][1]
    assert (told.answer, told.reason, told.message) == ("failed", failed.kind, failed.message)
    assert one.translation.reason is FailureKind.NO_LEADER
    assert one.row.outcome is OutcomeKind.FAILED
    assert found.exit_status == 1


# --- what is explained --------------------------------------------------------------------


def three_partitions() -> Estate:
    estate = Estate()
    estate.write("orders", 60, partitions=3)
    estate.write("events", 60)
    estate.mirror("orders")
    estate.mirror("events")
    for number in range(3):
        estate.commit("billing", "orders", 10 * number + 5, partition=number)
    estate.commit("billing", "events", 30)
    return estate


def places(found: ExplainResult) -> list[tuple[str | None, int | None]]:
    return [(one.row.source_topic, one.row.partition) for one in found.explanations]


def test_all_partitions_of_the_group_are_explained_and_counted():
    """In the order of topics and partitions, with a line that sums them up."""
    found = explained(three_partitions())
    assert places(found) == [("events", 0), ("orders", 0), ("orders", 1), ("orders", 2)]
    said = text(*found.explanations)
    assert said.count("flow A->B") == 1
    assert said.splitlines()[-1].startswith("explain: 4 would be committed, 0 unchanged")


@pytest.mark.parametrize(
    ("topic", "partition", "wanted"),
    [
        ("orders", None, [("orders", 0), ("orders", 1), ("orders", 2)]),
        ("orders", 2, [("orders", 2)]),
        (None, 0, [("events", 0), ("orders", 0)]),
    ],
)
def test_topic_and_partition_choose(topic, partition, wanted):
    """Nothing is asked about the partitions that are not chosen."""
    estate = three_partitions()
    found = explained(estate, topic=topic, partition=partition)
    assert places(found) == wanted
    asked = {i for r in estate["A"].requests if r.verb is Verb.LOG_RANGES for i in r.items}
    assert asked == {TopicPartition(*place) for place in wanted}


def refusal(estate: Estate, *flows: FlowSettings, **which: Any) -> str:
    with pytest.raises(UsageError) as caught:
        explained(estate, *flows, **which)
    return str(caught.value)


def test_an_unknown_group_is_bad_usage_and_names_near_ones():
    """Likely slips: a letter, the case, a part of the name."""
    estate = three_partitions()
    estate.commit("Billing-EU", "orders", 5)
    assert refusal(estate, group="biling") == (
        "flow A->B: group biling does not exist on A, or this user may not DESCRIBE it; A lists 2"
        " groups. Did you mean `billing` or `Billing-EU`?"
    )
    assert refusal(estate, group="billing-eu").endswith(" Did you mean `Billing-EU` or `billing`?")
    assert refusal(estate, group="EU").endswith(" Did you mean `Billing-EU`?")
    assert refusal(estate, group="xyz").endswith("A lists 2 groups.")
    estate.commit("xyz", "A.orders", 5, on="B")
    assert "it exists on B, whose offsets" in refusal(estate, group="xyz")


def test_a_group_that_is_left_out_is_bad_usage():
    """The filters that leave it out are named."""
    estate = three_partitions()
    estate.commit("connect-sink", "orders", 5)
    assert refusal(estate, group="connect-sink") == (
        "flow A->B does not select group connect-sink; change groups or groups.exclude"
    )


def test_a_group_without_commits_in_the_flow_is_bad_usage():
    """None at all, only on topics that are left out, or not on what is asked for."""
    estate = three_partitions()
    estate["A"].group("idle")
    assert refusal(estate, group="idle") == (
        "flow A->B: group idle has no committed offset on A; it has not committed yet, its offsets"
        " expired, or this user may not DESCRIBE its topics"
    )
    estate.write("old.replica", 5)
    estate.commit("lone", "old.replica", 3)
    selects = "that the flow selects (topics, topics.exclude, replication policy); it has committed"
    assert refusal(estate, group="lone").endswith(f"in a topic {selects} offsets in old.replica-0")
    assert refusal(estate, topic="ordres") == (
        f"flow A->B: group billing has no committed offset in topic ordres {selects} offsets in"
        " events-0, orders-0, orders-1, orders-2"
    )
    assert "no committed offset in orders-7 that" in refusal(estate, topic="orders", partition=7)
    assert "no committed offset in a partition 7 that" in refusal(estate, partition=7)


def test_offsets_that_cannot_be_read_again_are_not_taken_for_none():
    """What the group has elsewhere is read for the message alone."""
    estate = three_partitions()
    failed = Failed(FailureKind.TIMEOUT, "read offsets, group billing: no answer; try again")

    def meanwhile(_: object) -> None:
        estate["A"].fail(failed, verb=Verb.COMMITTED, group="billing")

    after_each(estate["A"], "committed", meanwhile)
    assert refusal(estate, topic="ordres") == f"flow A->B: {failed.message}"


def test_of_several_flows_those_that_have_the_group_are_explained():
    """The others say why they have nothing; only if none has anything it is bad usage."""
    estate = Estate("A", "B", "C")
    estate.write("orders", 50)
    estate.mirror("orders")
    estate.mirror("orders", target="C")
    estate.commit("billing", "orders", 20)
    flows = (flow(), flow("A", "C"), flow("B", "A"))
    found = explained(estate, *flows)
    assert [one.row.flow for one in found.explanations] == ["A->B", "A->C"]
    assert found.left_out == [
        "flow B->A: group billing does not exist on B, or this user may not DESCRIBE it; B lists 0"
        " groups; it exists on A, whose offsets this flow does not translate."
    ]
    assert found.exit_status == 0
    assert refusal(estate, *flows, group="audit").count("group audit does not exist on") == 3


def test_a_cluster_that_is_away_costs_its_own_flow():
    """Its row fails, the other flow is explained, exit 3."""
    estate = Estate("A", "B", "C")
    estate.write("orders", 50)
    estate.mirror("orders")
    estate.commit("billing", "orders", 20)
    estate["C"].unreachable = True
    found = explained(estate, flow("C", "B"), flow())
    away, one = found.explanations
    assert (away.row.group, away.row.reason) == (None, FailureKind.UNREACHABLE)
    assert one.row.outcome is OutcomeKind.WOULD_COMMIT
    assert found.exit_status == 3
    assert text(away).startswith("flow C->B\n  failed, UNREACHABLE: ")


def test_a_share_group_is_explained_with_what_it_has_acknowledged():
    """Its start offset has the steps of a committed offset; the bound is the row's."""
    estate = mirrored_estate()
    estate.commit("billing", "orders", 40, type=GroupType.SHARE)
    estate["A"].group("billing").acknowledged[TopicPartition("orders", 0)] = 7
    one = the_one(estate)
    assert one.steps
    assert (one.row.precision, one.row.reread_bound) == (Precision.BOUNDED, 7)
    assert "at most 7 records after its start offset" in " ".join(text(one).split())


def test_a_share_group_in_other_topics_is_told_them():
    """They are looked for among its start offsets."""
    estate = mirrored_estate()
    estate["A"].create_topic("mm2.own.internal")
    estate.commit("billing", "mm2.own.internal", 0, type=GroupType.SHARE)
    assert "committed offsets in mm2.own.internal-0" in refusal(estate)


def test_a_group_of_another_type_has_a_verdict_and_no_steps():
    """Nothing is asked where the verdict is known without."""
    estate = mirrored_estate()
    estate.commit("billing", "orders", 40, type=GroupType.SHARE)
    estate["B"].group("billing", GroupType.CONSUMER)
    one = the_one(estate)
    assert (one.position, one.steps, one.translation) == (None, (), None)
    assert one.row.reason is Reason.UNSUPPORTED_GROUP
    assert "\n  commit  skipped, UNSUPPORTED_GROUP: " in text(one)


def test_another_flow_that_writes_the_same_is_found():
    """Fan-in under Identity: SEVERAL_SOURCES, as in a cycle, though only one flow is asked for."""
    estate = Estate("A", "B", "C")
    for alias in ("A", "C"):
        estate.write("orders", 20, on=alias)
        estate.commit("billing", "orders", 5, on=alias)
    estate.mirror("orders", "orders")
    (one,) = explained(estate, identity_flow(), identity_flow("C", "B"), of=1).explanations
    assert one.row.reason is Reason.SEVERAL_SOURCES
    assert one.steps == ()
    assert "group billing, orders-0, committed 5" in text(one)


def test_a_group_may_be_with_a_broker_that_lists_none(estate):
    """It is read by name anyway; if it has no commit, the broker's failure is the row."""
    late = Failed(FailureKind.TIMEOUT, "list groups, broker 1, cluster A: timed out; try again")
    none = GroupListings({}, failed_brokers={1: late})
    after_each(estate["A"], "groups", lambda _: none)
    assert the_one(estate).row.outcome is OutcomeKind.WOULD_COMMIT
    found = explained(estate, group="nobody")
    (one,) = found.explanations
    assert (one.row.group, one.row.reason) == ("nobody", FailureKind.TIMEOUT)
    assert one.row.message == late.message
    assert found.exit_status == 1


def test_a_group_without_a_leader_is_not_said_to_be_missing(estate):
    """Neither its broker nor another one lists it; that it cannot be read is the row."""
    estate["A"].create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    estate["A"].elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, 0), None)
    row = the_one(estate).row
    assert (row.group, row.reason) == ("billing", FailureKind.COORDINATOR)


def test_a_target_broker_that_lists_none_is_a_warning(estate):
    """Whether the group has members there is then not known."""
    failed = Failed(FailureKind.TIMEOUT, "list groups, cluster B: timed out; try again")
    estate["B"].fail(failed, verb=Verb.GROUPS, broker=0)
    found = explained(estate)
    assert found.warnings == [failed.message]
    assert found.exit_status == 0


# --- what holds for all logs --------------------------------------------------------------


def letters(rng: random.Random) -> bytes:
    return "".join(rng.choices(string.ascii_letters, k=12)).encode()


def random_estate(rng: random.Random) -> Estate:
    """A topic with random content, mirrored in part, with duplicates, holes and trimmed ends; a
    group that may be on the target, and have members there."""
    estate = Estate()
    estate["A"].create_topic("orders", 2)
    estate["B"].create_topic("A.orders", 2, first_offset=rng.choice((0, 7)))
    for number in range(2):
        source, target = estate["A"].log("orders", number), estate["B"].log("A.orders", number)
        written: list[Message] = []
        for at in range(rng.randint(0, 40)):
            if written and rng.random() < 0.15:
                written.append(rng.choice(written))
                continue
            stamp = NOW_MS + rng.choice((at, at // 5, rng.randint(0, 40)))
            key = letters(rng) if rng.random() < 0.8 else None
            headers = (("h", letters(rng)),) if rng.random() < 0.3 else ()
            written.append(Message(stamp, key, letters(rng), headers))
        source.append(written, batch_size=rng.choice((1, 3, 10)))
        kept = rng.choice((1.0, 1.0, 0.7))
        mirror_partition(
            source,
            target,
            end=rng.choice((None, len(written) // 2)),
            batch_size=rng.choice((1, 4)),
            drop=lambda _offset, _message, kept=kept: rng.random() > kept,
        )
        if rng.random() < 0.3:
            source.delete_records(rng.randint(source.start, source.end))
        if rng.random() < 0.3:
            target.delete_records(rng.randint(target.start, target.end))
        committed = rng.randint(source.start, source.end)
        estate.commit("billing", "orders", committed, partition=number)
        if rng.random() < 0.3:
            there = rng.randint(0, target.end + 1)
            estate.commit("billing", "A.orders", there, on="B", partition=number)
        if rng.random() < 0.1:
            target.timestamp_type = TimestampType.LOG_APPEND_TIME
            target.append([Message(None, letters(rng), letters(rng))])
    if rng.random() < 0.2:
        estate["B"].group("billing").state = "Stable"
    return estate


@settings(max_examples=scaled(50), deadline=None)
@given(st.integers(0, 2**32))
def test_an_explanation_is_true_and_tells_no_content(seed):
    """Whatever the logs: each verdict is the row of a plan, field by field, and each pair is one of
    equal records. No line is wider than the terminal. No key, value or header, and no digest of
    one, is printed in any spelling."""
    estate = random_estate(random.Random(seed))
    found = explained(estate)
    assert [one.row for one in found.explanations] == estate.plan()
    for one in found.explanations:
        assert_pairs_are_true(estate, one)
    printed = text(*found.explanations)
    for width in (60, 80, 140):
        narrow = text(*found.explanations, width=width)
        assert max(map(cell_len, narrow.splitlines())) <= width
        printed += narrow
    out = io.StringIO()
    for one in found.explanations:
        for statement in one.statements():
            Output(out, Format.JSON).records(type(statement), [statement])
    printed += out.getvalue()
    for content in contents(estate):
        digest = content_digest(content)
        for secret in (content, digest):
            assert secret.hex() not in printed
            assert base64.b64encode(secret).decode() not in printed
            assert repr(secret)[2:-1] not in printed


def contents(estate: Estate) -> Iterator[bytes]:
    """All keys, values and headers of both sides."""
    for alias, topic in (("A", "orders"), ("B", "A.orders")):
        for number in range(2):
            for _, message in estate[alias].log(topic, number).messages():
                every = (message.key, message.value, *(value for _, value in message.headers))
                yield from (content for content in every if content is not None)


def assert_pairs_are_true(estate: Estate, one: Explanation) -> None:
    """Timestamp, key and value are the same in the logs themselves, the role is true, and each side
    names the first step in which its record was read."""
    if one.position is None:
        return
    number, committed = one.position.partition, one.position.source_offset
    source = dict(estate["A"].log("orders", number).messages())
    target = dict(estate["B"].log("A.orders", number).messages())
    for pair in one.pairs:
        original, copy = source[pair.source_offset], target[pair.target_offset]
        assert replace(original, headers=()) == replace(copy, headers=())
        assert pair.timestamp_ms == original.timestamp_ms
        role = "before_commit"
        if pair.source_offset >= committed:
            following = min(offset for offset in source if offset >= committed)
            is_next = pair.source_offset == following
            role = "next_record" if is_next else "after_commit"
        assert pair.role == role
        for side, step, offset in (
            ("source", pair.source_step, pair.source_offset),
            ("target", pair.target_step, pair.target_offset),
        ):
            reading = [
                told.step
                for _, told in one.steps
                if (told.side, told.answer) == (side, "stretch")
                and (told.start or 0) <= offset < (told.end or 0)
            ]
            assert step == reading[0]


@pytest.mark.parametrize("stamp", [0, 10**18, 2**62])
def test_times_beyond_the_calendar_are_printed_as_numbers(stamp):
    """Producers write what they like as a timestamp."""
    estate = Estate()
    estate["A"].create_topic("orders")
    estate["A"].log("orders").append([Message(stamp + n, b"k", b"%d" % n) for n in range(3)])
    estate.mirror("orders")
    estate.commit("billing", "orders", 1)
    one = the_one(estate)
    assert answer(one)[:2] == (Basis.NEXT_RECORD, 1)
    assert str(stamp + 1) in text(one)


def test_names_cannot_steer_the_terminal():
    estate = mirrored_estate(10)
    estate.commit("bill\x1b[2Jing", "orders", 5)
    said = text(*explained(estate, group="bill\x1b[2Jing").explanations)
    assert "\x1b" not in said
    assert "bill\\x1b[2Jing" in said


# --- JSON ---------------------------------------------------------------------------------

BILLING = "explain", "--group", "billing"


def _word(kind: type[Statement]) -> str:
    """What `kind` says in every object of a class."""
    (word,) = [field.default for field in fields(kind) if field.name == "kind"]
    assert isinstance(word, str)
    return word


def objects(estate: Estate, folder: Path) -> list[dict[str, Any]]:
    result = in_memory(estate, folder, *BILLING, "--format", "json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_is_one_object_a_line_with_fixed_fields(tmp_path):
    """A position, its questions each with the answer, pairs, the translation, the verdict; every
    object of a kind has the same fields in the same order."""
    estate = mirrored_estate(100, partitions=2, up_to=60, billing=80)
    estate.commit("billing", "orders", 20, partition=1)
    found = objects(estate, tmp_path)
    schema = {_word(kind): [field.name for field in fields(kind)] for kind in KINDS}
    schema["verdict"] = list(VERDICT_FIELDS)
    assert {one["kind"] for one in found} == schema.keys()
    for one in found:
        assert list(one) == schema[one["kind"]]
        assert (one["flow"], one["group"], one["source_topic"]) == ("A->B", "billing", "orders")
    for number in range(2):
        kinds = [one["kind"] for one in found if one["partition"] == number]
        steps = kinds.count("question")
        assert kinds[0] == "position"
        assert kinds[1 : 1 + 2 * steps] == ["question", "answer"] * steps
        assert kinds[1 + 2 * steps :] == ["pair", "translation", "verdict"]
        asked = [one for one in found if one["partition"] == number and "step" in one]
        assert [one["step"] for one in asked] == [1 + at // 2 for at in range(2 * steps)]


def test_answers_in_json_hold_what_was_read(tmp_path):
    """Ranges, the next record with its time, what is equal; ends are one past the last."""
    estate = mirrored_estate(100, first_offset=1000, billing=45)
    answers = [one for one in objects(estate, tmp_path) if one["kind"] == "answer"]
    whole = [one for one in answers if one["answer"] == "range"]
    assert [(one["side"], one["start"], one["end"]) for one in whole[:2]] == [
        ("target", 1000, 1100),
        ("source", 0, 100),
    ]
    read = next(one for one in answers if one["answer"] == "stretch" and one["side"] == "source")
    assert (read["start"], read["end"], read["records"]) == (40, 50, 10)
    assert (read["record_offset"], read["record_timestamp_ms"]) == (45, NOW_MS + 45)
    assert (read["equal_offset"], read["equal_records"]) == (None, None)
    assert (read["cluster"], read["topic"], read["timestamp_type"]) == ("A", "orders", "CreateTime")
    equal = next(one for one in answers if one["equal_offset"] is not None)
    assert (equal["side"], equal["equal_offset"], equal["equal_records"]) == ("target", 1045, 7)


def test_every_field_is_documented():
    """docs/commands.md names each kind of object and each of its fields."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.partition("\n## `explain`\n")[2].partition("\n## ")[0]
    for kind in KINDS:
        assert f"`{_word(kind)}`" in section
        names = [field.name for field in fields(kind)]
        for name in names:
            assert f"`{name}`" in section, (kind, name)
    for basis in Basis:
        assert f"`{basis}`" in section


# --- the command --------------------------------------------------------------------------


def test_the_command_prints_a_table_and_ends_with_its_status(estate, tmp_path):
    """0 where all is well, 1 for a failed row, 3 for a cluster that is away."""
    result = in_memory(estate, tmp_path, *BILLING)
    assert result.exit_code == 0
    assert result.stdout.startswith("flow A->B\n  equal means ")
    assert "\ngroup billing, orders-0 on A, committed 45; " in result.stdout
    estate["A"].fail(Failed(FailureKind.TIMEOUT, "read: timed out; try again"), verb=Verb.READ)
    assert in_memory(estate, tmp_path, *BILLING).exit_code == 1
    estate["B"].unreachable = True
    result = in_memory(estate, tmp_path, *BILLING, "--format", "json")
    (verdict,) = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, verdict["kind"], verdict["group"]) == (3, "verdict", None)


def test_what_other_flows_have_goes_to_standard_error(estate, tmp_path):
    """Standard output has the explanation alone."""
    lines = ("B->A.enabled = true", "A->B.topicz = x")
    result = in_memory(estate, tmp_path, *BILLING, "--format", "json", lines=lines)
    assert result.exit_code == 0
    assert all(json.loads(line)["flow"] == "A->B" for line in result.stdout.splitlines())
    assert "flow B->A: group billing does not exist on B" in result.stderr
    assert "A->B.topicz: unknown key" in result.stderr
