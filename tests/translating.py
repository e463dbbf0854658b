"""Translating positions of a random world, as `tsoffset.sync` does."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import structlog

from tests.replication_model import SOURCE, TARGET, World
from tsoffset.model import Failed, Isolation, Translated
from tsoffset.policy import DefaultGroupFilter, DefaultReplicationPolicy, DefaultTopicFilter
from tsoffset.settings import ClusterSettings, FlowSettings, TranslationSettings
from tsoffset.sync import PartitionWork, translate_partitions


def flow(
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    translation: TranslationSettings | None = None,
) -> FlowSettings:
    return FlowSettings(
        ClusterSettings("A", ("127.0.0.1:1",)),
        ClusterSettings("B", ("127.0.0.1:2",)),
        DefaultReplicationPolicy(),
        DefaultGroupFilter(),
        DefaultTopicFilter(),
        isolation=isolation,
        translation=translation or TranslationSettings(),
    )


def translations(
    world: World,
    offsets: Sequence[int],
    settings: TranslationSettings | None = None,
    *,
    remote_name: bool = True,
) -> dict[int, Translated]:
    """The answers for these positions, asked together; a position without one is left out.

    Where the world's replicator rewrites values, they do not count for a match.
    """
    settings = settings or TranslationSettings()
    if world.kind.rewrites:
        settings = replace(settings, match=frozenset({"timestamp", "key"}))
    work = PartitionWork(SOURCE, TARGET, tuple(offsets), remote_name=remote_name)
    found = {}
    for position in translate_partitions(
        flow(world.isolation, settings), world.source_cluster, world.target_cluster, [work]
    ):
        outcome = position.translation.outcome
        assert not isinstance(outcome, Failed), outcome
        if isinstance(outcome, Translated):
            found[position.offset] = outcome
    return found


def silence_logs() -> None:
    """Let only what is worth a warning be logged."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
