"""Four clusters with all that the scenarios need, mirrored once; MirrorMaker 2 is stopped then."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import javaproperties
import pytest

from tests.producing import Contents
from tests.scenarios.estate import CLUSTERS, Estate
from tests.scenarios.holdings import TOPICS, fill, mirror
from tsoffset.config.loading import Configuration
from tsoffset.testing.embedded import EmbeddedBroker, EmbeddedCluster, MirrorMaker, flow_properties

Nodes = EmbeddedBroker | EmbeddedCluster

_PROPERTIES = {"log.cleaner.backoff.ms": "100"}
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
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
    wanted: dict[str, str] = {"heartbeats.replication.enabled": "false"}
    for flow, topics in TOPICS.items():
        source, _, target = flow.partition("->")
        wanted |= flow_properties(
            clusters[CLUSTERS[source]].bootstrap,
            clusters[CLUSTERS[target]].bootstrap,
            source=source,
            target=target,
            topics=", ".join(topic.replace(".", r"\.") for topic in topics),
        )
    for flow in _KEPT_NAMES:
        wanted[f"{flow}.replication.policy.class"] = _IDENTITY
    wanted["X->Y.source.consumer.isolation.level"] = "read_committed"
    aliases = [alias for flow in TOPICS for alias in flow.split("->")]
    wanted["clusters"] = ", ".join(dict.fromkeys(aliases))
    folder = tmp_path_factory.mktemp("mirror")
    path = folder / "mm2.properties"
    path.write_text(javaproperties.dumps(wanted, timestamp=None))
    return MirrorMaker(path, folder)


@pytest.fixture(scope="package")
def estate(clusters: dict[str, Nodes], mirror_maker: MirrorMaker) -> Iterator[Estate]:
    """All topics filled and mirrored, and MirrorMaker 2 stopped.

    Tests take groups and, where they write, topics of their own.
    """
    with ExitStack() as open_contents:
        contents = {
            name: open_contents.enter_context(closing(Contents(nodes.bootstrap)))
            for name, nodes in clusters.items()
        }
        estate = Estate(contents, Configuration.read(mirror_maker.properties_path).resolve())
        fill(estate)
        with mirror_maker:
            mirror(estate, mirror_maker)
        yield estate
