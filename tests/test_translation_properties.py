"""What holds for every translation, whatever the logs: the promises of docs/design.md section 1."""

import os
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.replication_model import SOURCE, TARGET, TIMESTAMPS, Kind, World, build
from tsoffset.model import Failed, Isolation, Precision, Translated
from tsoffset.policy import DefaultGroupFilter, DefaultReplicationPolicy, DefaultTopicFilter
from tsoffset.settings import ClusterSettings, FlowSettings
from tsoffset.sync import PartitionWork, translate_partitions

EXAMPLES = int(os.environ.get("TSOFFSET_PROPERTY_EXAMPLES", "1000"))

share = st.sampled_from((0.0, 0.3, 0.6))
kinds = st.builds(
    Kind,
    records=st.integers(0, 70),
    timestamps=st.sampled_from(TIMESTAMPS),
    twins=st.sampled_from((0.0, 0.05, 0.3, 0.6)),
    keys=st.sampled_from((0, 3, 12, 1000)),
    batch=st.sampled_from((1, 3, 10, 100)),
    transactions=st.booleans(),
    dropped=st.sampled_from((0.0, 0.0, 0.3)),
    repeats=st.sampled_from((0, 0, 1, 3)),
    unfinished_repeats=st.sampled_from((0, 1)),
    lag=share,
    foreign=st.sampled_from((0.0, 0.0, 0.2)),
    source_compacted=st.booleans(),
    target_compacted=st.booleans(),
    source_trimmed=share,
    target_trimmed=share,
    isolation=st.sampled_from(Isolation),
)


def flow(isolation: Isolation = Isolation.READ_UNCOMMITTED) -> FlowSettings:
    return FlowSettings(
        ClusterSettings("A", ("127.0.0.1:1",)),
        ClusterSettings("B", ("127.0.0.1:2",)),
        DefaultReplicationPolicy(),
        DefaultGroupFilter(),
        DefaultTopicFilter(),
        isolation=isolation,
    )


def translations(world: World, offsets: list[int]) -> dict[int, Translated]:
    work = PartitionWork(SOURCE, TARGET, tuple(offsets), remote_name=True)
    found = {}
    for position in translate_partitions(
        flow(world.isolation), world.source_cluster, world.target_cluster, [work]
    ):
        outcome = position.translation.outcome
        assert not isinstance(outcome, Failed), outcome
        if isinstance(outcome, Translated):
            found[position.offset] = outcome
    return found


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
@given(kinds, st.integers(0, 2**32))
def test_translations_are_safe_and_keep_their_bounds(kind: Kind, seed: int) -> None:
    """Never unsafe, never outside the log, never more re-reads than stated, none for exact.

    Where the source has lost a record that has an equal one, a bound can be too low still:
    what is gone cannot be told from what is there.
    """
    world = build(kind, seed)
    twin_lost = kind.twins and (kind.source_compacted or kind.source_trimmed)
    for committed, found in translations(world, list(world.positions())).items():
        place = (committed, found)
        assert world.target.start <= found.target_offset <= world.target.end, place
        assert world.is_safe(committed, found.target_offset), ("unsafe", place)
        assert found.reread_bound is not None
        rereads = world.rereads(committed, found.target_offset)
        assert twin_lost or rereads <= found.reread_bound, ("bound", rereads, place)
        assert (found.precision is Precision.EXACT) <= (found.reread_bound == 0), place


@settings(max_examples=max(50, EXAMPLES // 5), deadline=None)
@given(kinds, st.integers(0, 2**32), st.randoms())
def test_one_position_alone_agrees_where_it_is_exact(kind: Kind, seed: int, rng: object) -> None:
    """What the other positions of a partition ask changes cost, never an exact answer: two
    exact ones differ at most by records of others (where nothing is there twice)."""
    world = build(replace(kind, twins=0.0, repeats=0, unfinished_repeats=0), seed)
    offsets = list(world.positions())
    together = translations(world, offsets)
    for committed in offsets[:: max(1, len(offsets) // 5)]:
        alone = translations(world, [committed]).get(committed)
        with_others = together.get(committed)
        if alone is None or with_others is None:
            continue
        if {alone.precision, with_others.precision} == {Precision.EXACT}:
            low, high = sorted((alone.target_offset, with_others.target_offset))
            assert not world.first_images(low, high), (committed, alone, with_others)
