"""Four clusters with all that the scenarios need, mirrored once; MirrorMaker 2 is stopped then."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from tests.embedded_cluster import EmbeddedCluster
from tests.producing import Contents
from tests.scenarios.flows import IDENTITY, Flows, prepare_mirror
from tests.scenarios.holdings import TOPICS, fill, mirror
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker

Nodes = EmbeddedBroker | EmbeddedCluster

# Some clusters have further names, for flows that keep the topics' names.
CLUSTERS = {
    **{name: name for name in "ABCD"},
    **{"X": "A", "Y": "B", "W": "D"},
}

_PROPERTIES = {"log.cleaner.backoff.ms": "100"}
_KEPT_NAMES = ("X->Y", "Y->X", "W->Y")


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Nodes]]:
    """A, B and C of one node each, and D of two; no other test uses them."""
    folder = tmp_path_factory.mktemp("clusters")
    named: dict[str, Nodes] = {
        name: EmbeddedBroker(folder / name, name=name, properties=_PROPERTIES) for name in "ABC"
    }
    named["D"] = EmbeddedCluster(folder, name="D")
    with ExitStack() as running, ThreadPoolExecutor() as pool:
        for nodes in named.values():
            running.callback(nodes.stop)
        for started in [pool.submit(nodes.start) for nodes in named.values()]:
            started.result()
        yield named


@pytest.fixture(scope="package")
def mirror_maker(
    clusters: dict[str, Nodes], tmp_path_factory: pytest.TempPathFactory
) -> MirrorMaker:
    """MirrorMaker 2 for all flows; not started."""
    topics = {
        flow: [topic.replace(".", r"\.") for topic in of_flow] for flow, of_flow in TOPICS.items()
    }
    overrides = {f"{flow}.replication.policy.class": IDENTITY for flow in _KEPT_NAMES}
    overrides |= {
        "X->Y.source.consumer.isolation.level": "read_committed",
        # Two mirrors write one log there: in few large batches, however busy the machine is.
        "Y.producer.linger.ms": "100",
    }
    by_alias = {alias: clusters[name] for alias, name in CLUSTERS.items()}
    return prepare_mirror(tmp_path_factory.mktemp("mirror"), by_alias, topics, overrides)


@pytest.fixture(scope="package")
def estate(clusters: dict[str, Nodes], mirror_maker: MirrorMaker) -> Iterator[Flows]:
    """All topics filled and mirrored, and MirrorMaker 2 stopped.

    Tests take groups and, where they write, topics of their own.
    """
    with ExitStack() as open_contents:
        contents = {
            name: open_contents.enter_context(closing(Contents(nodes.bootstrap)))
            for name, nodes in clusters.items()
        }
        by_alias = {alias: contents[name] for alias, name in CLUSTERS.items()}
        estate = Flows(by_alias, mirror_maker)
        fill(estate)
        with mirror_maker:
            mirror(estate)
        yield estate
