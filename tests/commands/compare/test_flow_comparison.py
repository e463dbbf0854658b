"""`tsoffset compare` on clusters in memory: which checkpoints are compared, and with what."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.invoking import ROOT
from tests.memory_flows import NOW_MS, Estate, RaisingGroups, RaisingTopics, flow, mirrored_estate
from tests.replicators.test_checkpoints import key_of, value_of
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import Failed, FailureKind, Precision
from tsoffset.testing.memory_cluster import Message, Verb

CHECKPOINTS = "A.checkpoints.internal"


def checkpoint(
    estate: Estate,
    group: str,
    source_offset: int,
    target_offset: int,
    *,
    topic: str = "A.orders",
    partition: int = 0,
    on: str = CHECKPOINTS,
    lies_in: int = 0,
    timestamp_ms: int = NOW_MS,
) -> None:
    """Write a checkpoint as MirrorMaker 2 would, into a topic that is made where it is new."""
    if on not in estate["B"].topics():
        estate["B"].create_topic(on, lies_in + 1)
    estate["B"].log(on, lies_in).append(
        [
            Message(
                timestamp_ms,
                key_of(group, topic, partition),
                value_of(source_offset, target_offset),
            )
        ]
    )


def with_checkpoint(theirs: int, committed: int = 60) -> Estate:
    """The group `billing` on the source, and a checkpoint of its commit at 60."""
    estate = mirrored_estate(billing=committed)
    checkpoint(estate, "billing", 60, theirs)
    return estate


def comparison(
    estate: Estate, *flows: FlowSettings, options: CompareOptions | None = None
) -> FlowComparison:
    chosen = flows or (flow(),)
    settings = Settings(tuple(chosen), tuple(estate.clusters))
    (one,) = compare(chosen[:1], estate.connect, settings=settings, options=options)
    return one


def the_pair(estate: Estate, *flows: FlowSettings) -> ComparedPair:
    (pair,) = comparison(estate, *flows).pairs
    return pair


def judged(pair: ComparedPair) -> tuple[CheckpointVerdict, int | None]:
    return pair.verdict, pair.records


# --- which checkpoint of MirrorMaker 2 counts -----------------------------------------------


def compared_estate() -> Estate:
    estate = mirrored_estate(1_000, partitions=2)
    for number, (group, theirs) in enumerate(
        (("alerts", 100), ("billing", 300), ("search", 777), ("unread", None))
    ):
        offset = 100 + 200 * number
        for partition in range(2):
            estate.commit(group, "orders", offset, partition=partition)
            if theirs is not None:
                checkpoint(estate, group, offset, theirs, partition=partition)
    estate.commit("alerts", "A.orders", 100, on="B")
    return estate


def test_the_newest_checkpoint_of_a_key_holds():
    """Of several records of a group and partition the last one, with its time."""
    estate = mirrored_estate(100, billing=60)
    checkpoint(estate, "billing", 20, 10)
    checkpoint(estate, "billing", 60, 55, timestamp_ms=NOW_MS + 5)
    pair = the_pair(estate)
    assert (pair.theirs, pair.theirs_source_offset) == (55, 60)
    assert pair.theirs_timestamp_ms == NOW_MS + 5


def test_all_partitions_of_the_topic_are_read():
    """Checkpoints lie wherever the topic has partitions; of one key in two the later holds."""
    estate = mirrored_estate(100)
    estate["B"].create_topic(CHECKPOINTS, 3)
    for group, lies_in in (("one", 0), ("two", 1), ("three", 2)):
        estate.commit(group, "orders", 60)
        checkpoint(estate, group, 60, 40 + lies_in, lies_in=lies_in)
    checkpoint(estate, "one", 60, 12, lies_in=2, timestamp_ms=NOW_MS - 1)
    theirs = {pair.group: pair.theirs for pair in comparison(estate).pairs}
    assert theirs == {"one": 40, "two": 41, "three": 42}


def test_a_long_topic_is_read_to_its_end():
    """More than one read takes: the very last record of it counts."""
    estate = mirrored_estate(100, billing=60)
    estate["B"].create_topic(CHECKPOINTS)
    filler = [Message(NOW_MS, key_of(f"g{n}"), value_of(1, 1, "x" * 900)) for n in range(3_000)]
    estate["B"].log(CHECKPOINTS).append(filler, batch_size=50)
    checkpoint(estate, "billing", 60, 44)
    assert the_pair(estate, flow(group_filter=DefaultGroupFilter(("billing",)))).theirs == 44
    assert estate.asked("B", Verb.READ_RAW) > 2


def test_records_that_are_no_checkpoints_are_counted_and_left_out():
    """A warning says how many; the checkpoints beside them hold."""
    estate = with_checkpoint(44)
    log = estate["B"].log(CHECKPOINTS)
    log.append([Message(NOW_MS, b"junk", b"junk"), Message(NOW_MS, key_of("billing"), b"")])
    found = comparison(estate)
    assert [pair.theirs for pair in found.pairs] == [44]
    (warning,) = found.warnings
    assert "2 records ignored" in warning
    assert CHECKPOINTS in warning


def test_a_deleted_checkpoint_is_none():
    """A record without a value takes the checkpoint of its key away."""
    estate = with_checkpoint(44)
    estate["B"].log(CHECKPOINTS).append([Message(NOW_MS, key_of("billing"), None)])
    assert judged(the_pair(estate)) == (CheckpointVerdict.NONE, None)


@pytest.mark.parametrize(
    ("policy", "naming", "copy", "name"),
    [
        (
            DefaultReplicationPolicy(),
            {"replication.policy.separator": "_"},
            *("A_orders", "A_checkpoints_internal"),
        ),
        (
            DefaultReplicationPolicy(),
            {
                "replication.policy.separator": "_",
                "replication.policy.internal.topic.separator.enabled": "false",
            },
            *("A_orders", "A.checkpoints.internal"),
        ),
        # It keeps the names of data, not of checkpoints.
        (IdentityReplicationPolicy("A"), {}, "orders", CHECKPOINTS),
    ],
)
def test_the_topics_name_is_the_policys(policy, naming, copy, name):
    """The separator is part of it, unless internal topics are left out of that."""
    policy.configure(naming)
    estate = Estate()
    estate.write("orders")
    estate.mirror("orders", copy)
    estate.commit("billing", "orders", 60)
    checkpoint(estate, "billing", 60, 44, topic=copy, on=name)
    assert the_pair(estate, flow(policy=policy)).theirs == 44


def test_without_the_topic_a_sentence_says_so_and_nothing_failed():
    """tsoffset's offsets are shown, MirrorMaker 2 has none, and the exit status is 0."""
    estate = mirrored_estate(100, billing=60)
    found = comparison(estate)
    assert found.exit_status == 0
    (warning,) = found.warnings
    assert f"{CHECKPOINTS} on B does not exist" in warning
    assert "emit.checkpoints.enabled" in warning
    (pair,) = found.pairs
    assert judged(pair) == (CheckpointVerdict.NONE, None)
    assert (pair.ours, pair.ours_precision) == (60, Precision.EXACT)


def test_checkpoints_that_cannot_be_read_fail_the_pairs():
    """What is not known to be the newest is not judged: the pairs fail with the cause."""
    estate = with_checkpoint(44)
    failed = Failed(FailureKind.AUTHORIZATION, "read: not authorized; grant READ")
    estate["B"].fail(failed, verb=Verb.READ_RAW)
    found = comparison(estate)
    assert [(pair.verdict, pair.message) for pair in found.pairs] == [
        (CheckpointVerdict.FAILED, failed.message)
    ]
    assert found.exit_status == 1


def test_a_checkpoint_for_which_a_class_of_the_users_raises_is_left_out():
    """The other groups are compared, and topics that are still there."""

    class Policy(DefaultReplicationPolicy):
        def upstream_topic(self, topic: str) -> str | None:
            if topic == "A.odd":
                raise KeyError(topic)
            return super().upstream_topic(topic)

    estate = mirrored_estate(billing=40)
    for group in ("billing", "search"):
        checkpoint(estate, group, 40, 40)
    for topic in ("A.gone", "A.odd"):
        checkpoint(estate, "billing", 7, 7, topic=topic)
    users = flow(
        group_filter=RaisingGroups("billing"), topic_filter=RaisingTopics(), policy=Policy()
    )
    pair = the_pair(estate, users)
    assert (pair.group, pair.source_topic) == ("billing", "orders")


def test_a_checkpoint_without_a_commit_is_shown():
    """A group that is gone from the source keeps its checkpoint: shown, and not judged; one on
    a topic or of a group that is left out is not."""
    estate = mirrored_estate(100)
    checkpoint(estate, "gone", 60, 44)
    checkpoint(estate, "gone", 60, 44, topic="A.left-out")
    checkpoint(estate, "left-out", 60, 44)
    checkpoint(estate, "gone", 60, 44, topic="C.orders")
    narrow = flow(
        group_filter=DefaultGroupFilter(("gone",)), topic_filter=DefaultTopicFilter(("orders",))
    )
    pair = the_pair(estate, narrow)
    assert (pair.group, pair.source_topic, pair.target_topic) == ("gone", "orders", "A.orders")
    assert judged(pair) == (CheckpointVerdict.UNJUDGED, None)
    assert (pair.source_offset, pair.ours_reason) == (None, None)


def test_a_group_that_goes_on_while_it_is_compared_is_not_called_unsafe():
    """Commits and checkpoints of the target are read before the commits of the source: what
    MirrorMaker 2 and a consumer do in between makes checkpoints older, never younger."""
    estate = mirrored_estate(100, billing=30)
    checkpoint(estate, "billing", 30, 30)
    source = estate["A"]
    committed = source.committed

    def later(*arguments: Any, **options: Any) -> Any:
        estate.commit("billing", "orders", 60)
        checkpoint(estate, "billing", 60, 60)
        return committed(*arguments, **options)

    source.committed = later
    pair = the_pair(estate)
    assert judged(pair) == (CheckpointVerdict.REREAD, 30)
    assert (pair.source_offset, pair.theirs_source_offset) == (60, 30)


def test_only_the_checkpoints_topic_is_read_as_it_is():
    """What data holds is never read but as digests, and nothing is committed."""
    estate = with_checkpoint(44)
    comparison(estate)
    assert estate.asked("A", Verb.COMMIT) == estate.asked("B", Verb.COMMIT) == 0
    assert estate.asked("A", Verb.READ_RAW) == 0
    raw = [r for r in estate["B"].requests if r.verb is Verb.READ_RAW]
    assert {item.partition.topic for r in raw for item in r.items} == {CHECKPOINTS}


def test_a_flow_that_is_reachable_is_compared_beside_one_that_is_not():
    """Each flow is compared for itself."""
    estate = compared_estate()
    estate.clusters["C"] = Estate("C")["C"]
    estate["C"].unreachable = True
    other = flow("A", "C")
    both = Settings((other, flow()), ("A", "B", "C"))
    first, second = compare((other, flow()), estate.connect, settings=both)
    assert (first.exit_status, second.exit_status) == (3, 0)
    assert len(second.pairs) == 8


def test_a_failed_commit_fails_its_pair_alone():
    """What cannot be read of one group on the target leaves the other groups compared."""
    estate = compared_estate()
    failed = Failed(FailureKind.COORDINATOR, "read commits: loading; try again")
    estate["B"].fail(replace(failed), verb=Verb.COMMITTED, group="billing")
    found = comparison(estate)
    assert found.exit_status == 1
    assert {p.group for p in found.pairs if p.verdict is CheckpointVerdict.FAILED} == {"billing"}


def test_the_documentation_has_each_field_and_verdict():
    """docs/commands.md names all fields of a pair, all verdicts, and whose a commit may be."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.partition("## `compare`")[2].partition("\n## ")[0]
    for field in fields(ComparedPair):
        assert f"`{field.name}`" in section, field.name
    for word in (*CheckpointVerdict, *CommitOrigin):
        assert f"`{word.value}`" in section, word
