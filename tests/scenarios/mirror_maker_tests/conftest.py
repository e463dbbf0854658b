"""Primary and backup with all topics mirrored; MirrorMaker 2 goes on running."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from tests.producing import Contents
from tests.scenarios.flows import IDENTITY, prepare_mirror
from tests.scenarios.mirror_maker_tests.primary_backup import (
    ALIASES,
    AUTO_SYNC,
    BEHIND,
    BEHIND_ROUNDS,
    LATER,
    NOTHING_YET,
    PARTITIONS,
    REPLICATED,
    RESTARTED,
    VARIANTS,
    Site,
    Variant,
)
from tests.waiting import wait_until
from tsoffset.testing.embedded import EmbeddedBroker, MirrorMaker


@pytest.fixture(
    params=[
        pytest.param(variant, marks=pytest.mark.thorough if number else ())
        for number, variant in enumerate(VARIANTS)
    ],
    ids=lambda variant: variant.name,
)
def variant(request: pytest.FixtureRequest) -> Variant:
    """Each way to run a test; the first one in `make test`, the others in `make test-all`."""
    chosen: Variant = request.param
    return chosen


@pytest.fixture(scope="package")
def variants(chosen: Callable[[str], list[Any]]) -> Sequence[Variant]:
    """Those of this run: no other has topics."""
    return chosen("variant")


@pytest.fixture(scope="package")
def mirror_maker(
    source_broker: EmbeddedBroker,
    target_broker: EmbeddedBroker,
    variants: Sequence[Variant],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirrorMaker]:
    """MirrorMaker 2 for all flows; not started. It writes no offset syncs."""
    brokers = {"primary": source_broker, "backup": target_broker}
    clusters = {alias: brokers[name] for alias, name in ALIASES.items()}
    # As in the original tests: what came from the other side may be synced back.
    of_policy = {
        "default": [
            "test-topic-default.*",
            *("primary.test-topic-.*", "backup.test-topic-.*"),
        ],
        "identity": ["test-topic-identity.*"],
    }
    topics: dict[str, Sequence[str]] = {}
    overrides = {}
    for variant in variants:
        policy, _, _ = variant.name.partition("-")
        topics |= {variant.forth: of_policy[policy], variant.back: of_policy[policy]}
        topics[variant.from_latest] = [f"from-latest-{policy}.*"]
        latest, _, _ = variant.from_latest.partition("->")
        overrides[f"{latest}.consumer.auto.offset.reset"] = "latest"
        if variant.keeps_names:
            flows = variant.forth, variant.back, variant.from_latest
            overrides |= {f"{flow}.replication.policy.class": IDENTITY for flow in flows}
            # Records would go round and round.
            overrides[f"{variant.back}.enabled"] = "false"
    folder = tmp_path_factory.mktemp("as-mirror-maker")
    mirror_maker = prepare_mirror(folder, clusters, topics, overrides, name="as-mirror-maker")
    yield mirror_maker
    # Nobody asks it for anything any more, and to stop in order takes it a while.
    mirror_maker.kill()


@pytest.fixture(scope="package")
def site(
    source: Contents, target: Contents, mirror_maker: MirrorMaker, variants: Sequence[Variant]
) -> Iterator[Site]:
    """All topics filled and mirrored."""
    with closing(Site({"primary": source, "backup": target}, mirror_maker)) as site:
        for variant in variants:
            fill(site, variant)
        mirror_maker.start()
        for variant in variants:
            begin_from_latest(site, variant)
        for variant in variants:
            site.write(variant, variant.topic(BEHIND), rounds=BEHIND_ROUNDS - 1)
            site.contents["primary"].create_topic(variant.topic(LATER), PARTITIONS)
            site.write(variant, variant.topic(LATER), partitions=[0])
        for variant in variants:
            site.wait_until_complete(variant)
        yield site


def fill(site: Site, variant: Variant) -> None:
    """Create the topics on the primary cluster and fill them, before anything is mirrored."""
    primary, backup = site.sides(variant.forth)
    for subject in (REPLICATED, AUTO_SYNC, RESTARTED, BEHIND):
        primary.create_topic(variant.topic(subject), PARTITIONS)
        site.write(variant, variant.topic(subject))
    primary.create_topic(variant.topic(NOTHING_YET))
    if not variant.keeps_names:
        backup.create_topic(variant.topic(REPLICATED), PARTITIONS)
        site.write(variant, variant.topic(REPLICATED), cluster="backup")
    primary.create_topic(variant.topic_from_latest, PARTITIONS)
    site.write(variant, variant.topic_from_latest)


def begin_from_latest(site: Site, variant: Variant) -> None:
    """Write one record after the other until that mirror has begun, and ten more."""
    topic = variant.topic_from_latest
    _, backup = site.sides(variant.from_latest)
    remote = site.remote(variant.from_latest, topic)
    site.mirror_maker.wait_for_topic(backup.bootstrap, remote, PARTITIONS)

    def begun() -> bool:
        site.write(variant, topic, per_round=1)
        return all(backup.log_range(remote, number)[1] > 0 for number in range(PARTITIONS))

    wait_until(begun, f"{remote} has records")
    site.write(variant, topic)
