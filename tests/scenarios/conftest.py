"""Two clusters with all that the scenarios need, mirrored once; MirrorMaker 2 is stopped then."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.producing import Contents
from tests.scenarios.flows import IDENTITY, Flows, prepare_mirror, two_brokers
from tests.scenarios.holdings import TOPICS, fill, mirror


@pytest.fixture(scope="package")
def estate(tmp_path_factory) -> Iterator[Flows]:
    """All topics filled and mirrored between A and B, which no other test uses. X and Y are further
    names of them, for flows that keep the topics' names.

    Tests take groups and, where they write, topics of their own.
    """
    folder = tmp_path_factory.mktemp("estate")
    with (
        two_brokers(folder) as (first, second),
        closing(Contents(first.bootstrap)) as a,
        closing(Contents(second.bootstrap)) as b,
    ):
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
