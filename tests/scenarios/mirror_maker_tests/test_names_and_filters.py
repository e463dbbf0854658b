"""Which groups and topics are synced, and what the topics are called on the backup.

After testDownstreamTopicRenaming, testFindConsumerGroups and
testFindConsumerGroupsInCommonScenarios of Apache Kafka's connect/mirror.
"""

from pathlib import Path

import javaproperties
import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.scenarios.flows import Rows, member, one_cycle
from tests.scenarios.mirror_maker_tests.primary_backup import (
    AUTO_SYNC,
    BEHIND,
    RENAMED,
    REPLICATED,
    Mirror,
    Site,
    Variant,
)
from tsoffset.config.loading import Configuration
from tsoffset.model import OutcomeKind, Precision
from tsoffset.testing.embedded import MirrorMaker

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", RENAMED)
def test_downstream_topic_is_renamed(site: Site, variant: Variant, name: str) -> None:
    """A topic gets the flow's source before its name, one that came from a third cluster
    too (source6.t becomes primary.source6.t); under Identity both keep theirs. The partition
    stays what it is."""
    topic, group = variant.renamed(name), variant.group(f"renamed-{name}")
    source, target = site.sides(variant.forth)
    (_, partition) = RENAMED[name]
    offset = source.read(topic, partition)[7].offset
    source.commit_offsets(group, {(topic, partition): offset})
    row = site.sync(variant.forth, group).of(group, topic, partition)
    expected = topic if variant.keeps_names else f"primary.{topic}"
    assert (row.target_topic, row.partition) == (expected, partition)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT)
    assert target.committed_offsets(group) == {(expected, partition): (7, "")}
    mirror = Mirror(source, target, topic, expected)
    assert mirror.true_offset(partition, offset) == 7


def cycle_with(
    site: Site, mirror_maker: MirrorMaker, variant: Variant, folder: Path, **filters: str
) -> Rows:
    """A cycle of the variant's flow with other filters in its properties file; `_` in their
    names stands for a dot."""
    properties = javaproperties.loads(mirror_maker.properties_path.read_text())
    for name, value in filters.items():
        properties[f"{variant.forth}.{name.replace('_', '.')}"] = value
    path = folder / "filtered.properties"
    path.write_text(javaproperties.dumps(properties, timestamp=None))
    flow = Configuration.read(path).resolve().flow(variant.forth)
    return one_cycle(flow)


def test_all_kinds_of_groups_are_found(
    site: Site, mirror_maker: MirrorMaker, variant: Variant, tmp_path: Path
) -> None:
    """A group that a tool committed for and one of real consumers are both found; neither is
    where no topic passes the filter."""
    topic = variant.topic(AUTO_SYNC)
    source, _ = site.sides(variant.forth)
    simple, of_consumers = variant.group("found-simple"), variant.group("found-consumers")
    source.commit_offsets(simple, {(topic, 0): 0})
    with member(source, of_consumers, topic) as consumer:
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(0, "", -1)})
    kinds = {one["group_id"]: one["protocol_type"] for one in source.admin.list_groups()}
    assert (kinds[simple], kinds[of_consumers]) == ("", "consumer")
    groups = f"found-.*-{variant.name}"
    rows = cycle_with(site, mirror_maker, variant, tmp_path, groups=groups)
    assert {row.group for row in rows.all} == {simple, of_consumers}
    rows = cycle_with(site, mirror_maker, variant, tmp_path, groups=groups, topics="other")
    assert rows.all == ()


def test_groups_and_topics_pass_both_filters(
    site: Site, mirror_maker: MirrorMaker, variant: Variant, tmp_path: Path
) -> None:
    """Of four groups and three topics: those groups are synced that pass the group filter and
    have a commit on the one topic that passes the topic filter, and for that topic only."""
    t1, t2, t3 = (variant.topic(subject) for subject in (REPLICATED, AUTO_SYNC, BEHIND))
    g1, g2, g3, g4 = (f"g{number}-{variant.name}" for number in (1, 2, 3, 4))
    source, target = site.sides(variant.forth)
    for group, topics in {g1: (t1, t2), g2: (t2, t3), g3: (t3,), g4: (t2,)}.items():
        source.commit_offsets(group, {(topic, 0): 3 for topic in topics})
    rows = cycle_with(
        site,
        mirror_maker,
        variant,
        tmp_path,
        groups=f"g.-{variant.name}",
        groups_exclude=g4,
        topics=variant.topic(".*"),
        topics_exclude=f"{t1}, {t3}",
    )
    assert rows.outcomes() == {(group, t2, 0): (OutcomeKind.COMMITTED, None) for group in (g1, g2)}
    remote = site.remote(variant.forth, t2)
    for group in (g1, g2):
        assert target.committed_offsets(group) == {(remote, 0): (3, "")}
    for group in (g3, g4):
        assert target.committed_offsets(group) == {}
