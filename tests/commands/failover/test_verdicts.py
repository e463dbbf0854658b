"""`tsoffset failover`: the verdict on each group."""

from typing import Any

from tests.commands.failover.conftest import mirrored
from tests.memory_flows import Estate, flow, mirrored_estate
from tsoffset.commands.failover.verdicts import FailoverVerdict, verdicts
from tsoffset.flow.settings import FlowSettings, TranslationSettings


def judged(estate: Estate, *active: str, settings: FlowSettings | None = None) -> dict[str, Any]:
    found = verdicts("A->B", estate.sync(settings), active, "now")
    return {one.group or "": (one.verdict, one.reread_bound, one.reason) for one in found}


def test_a_group_is_ready_where_all_its_partitions_are_exact():
    """It says where its consumers begin and for which commits that stands; a second look finds the
    same."""
    estate = mirrored_estate(100, partitions=2, first_offset=40, billing=60)
    estate.commit("billing", "orders", 70, partition=1)
    for _ in range(2):
        (found,) = verdicts("A->B", estate.sync(), (), "now")
        assert (found.verdict, found.reread_bound, found.partitions) == (
            FailoverVerdict.READY,
            0,
            2,
        )
        assert found.resumes_at == "A.orders-0:100 A.orders-1:110"
        assert found.source_commits == "orders-0:60 orders-1:70"


def test_what_is_read_again_is_added_up():
    """A mirror that lags behind two commits of a group: ready, but for what it lacks."""
    estate = mirrored_estate(100, partitions=2, up_to=50)
    for partition in range(2):
        estate.commit("billing", "orders", 60 + partition, partition=partition)
    assert judged(estate) == {"billing": (FailoverVerdict.BOUNDED, 10 + 11, None)}


def test_what_stands_in_the_way_is_named():
    """Consumers on either side, a commit that has no translation, one on the target that is
    further, and answers that nothing proves: not ready, each with its reason. What a group re-reads
    is counted from where it is, so it is not known where there is no commit, or one too far."""
    estate = mirrored()
    estate.write("lost", 10)
    for group in ("active", "busy", "ahead", "behind", "lost", "both"):
        estate.commit(group, "orders", 60)
    estate.commit("lost", "lost", 5)
    estate.commit("both", "lost", 5)
    estate.commit("ahead", "A.orders", 130, on="B")
    estate.commit("behind", "A.orders", 70, on="B")
    estate["B"].group("busy").state = estate["B"].group("behind").state = "Stable"
    not_ready = FailoverVerdict.NOT_READY
    assert judged(estate, "active", "both") == {
        "active": (not_ready, 0, "SOURCE_ACTIVE"),
        "ahead": (not_ready, None, "TARGET_AHEAD"),
        "behind": (not_ready, 30, "GROUP_ACTIVE"),
        "billing": (FailoverVerdict.READY, 0, None),
        "both": (not_ready, None, "SOURCE_ACTIVE TARGET_MISSING"),
        "busy": (not_ready, None, "GROUP_ACTIVE"),
        "lost": (not_ready, None, "TARGET_MISSING"),
    }
    (ahead,) = [one for one in verdicts("A->B", estate.sync(), (), "now") if one.group == "ahead"]
    assert "target, A.orders-0:130, is 30 past what it has read" in ahead.message
    simple = flow(translation=TranslationSettings(proof="timestamps"))
    fresh = mirrored()
    assert judged(fresh, settings=simple) == {"billing": (not_ready, None, "UNPROVEN")}
