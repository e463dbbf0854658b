"""Mirrors that keep offsets, on real brokers: copied to equal offsets, then made to diverge."""

from collections.abc import Callable

import pytest

from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import Rows, one_cycle
from tsoffset.commands.check.findings import Severity
from tsoffset.commands.check.flow_check import check
from tsoffset.flow.policy import DefaultGroupFilter, DefaultTopicFilter, IdentityReplicationPolicy
from tsoffset.flow.settings import SAME_OFFSETS, ClusterSettings, FlowSettings, TranslationSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def write_in_a_transaction(contents: Contents, topic: str, records: list[Written]) -> None:
    """As on the source, with its marker, which a mirror of bytes would copy, too."""
    transaction = contents.begin_transaction(f"writes-{topic}")
    transaction.add(topic, records)
    transaction.commit()


def copy(source: Contents, target: Contents, topic: str) -> None:
    """What the target has not yet, to the offsets that it has on the source."""
    _, end = target.log_range(topic)
    left = source.read(topic, start=end)
    records = [Written(r.timestamp_ms, r.value, r.key) for r in left]
    assert target.produce(topic, records) == [r.offset for r in left]


@pytest.fixture
def topic(source: Contents, target: Contents, unique: Callable[[str], str]) -> str:
    """A topic of the same name on both clusters."""
    topic = unique("kept")
    for contents in (source, target):
        contents.create_topic(topic)
    return topic


def flow_of(topic: str, source: Contents, target: Contents) -> FlowSettings:
    """A mirror of this topic that is expected to keep offsets."""
    return FlowSettings(
        ClusterSettings("A", (source.bootstrap,)),
        ClusterSettings("B", (target.bootstrap,)),
        IdentityReplicationPolicy("A"),
        DefaultGroupFilter([f"{topic}-.*"]),
        DefaultTopicFilter([topic]),
        translation=TranslationSettings(expect=SAME_OFFSETS),
    )


def test_equal_offsets_are_verified_and_divergence_is_found(source, target, topic):
    """Groups resume at the same offset, and read what they would have read; where the mirror is
    behind, at its end. Once the logs differ nothing is committed any more, and `check` says so."""
    flow = flow_of(topic, source, target)
    source.produce(topic, numbered(60), batch=[1, 9, 30, 20])
    copy(source, target, topic)
    together = numbered(5, first=60)
    for contents in (source, target):
        write_in_a_transaction(contents, topic, together)
    source.produce(topic, numbered(20, first=65))
    copy(source, target, topic)
    end = source.log_range(topic)[1]
    assert target.log_range(topic)[1] == end == 86
    for offset in (0, 30, 60, 65, 66, 85, end):
        source.commit_offsets(f"{topic}-{offset}", {(topic, 0): offset})
    for row in committed(flow).all:
        assert (row.target_offset, row.precision) == (row.source_offset, Precision.EXACT)
        assert row.source_offset is not None
        assert values(target, topic, row.group) == values(source, topic, row.group)

    source.produce(topic, numbered(10, first=85))
    source.commit_offsets(f"{topic}-{end}", {(topic, 0): end + 10})
    row = committed(flow).of(f"{topic}-{end}", topic)
    assert (row.target_offset, row.precision, row.reread_bound) == (end, Precision.FRONTIER, 10)
    copy(source, target, topic)
    row = committed(flow).of(f"{topic}-{end}", topic)
    assert (row.target_offset, row.precision, row.reread_bound) == (end + 10, Precision.EXACT, 0)

    # The source has lost what the target has got, and was written to since.
    target.produce(topic, numbered(7, first=1_000))
    source.produce(topic, numbered(12, first=2_000))
    source.commit_offsets(f"{topic}-30", {(topic, 0): 40})
    before = target.committed_offsets(f"{topic}-30")
    rows = one_cycle(flow)
    assert {row.reason for row in rows.all} == {Reason.DIVERGED}
    assert f"the first at {end + 10}:" in (rows.all[0].message or "")
    assert target.committed_offsets(f"{topic}-30") == before == {(topic, 0): (30, "")}
    found = check([flow], KafkaCluster).findings
    (said,) = [one for one in found if "different records" in one.finding]
    assert said.severity is Severity.ERROR
    assert "truncate the mirror to that offset or" in (said.remedy or "")


def committed(flow: FlowSettings) -> Rows:
    rows = one_cycle(flow)
    assert {row.outcome for row in rows.all} <= {OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED}
    return rows


def values(contents: Contents, topic: str, group: str | None) -> list[bytes | None]:
    """What a consumer of the group gets, from its committed offset to the log's end."""
    return [one.value for one in contents.read(topic, group=group, isolation="read_committed")]
