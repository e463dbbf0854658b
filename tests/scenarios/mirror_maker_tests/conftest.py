"""Primary and backup with all topics mirrored; MirrorMaker 2 goes on running."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import javaproperties
import pytest

from tests.producing import READ_SECONDS, Contents
from tests.scenarios.mirror_maker_tests.primary_backup import (
    AUTO_SYNC,
    BEHIND,
    BEHIND_ROUNDS,
    EMPTY_PARTITION,
    LATER,
    NOTHING_YET,
    PARTITIONS,
    RENAMED,
    REPLICATED,
    RESTARTED,
    VARIANTS,
    Site,
    Variant,
)
from tsoffset.config.loading import Configuration
from tsoffset.testing.embedded import EmbeddedBroker, MirrorMaker, flow_properties

_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


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
    wanted: dict[str, str] = {"heartbeats.replication.enabled": "false"}
    primary, backup = source_broker.bootstrap, target_broker.bootstrap
    # As in the original tests: what came from the other side may be synced back.
    topics = {
        "default": "test-topic-default.*, source6.test-topic-default.*,"
        " primary.test-topic-.*, backup.test-topic-.*",
        "identity": "test-topic-identity.*, source6.test-topic-identity.*",
    }
    for variant in variants:
        policy, _, _ = variant.name.partition("-")
        for flow, here, there, of_flow in (
            (variant.back, backup, primary, topics[policy]),
            (variant.forth, primary, backup, topics[policy]),
            (variant.from_latest, primary, backup, f"from-latest-{policy}.*"),
        ):
            source, _, target = flow.partition("->")
            wanted |= flow_properties(here, there, source=source, target=target, topics=of_flow)
            if variant.keeps_names:
                wanted[f"{flow}.replication.policy.class"] = _IDENTITY
        wanted[f"{variant.from_latest.partition('->')[0]}.consumer.auto.offset.reset"] = "latest"
        # With the names kept, records would go round and round.
        wanted[f"{variant.back}.enabled"] = str(not variant.keeps_names).lower()
    flows = [flow for v in variants for flow in (v.forth, v.back, v.from_latest)]
    aliases = [alias for flow in flows for alias in flow.split("->")]
    wanted["clusters"] = ", ".join(dict.fromkeys(aliases))
    folder = tmp_path_factory.mktemp("as-mirror-maker")
    path = folder / "mm2.properties"
    path.write_text(javaproperties.dumps(wanted, timestamp=None))
    mirror_maker = MirrorMaker(path, folder, name="as-mirror-maker")
    yield mirror_maker
    # Nobody asks it for anything any more, and to stop in order takes it a while.
    mirror_maker.kill()


@pytest.fixture(scope="package")
def site(
    source: Contents, target: Contents, mirror_maker: MirrorMaker, variants: Sequence[Variant]
) -> Iterator[Site]:
    """All topics filled and mirrored."""
    settings = Configuration.read(mirror_maker.properties_path).resolve()
    with closing(Site({"primary": source, "backup": target}, settings)) as site:
        for variant in variants:
            fill(site, variant)
        mirror_maker.start()
        for variant in variants:
            begin_from_latest(site, mirror_maker, variant)
        for variant in variants:
            site.write(variant, variant.topic(BEHIND), rounds=BEHIND_ROUNDS - 1)
            site.contents["primary"].create_topic(variant.topic(LATER), PARTITIONS)
            site.write(variant, variant.topic(LATER), partitions=[0])
        for variant in variants:
            site.wait_until_mirrored(mirror_maker, variant)
        yield site


def fill(site: Site, variant: Variant) -> None:
    """Create the topics on the primary cluster and fill them, before anything is mirrored."""
    primary, backup = site.sides(variant.forth)
    for subject in (REPLICATED, AUTO_SYNC, EMPTY_PARTITION, RESTARTED, BEHIND):
        primary.create_topic(variant.topic(subject), PARTITIONS)
        filled = range(PARTITIONS - 1 if subject == EMPTY_PARTITION else PARTITIONS)
        site.write(variant, variant.topic(subject), partitions=filled)
    primary.create_topic(variant.topic(NOTHING_YET))
    if not variant.keeps_names:
        backup.create_topic(variant.topic(REPLICATED), PARTITIONS)
        site.write(variant, variant.topic(REPLICATED), cluster="backup")
    for name, (partitions, filled_one) in RENAMED.items():
        topic = variant.renamed(name)
        primary.create_topic(topic, partitions)
        site.write(variant, topic, partitions=[filled_one])
    primary.create_topic(variant.topic_from_latest, PARTITIONS)
    site.write(variant, variant.topic_from_latest)


def begin_from_latest(site: Site, mirror_maker: MirrorMaker, variant: Variant) -> None:
    """Write one record after the other until that mirror has begun, and ten more."""
    topic = variant.topic_from_latest
    _, backup = site.sides(variant.from_latest)
    remote = site.remote(variant.from_latest, topic)
    mirror_maker.wait_for_topic(backup.bootstrap, remote, PARTITIONS)
    deadline = time.monotonic() + READ_SECONDS
    while any(backup.log_range(remote, number)[1] == 0 for number in range(PARTITIONS)):
        assert time.monotonic() < deadline, f"{remote} stays empty"
        site.write(variant, topic, per_round=1)
    site.write(variant, topic)
