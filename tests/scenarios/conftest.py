"""Two clusters with all that the scenarios need, mirrored once; MirrorMaker 2 is stopped then."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from tests.producing import Contents
from tests.scenarios.flows import IDENTITY, Flows, prepare_mirror
from tests.scenarios.holdings import TOPICS, fill, mirror
from tsoffset.lab.embedded import EmbeddedBroker


@pytest.fixture(scope="package")
def estate(tmp_path_factory) -> Iterator[Flows]:
    """All topics filled and mirrored between A and B, which no other test uses. X and Y are further
    names of them, for flows that keep the topics' names.

    Tests take groups and, where they write, topics of their own.
    """
    folder = tmp_path_factory.mktemp("estate")
    quick = {"log.cleaner.backoff.ms": "100"}
    brokers = [EmbeddedBroker(folder / name, name=name, properties=quick) for name in "AB"]
    with ExitStack() as running:
        for broker in brokers:
            running.callback(broker.stop)
        with ThreadPoolExecutor() as pool:
            a, b = [
                running.enter_context(closing(Contents(broker.bootstrap)))
                for broker in pool.map(EmbeddedBroker.start, brokers)
            ]
        contents = {"A": a, "B": b, "X": a, "Y": b}
        overrides = {
            "X->Y.replication.policy.class": IDENTITY,
            "Y->X.replication.policy.class": IDENTITY,
            "X->Y.source.consumer.isolation.level": "read_committed",
        }
        mirror_maker = prepare_mirror(folder, contents, TOPICS, overrides)
        estate = Flows(contents, mirror_maker)
        fill(estate)
        with mirror_maker:
            mirror(estate)
        yield estate
