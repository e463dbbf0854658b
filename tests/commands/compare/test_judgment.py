"""`tsoffset compare`: how a checkpoint is judged by a translation, and the rule of KIP-1292."""

import pytest

from tests.commands.compare.test_flow_comparison import (
    checkpoint,
    comparison,
    judged,
    the_pair,
    with_checkpoint,
)
from tests.memory_flows import NOW_MS, Estate, flow, mirrored_estate, with_floor
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin
from tsoffset.commands.compare.options import Against, CompareOptions
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Precision, Reason, TimestampType
from tsoffset.testing.memory_cluster import Message

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
