"""All corner cases filled and mirrored by one MirrorMaker 2, which goes on running."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.producing import CODECS, Contents
from tests.scenarios.corner_cases.corners import (
    CLUSTERS,
    DEEP,
    EXACTLY_ONCE,
    FILTERED,
    FROM_LATEST,
    LARGE_BATCHES,
    PLAIN,
    TORN,
    Corners,
)
from tests.scenarios.corner_cases.holdings import (
    DELETED,
    DROPPED,
    EMPTIED,
    FAR_FUTURE,
    LARGE_FUTURE,
    LARGE_ONE_TIME,
    NEWEST,
    ONE_TIME,
    PAID,
    SHORT_LIVED,
    SIEVED,
    SOURCE_ANEW,
    TARGET_ANEW,
    TIERED,
    TORN_LOG,
    fill,
    megabytes,
)
from tests.scenarios.corner_cases.tiers import storage_jar, tiered_properties
from tests.scenarios.corner_cases.transactions import abort_by_a_crash
from tests.scenarios.flows import prepare_mirror
from tsoffset.errors import JarsUnavailable
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker

TOPICS = {
    PLAIN: (
        *(DELETED, SOURCE_ANEW, TARGET_ANEW, EMPTIED),
        *(FAR_FUTURE, ONE_TIME, LARGE_FUTURE, LARGE_ONE_TIME),
    ),
    EXACTLY_ONCE: (PAID,),
    FILTERED: (SIEVED,),
    LARGE_BATCHES: tuple(map(megabytes, CODECS)),
    DEEP: (SHORT_LIVED, TIERED),
    TORN: (TORN_LOG,),
    FROM_LATEST: (NEWEST,),
}
_FILTER = "org.apache.kafka.connect.transforms"
_OVERRIDES = {
    "paid->once.source.consumer.isolation.level": "read_committed",
    # A setting of the Connect worker for all that it writes to that cluster.
    "once.exactly.once.source.support": "enabled",
    "all->half.transforms": "sieve",
    "all->half.transforms.sieve.type": f"{_FILTER}.Filter",
    "all->half.transforms.sieve.predicate": "marked",
    "all->half.predicates": "marked",
    "all->half.predicates.marked.type": f"{_FILTER}.predicates.HasHeaderKey",
    "all->half.predicates.marked.name": DROPPED,
    "newer.consumer.auto.offset.reset": "latest",
    "wide.producer.batch.size": "1000000",
    "wide.producer.linger.ms": "100",
    # A batch that is later begins a new segment there: many small ones.
    "tiers.producer.batch.size": "2000",
    # Their targets have settings of their own.
    "deep->tiers.sync.topic.configs.enabled": "false",
}
_DEEP_PROPERTIES = {
    # Deleted for its age or moved to the other tier soon.
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "unclean.leader.election.enable": "true",
}


@pytest.fixture(scope="package")
def no_tiers() -> str | None:
    """Why there is no tiered storage; None where there is."""
    try:
        storage_jar()
    except JarsUnavailable as error:
        return str(error)
    return None


@pytest.fixture(scope="package")
def deep_broker(
    no_tiers: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedBroker]:
    """The third cluster, with tiered storage if that can be had."""
    folder = tmp_path_factory.mktemp("deep")
    properties = dict(_DEEP_PROPERTIES)
    if no_tiers is None:
        properties |= tiered_properties(storage_jar(), folder / "other-tier")
    with EmbeddedBroker(folder, name="deep", properties=properties) as broker:
        yield broker


@pytest.fixture(scope="package")
def mirror_maker(
    source_broker: EmbeddedBroker,
    target_broker: EmbeddedBroker,
    deep_broker: EmbeddedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirrorMaker]:
    """MirrorMaker 2 for all flows; not started."""
    brokers = {"source": source_broker, "target": target_broker, "deep": deep_broker}
    clusters = {alias: brokers[name] for alias, name in CLUSTERS.items()}
    folder = tmp_path_factory.mktemp("corner-cases")
    mirror_maker = prepare_mirror(folder, clusters, TOPICS, _OVERRIDES, name="corner-cases")
    yield mirror_maker
    # Nobody asks it for anything any more, and to stop in order takes it a while.
    mirror_maker.kill()


@pytest.fixture(scope="package")
def corners(
    source: Contents,
    target: Contents,
    deep_broker: EmbeddedBroker,
    mirror_maker: MirrorMaker,
    no_tiers: str | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Corners]:
    """All topics filled and mirrored."""
    with ExitStack() as opened:
        deep = opened.enter_context(closing(Contents(deep_broker.bootstrap)))
        contents = {"source": source, "target": target, "deep": deep}
        corners = Corners(contents, mirror_maker)
        fill(corners, tiered=no_tiers is None)
        abort_by_a_crash(corners, tmp_path_factory.mktemp("crash"))
        mirror_maker.start()
        for flow, topics in TOPICS.items():
            absent = {SIEVED, TORN_LOG, NEWEST, *(() if no_tiers is None else (TIERED,))}
            corners.wait_until_mirrored(flow, *(topic for topic in topics if topic not in absent))
        yield corners
