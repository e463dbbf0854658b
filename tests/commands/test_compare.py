"""`tsoffset compare` on clusters in memory: reading checkpoints, and judging them."""

import json
import re
import struct
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.invoking import ROOT, in_memory
from tests.memory_flows import (
    NOW_MS,
    Estate,
    RaisingGroups,
    RaisingTopics,
    flow,
    identity_flow,
    mirrored_estate,
    with_floor,
)
from tests.random_examples import scaled
from tsoffset.commands.compare import repeats
from tsoffset.commands.compare.flow_comparison import FlowComparison, compare
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin, ComparedPair
from tsoffset.commands.compare.options import Against, CompareOptions
from tsoffset.commands.compare.run import comparison_lines
from tsoffset.commands.compare.totals import ComparisonTotals
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from tsoffset.flow.settings import FlowSettings, Settings, TranslationSettings
from tsoffset.model import (
    Failed,
    FailureKind,
    Isolation,
    Precision,
    Reason,
    TimestampType,
    TopicPartition,
)
from tsoffset.records import ALL
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    MalformedCheckpoint,
    decode_key,
    decode_value,
)
from tsoffset.testing.memory_cluster import Message, Verb, mirror_partition

# What MirrorMaker 2 of Kafka 4.3.1 wrote: key and value of two groups, one of them not ASCII.
WRITTEN_BY_MIRROR_MAKER = (
    (
        "0014636f6d70617265642d363238392d312d68616c660014656173742e636f6d70617265642d363238392d31"
        "00000001",
        "000000000000000003e800000000000003290000",
        CheckpointKey("compared-6289-1-half", TopicPartition("east.compared-6289-1", 1)),
        Checkpoint(1000, 809),
    ),
    (
        "0021636f6d70617265642d363238392d312d6772c3bcc39f6520617573206bc3b66c6e0014656173742e636f"
        "6d70617265642d363238392d3100000000",
        "000000000000000002bc00000000000000010000",
        CheckpointKey("compared-6289-1-grüße aus köln", TopicPartition("east.compared-6289-1", 0)),
        Checkpoint(700, 1),
    ),
)
CHECKPOINTS = "A.checkpoints.internal"


def text_field(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def key_of(group: str, topic: str = "A.orders", partition: int = 0) -> bytes:
    return text_field(group) + text_field(topic) + struct.pack(">i", partition)


def value_of(source_offset: int, target_offset: int, metadata: str = "") -> bytes:
    return struct.pack(">hqq", 0, source_offset, target_offset) + text_field(metadata)


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


# --- the bytes of a checkpoint --------------------------------------------------------------


@pytest.mark.parametrize(("key", "value", "whose", "what"), WRITTEN_BY_MIRROR_MAKER)
def test_bytes_of_mirror_maker_are_decoded(key, value, whose, what):
    """Group, target topic and partition from the key; the two offsets from the value. The
    checkpoints of these tests are byte by byte like real ones."""
    assert decode_key(bytes.fromhex(key)) == whose
    assert decode_value(bytes.fromhex(value)) == what
    assert key_of(whose.group, whose.target.topic, whose.target.partition).hex() == key
    assert value_of(what.source_offset, what.target_offset).hex() == value


@pytest.mark.parametrize("cut", range(1, 40))
def test_what_is_cut_off_is_malformed(cut):
    """No piece of a key or value passes for a whole one."""
    key, value = key_of("billing"), value_of(100, 50, "noted")
    if cut <= len(key):
        with pytest.raises(MalformedCheckpoint):
            decode_key(key[:-cut])
    if cut <= len(value):
        with pytest.raises(MalformedCheckpoint):
            decode_value(value[:-cut])


@pytest.mark.parametrize(
    ("decode", "content"),
    [
        (decode_key, None),
        (decode_key, b""),
        (decode_key, key_of("billing") + b"\0"),
        (decode_key, key_of("billing", partition=-1)),
        (decode_key, struct.pack(">h", -1) + key_of("billing")),
        (decode_key, struct.pack(">h", 2) + b"\xff\xfe" + text_field("t") + bytes(4)),
        (decode_value, b""),
        (decode_value, value_of(1, 2) + b"\0"),
        (decode_value, value_of(-1, 2)),
        (decode_value, value_of(1, -1)),
        (decode_value, struct.pack(">hqq", 1, 5, 6) + text_field("")),
    ],
)
def test_other_keys_and_values_are_malformed(decode, content):
    """Null, too short or long, negative lengths and numbers, text that is no UTF-8, and versions
    whose layout is not known."""
    with pytest.raises(MalformedCheckpoint):
        decode(content)


# --- which checkpoint of MirrorMaker 2 counts -----------------------------------------------


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


# --- the judgment ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("committed", "theirs", "verdict", "records", "message"),
    [
        (60, 60, CheckpointVerdict.EQUAL, 0, None),
        # Before the translation: the records between are re-read. Past it: they are skipped.
        (60, 59, CheckpointVerdict.REREAD, 1, None),
        (60, 0, CheckpointVerdict.REREAD, 60, None),
        (60, 61, CheckpointVerdict.UNSAFE, 1, ""),
        (60, 100, CheckpointVerdict.UNSAFE, 40, ""),
        # Past the log consumers would be reset: no number of records can be told.
        (60, 250, CheckpointVerdict.UNSAFE, None, "past the target's log end 100"),
        # A checkpoint for a later commit than the group has now skips what it will read again.
        (30, 60, CheckpointVerdict.UNSAFE, 30, "reset to 30"),
    ],
)
def test_theirs_are_judged_by_an_exact_translation(committed, theirs, verdict, records, message):
    """The checkpoint is of a commit at 60; a verdict against it comes with a sentence."""
    estate = with_checkpoint(theirs, committed)
    pair = the_pair(estate)
    assert (pair.ours, pair.ours_precision) == (committed, Precision.EXACT)
    assert judged(pair) == (verdict, records)
    assert (pair.message is None) == (message is None)
    assert (message or "") in (pair.message or "")


def test_holes_between_are_no_records():
    """Offsets without data do not count: a checkpoint inside such a hole is equal, and from one
    before the hole only the records before the hole are re-read."""
    estate = mirrored_estate(100)
    estate["B"].log("A.orders").remove(range(50, 60))
    estate.commit("billing", "orders", 60)
    for theirs, expected in (
        (55, (CheckpointVerdict.EQUAL, 0)),
        (45, (CheckpointVerdict.REREAD, 5)),
    ):
        checkpoint(estate, "billing", 60, theirs)
        assert judged(the_pair(estate)) == expected


def test_past_a_bounded_translation_nothing_is_proven():
    """A checkpoint past a bounded translation may be right: `beyond`, not `unsafe`."""
    estate = mirrored_estate(100)
    # The target lost what the group has read last and would read next.
    estate["B"].log("A.orders").remove(range(40, 100))
    estate["B"].log("A.orders").append([Message(NOW_MS + 500, b"foreign", b"foreign")] * 20)
    estate.commit("billing", "orders", 60)
    pair = the_pair(estate)
    assert pair.ours_precision is not Precision.EXACT
    checkpoint(estate, "billing", 60, pair.ours + 62)
    pair = the_pair(estate)
    assert pair.verdict is CheckpointVerdict.BEYOND
    assert pair.message is not None


@pytest.mark.parametrize("position", [50, 55, 58, 60])
def test_what_the_replicator_repeated_is_not_skipped(position):
    """A target `0..60, 50..100`: a checkpoint at the second copy of the next record skips
    nothing; one record further on it does."""
    estate = Estate()
    estate.write("orders", 101)
    source, target = estate["A"].log("orders"), estate["B"]
    target.create_topic("A.orders")
    log = target.log("A.orders")
    mirror_partition(source, log, end=61, batch_size=7)
    mirror_partition(source, log, start=50, batch_size=7)
    estate.commit("billing", "orders", position)
    second = 61 + position - 50
    checkpoint(estate, "billing", position, second)
    pair = the_pair(estate)
    assert pair.ours == position
    assert judged(pair) == (CheckpointVerdict.BEYOND, 0)
    assert "copied the records between them again" in (pair.message or "")
    checkpoint(estate, "billing", position, second + 1)
    assert judged(the_pair(estate)) == (CheckpointVerdict.UNSAFE, second + 1 - position)


@pytest.mark.parametrize(("theirs", "records"), [(3, 1), (5, 3)])
def test_source_records_that_a_filter_left_out_do_not_hide_a_skipped_one(theirs, records):
    """The source records right after the committed offset have no copy. So the records that the
    checkpoint skips are not among as many source records after the offset."""
    estate = Estate()
    estate.write("orders", 8)
    estate["B"].create_topic("A.orders")
    for start, end in ((0, 2), (4, 5), (6, 8)):
        mirror_partition(
            estate["A"].log("orders"), estate["B"].log("A.orders"), start=start, end=end
        )
    estate.commit("billing", "orders", 2)
    checkpoint(estate, "billing", 2, theirs)
    assert judged(the_pair(estate)) == (CheckpointVerdict.UNSAFE, records)


@pytest.mark.parametrize(
    ("chosen", "copy", "verdict"),
    [
        (flow(), "B.orders", CheckpointVerdict.UNSAFE),
        (identity_flow(), "orders", CheckpointVerdict.BEYOND),
    ],
    ids=["failback", "unknown direction"],
)
def test_originals_that_the_source_never_had_are_not_copied_again(chosen, copy, verdict):
    """The group has read all of the replica, and nothing that the replicator has not reached. So
    records that the checkpoint skips there are lost, although the source does not have them."""
    estate = Estate()
    estate.write("orders", 3, on="B")
    estate.mirror("orders", copy, source="B", target="A")
    estate.write("orders", 3, on="B")
    estate.commit("billing", copy, 3)
    checkpoint(estate, "billing", 3, 5, topic="orders")
    pair = the_pair(estate, chosen)
    assert judged(pair) == (verdict, 2)
    assert "no record is skipped" not in (pair.message or "")


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


@settings(deadline=None, max_examples=scaled(150))
@given(data=st.data())
def test_unsafe_and_safe_checkpoints_are_told_apart(data):
    """On logs with repeats, filters and any checkpoint: `unsafe` only where some unread record has
    no copy at or behind it; `equal` and `reread` only where each has one; and where all is looked
    through, `beyond` of an exact translation only where nothing is lost."""
    estate = Estate()
    number = data.draw(st.integers(5, 40))
    estate.write("orders", number)
    estate["B"].create_topic("A.orders")
    log = estate["B"].log("A.orders")
    reached, copies = 0, []
    dropped = data.draw(st.sets(st.integers(0, number - 1), max_size=number // 2))
    while reached < number:
        start = data.draw(st.integers(0, reached))
        end = data.draw(st.integers(start + 1, number))
        kept = [one for one in range(start, end) if one not in dropped]
        for one in kept:
            mirror_partition(estate["A"].log("orders"), log, start=one, end=one + 1)
        copies += kept
        reached = max(reached, end) if start <= reached else reached
        if len(copies) > 120:
            break
    position = data.draw(st.integers(0, number))
    theirs = data.draw(st.integers(0, len(copies)))
    estate.commit("billing", "orders", position)
    checkpoint(estate, "billing", position, theirs)
    pair = the_pair(estate)
    unread = set(copies) & set(range(position, number))
    lost = unread - set(copies[theirs:])
    exact = pair.ours_precision is Precision.EXACT
    if pair.verdict is CheckpointVerdict.UNSAFE:
        # The ends of both logs look like those without a repeat if as many records were left out.
        assert lost or dropped
    elif exact or pair.verdict is not CheckpointVerdict.BEYOND:
        assert not lost


def far_past(*groups: str, records: int = 300) -> Estate:
    """Groups from 60 on, each with a checkpoint that skips ten records. The source has a hole, so
    that distances tell nothing."""
    estate = Estate()
    estate.write("orders", records)
    estate["A"].log("orders").remove([150])
    estate.mirror("orders")
    for committed, group in enumerate(groups, 60):
        estate.commit(group, "orders", committed)
        checkpoint(estate, group, committed, committed + 10)
    return estate


def test_where_there_is_no_room_for_a_repeat_only_the_ends_are_read():
    """The target has as many offsets as the source up to the newest copy. So no skipped record can
    have a second copy, and at most the end of each log is read to see this."""
    asked = []
    for theirs in (60, 70):
        estate = mirrored_estate(20_000, billing=60)
        checkpoint(estate, "billing", 60, theirs)
        pair = the_pair(estate)
        asked.append((estate.asked("A", Verb.READ), estate.asked("B", Verb.READ)))
    assert judged(pair) == (CheckpointVerdict.UNSAFE, 10)
    assert all(more <= less + 1 for less, more in zip(*asked, strict=True)), asked


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (70, "the records after the compared offset on B are more than the"),
        (2_060, "the records between tsoffset's offset and the compared one on B are more than"),
    ],
)
def test_a_bound_that_is_met_is_said_and_nothing_is_claimed(theirs, said, monkeypatch):
    """If not all records were read, the verdict is `beyond`, with the reason, not `unsafe`."""
    monkeypatch.setattr(repeats, "BYTES_PER_SPAN", 1_000)
    monkeypatch.setattr(repeats, "_BYTES_PER_READ", 500)
    estate = far_past("billing", records=3_000)
    checkpoint(estate, "billing", 60, theirs)
    pair = the_pair(estate)
    assert judged(pair) == (CheckpointVerdict.BEYOND, theirs - 60)
    assert said in (pair.message or "")


def test_where_a_read_fails_nothing_is_known():
    """Neither that it comes again nor that it does not: the cause is handed on."""
    estate = far_past("billing")
    estate["B"].fail(Failed(FailureKind.TIMEOUT, "too slow; wait"), verb=Verb.READ)
    span = repeats.Span(TopicPartition("orders", 0), 60, TopicPartition("A.orders", 0), 60, 70)
    clusters = estate["A"], estate["B"]
    found = repeats.check_repeats([span], *clusters, Isolation.READ_UNCOMMITTED, ALL)
    assert dict(found) == {span: "too slow; wait"}


def test_spans_of_one_partition_share_what_is_read():
    """A second group beside the first costs no further read of the target's log."""
    asked = []
    for groups in (("one",), ("one", "two")):
        estate = far_past(*groups)
        found = comparison(estate)
        assert {judged(pair) for pair in found.pairs} == {(CheckpointVerdict.UNSAFE, 10)}
        asked.append(estate.asked("B", Verb.READ))
    assert asked[0] == asked[1]


# --- KIP-1292's rule ------------------------------------------------------------------------

RULE = CompareOptions(Against.TIMESTAMPS)


def test_the_plain_rule_stands_beside_ours():
    """Distinct times: the rule answers as we do; within one millisecond it reads again what comes
    before; for a caught-up group it has no answer, and the pair says why."""
    estate = mirrored_estate(100)
    estate["A"].create_topic("bursts")
    same = [Message(NOW_MS, b"k%d" % n, b"v%d" % n) for n in range(50)]
    estate["A"].log("bursts").append(same)
    estate.mirror("bursts")
    estate.commit("billing", "orders", 60)
    estate.commit("caught-up", "orders", 100)
    estate.commit("bursting", "bursts", 20)
    pairs = {pair.group: pair for pair in comparison(estate, options=RULE).pairs}
    assert judged(pairs["billing"]) == (CheckpointVerdict.EQUAL, 0)
    assert judged(pairs["bursting"]) == (CheckpointVerdict.REREAD, 20)
    assert judged(pairs["caught-up"]) == (CheckpointVerdict.NONE, None)
    assert "has no answer" in (pairs["caught-up"].message or "")
    assert {pair.ours_precision for pair in pairs.values()} == {Precision.EXACT}


def test_beside_the_plain_rule_ours_is_proven_whatever_the_file_says():
    """With translation.proof = timestamps the same rule would stand on both sides."""
    estate = mirrored_estate(100, billing=60)
    plain = flow(translation=TranslationSettings(proof="timestamps"))
    (pair,) = comparison(estate, plain, options=RULE).pairs
    assert (pair.ours_precision, judged(pair)) == (Precision.EXACT, (CheckpointVerdict.EQUAL, 0))


# --- what else there is to say of a pair ----------------------------------------------------


def test_without_ours_theirs_is_not_judged():
    """For a target that stamps records itself, tsoffset has no translation, and shows why."""
    estate = Estate()
    estate.write("orders")
    estate.mirror("orders", timestamp_type=TimestampType.LOG_APPEND_TIME)
    estate.commit("billing", "orders", 60)
    checkpoint(estate, "billing", 60, 44)
    pair = the_pair(estate)
    assert judged(pair) == (CheckpointVerdict.UNJUDGED, None)
    assert (pair.ours, pair.ours_reason) == (None, Reason.TARGET_REWRITES_TIMESTAMPS)
    assert pair.message is not None


def test_a_translation_by_the_floor_judges_too():
    """With `translation.floor = log_start` a checkpoint past the log start is `beyond`."""
    estate = Estate()
    estate.write("orders", 700)
    estate["B"].create_topic("A.orders")
    estate["B"].log("A.orders").append([Message(NOW_MS + 5_000, b"other", b"other")] * 10)
    estate.commit("billing", "orders", 660)
    checkpoint(estate, "billing", 660, 4)
    assert the_pair(estate).verdict is CheckpointVerdict.UNJUDGED
    pair = the_pair(estate, flow(translation=with_floor()))
    assert (pair.ours, judged(pair)) == (0, (CheckpointVerdict.BEYOND, 4))


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


def test_skips_of_the_commit_rule_keep_their_translation():
    """An active group is translated, so that its checkpoint has a verdict; the reason is shown."""
    estate = mirrored_estate(100, billing=60)
    estate["B"].group("billing").state = "Stable"
    checkpoint(estate, "billing", 60, 44)
    pair = the_pair(estate)
    assert (pair.ours, pair.ours_reason) == (60, Reason.GROUP_ACTIVE)
    assert judged(pair) == (CheckpointVerdict.REREAD, 16)


@pytest.mark.parametrize(
    ("current", "whose"),
    [
        (None, None),
        (60, CommitOrigin.TSOFFSET),
        (44, CommitOrigin.CHECKPOINT),
        (20, CommitOrigin.EARLIER),
        (45, CommitOrigin.OTHER),
    ],
)
def test_whose_the_targets_commit_is(current, whose):
    """The target group's offset is that of the newest checkpoint, of an earlier one, of tsoffset,
    or none of these."""
    estate = mirrored_estate(100, billing=60)
    checkpoint(estate, "billing", 22, 20)
    checkpoint(estate, "billing", 60, 44)
    if current is not None:
        estate.commit("billing", "A.orders", current, on="B")
    pair = the_pair(estate)
    assert (pair.target_commit, pair.target_commit_is) == (current, whose)


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


# --- what is printed ------------------------------------------------------------------------


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


def test_totals_add_up_the_pairs():
    """Verdicts, records read again or skipped, precisions, and what stands on the target."""
    totals = ComparisonTotals(comparison(compared_estate()).pairs)
    assert totals.verdicts == {
        CheckpointVerdict.EQUAL: 4,
        CheckpointVerdict.UNSAFE: 2,
        CheckpointVerdict.NONE: 2,
    }
    assert (totals.skipped, totals.reread) == (2 * 277, 0)
    assert totals.precisions == {Precision.EXACT: 8}
    assert totals.origins == {None: 7, CommitOrigin.BOTH: 1}
    assert totals.in_words("MirrorMaker 2") == {
        "MirrorMaker 2": "4 equal, 0 re-read, 2 unsafe (up to 554 records skipped), 2 none",
        "tsoffset": "8 exact, 0 none",
        "target groups": "1 equal to both, 7 without a committed offset",
    }


@pytest.mark.parametrize("width", [80, 120, None])
def test_the_table_fits(width):
    """No line is wider than the terminal; in a file all columns stand."""
    lines = list(comparison_lines(comparison(compared_estate()), width, CompareOptions()))
    if width is not None:
        assert max(cell_len(line.plain) for line in lines) <= width
    else:
        assert re.split(" {2,}", lines[1].plain) == [
            *("GROUP", "SOURCE", "COMMITTED", "CONSUMER LAG", "TARGET", "TSOFFSET", "PRECISION"),
            *("MIRRORMAKER 2", "OF SOURCE OFFSET", "VERDICT", "RECORDS", "TARGET COMMIT", "SET BY"),
            "RE-READS",
        ]
    text = "\n".join(line.plain for line in lines)
    assert "A->B: 8 group-partitions" in text
    assert text.count("unsafe") >= 3


def test_json_is_one_pair_a_line_and_totals_go_elsewhere(tmp_path):
    """All fields in order on each line of standard output; the totals on standard error, so
    that what reads the lines needs to tell nothing apart."""
    result = in_memory(compared_estate(), tmp_path, "compare", "--format", "json")
    pairs = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert len(pairs) == 8
    assert {tuple(pair) for pair in pairs} == {
        (
            *("flow", "compared_at_ms", "group", "source_topic", "partition", "source_offset"),
            *("lag", "target_topic", "ours", "ours_precision", "ours_reread_bound", "ours_reason"),
            *("true_position", "theirs", "theirs_source_offset", "theirs_timestamp_ms"),
            *("verdict", "records", "target_commit", "target_commit_is", "target_commit_reread"),
            "message",
        )
    }
    assert [pair["verdict"] for pair in pairs if pair["group"] == "search"] == ["unsafe"] * 2
    assert "A->B: MirrorMaker 2: 4 equal" in result.stderr


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
