"""`tsoffset compare`: records that the replicator copied again are not skipped."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands.compare.test_flow_comparison import checkpoint, comparison, judged, the_pair
from tests.memory_flows import Estate, flow, identity_flow, mirrored_estate
from tests.random_examples import scaled
from tsoffset.commands.compare import repeats
from tsoffset.commands.compare.judgment import CheckpointVerdict
from tsoffset.model import Failed, FailureKind, Isolation, Precision, TopicPartition
from tsoffset.records import ALL
from tsoffset.testing.memory_cluster import Verb, mirror_partition


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
