"""`tsoffset check`: the timestamps of the source's records."""

import pytest

from tests.commands.check.test_flow_check import WARNING, checked, mirrored, worst
from tests.memory_flows import NOW_MS, flow
from tsoffset.commands.check.record_times import RecordTimes, compared_times
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs
from tsoffset.testing.memory_cluster import Message

ORDERS = SyncedTopic("orders", "A.orders", frozenset({0}), ("billing",))
DAY_MS = 86_400_000


def test_records_of_the_future_are_a_warning():
    """By more than a minute: a clock is wrong, unless that is intended."""
    source, target = mirrored()
    source.log("orders").append([Message(32_503_680_000_000, b"k", b"year 3000")])
    assert worst(checked(flow(), source, target)) == {(WARNING, "clock")}
    newest = {ORDERS: RecordTimes(newest_ms=NOW_MS + 60_000)}
    assert not list(compared_times(flow(), newest, {"A.orders": {}}, NOW_MS))


@pytest.mark.parametrize(
    ("configs", "refused"),
    [
        ({}, None),
        ({"after": "7200000"}, None),
        ({"after": "3600000"}, "after"),
        ({"before": str(DAY_MS)}, "before"),
        ({"before": str(10 * DAY_MS)}, None),
        ({"difference": str(DAY_MS)}, "before"),
        ({"difference": str(DAY_MS), "before": str(2**63 - 1)}, None),
    ],
)
def test_records_that_copies_would_refuse_are_a_warning(configs, refused):
    """A source with records from three days ago to two hours ahead; the limit for both of brokers
    before 3.6 counts where the two are absent."""
    times = {ORDERS: RecordTimes(NOW_MS - 3 * DAY_MS, NOW_MS + 7_200_000)}
    limits = {f"message.timestamp.{key}.max.ms": value for key, value in configs.items()}

    def subjects(of_copy: Configs) -> list[str]:
        found = compared_times(flow(), times, {"A.orders": of_copy}, NOW_MS)
        return [one.subject for one in found if one.cluster == "B"]

    assert subjects(limits) == ([f"message.timestamp.{refused}.max.ms"] if refused else [])
    assert subjects(limits | {"message.timestamp.type": "LogAppendTime"}) == []
