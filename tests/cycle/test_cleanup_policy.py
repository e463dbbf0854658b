"""Which target topics are known not to be compacted, and how that reaches the translation rule."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.memory_flows import Estate, flow
from tsoffset.cycle import partition as cycle_partition
from tsoffset.cycle.cleanup_policy import is_compacted, topics_not_compacted
from tsoffset.cycle.rounds import translate_partitions, translate_with_cache
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.model import Failed, FailureKind, Operation, Resource, TopicPartition
from tsoffset.rule.evidence import Evidence
from tsoffset.testing.memory_cluster import Verb

TIMEOUT = Failed(FailureKind.TIMEOUT, "made to fail")
TRANSLATE: tuple[Callable[..., Any], ...] = (translate_partitions, translate_with_cache)
Told = dict[tuple[str, int], bool]


@pytest.fixture
def told(monkeypatch) -> Told:
    """`not_compacted` of each target partition's evidence, as it is made."""
    found: Told = {}

    def noted(source: TopicPartition, target: TopicPartition, *more: Any, **named: Any) -> Evidence:
        evidence = Evidence(source, target, *more, **named)
        found[target.topic, target.partition] = evidence.not_compacted
        return evidence

    monkeypatch.setattr(cycle_partition, "Evidence", noted)
    return found


def estate(policies: dict[str, str], partitions: int = 1) -> Estate:
    """Topics of A by name, whose copies on B have these policies."""
    world = Estate()
    for topic, policy in policies.items():
        world.write(topic, 20, partitions=partitions)
        world["B"].create_topic(f"A.{topic}", partitions, configs={"cleanup.policy": policy})
        world.mirror(topic)
    return world


def work_of(world: Estate, *, failback: bool = False) -> list[PartitionWork]:
    """A position in each partition of A's topics."""
    return [
        PartitionWork(
            TopicPartition(topic, number),
            TopicPartition(f"A.{topic}", number),
            (7,),
            is_remote_topic=not failback,
            failback=failback,
        )
        for topic in sorted(world["A"].topics())
        for number in world["A"].partition_numbers(topic)
    ]


def translate(
    how: Callable[..., Any],
    world: Estate,
    work: Sequence[PartitionWork],
    settings: FlowSettings | None = None,
) -> None:
    """Translate, and read all answers."""
    found = how(settings or flow(), world["A"], world["B"], work)
    if how is translate_partitions:
        assert len(list(found)) == len(work)


def asked(world: Estate, alias: str = "B") -> list[tuple[object, ...]]:
    """The topics of each request for configurations."""
    return [it.items for it in world[alias].requests if it.verb is Verb.TOPIC_CONFIGS]


@pytest.mark.parametrize(
    ("configs", "compacted"),
    [
        ({"cleanup.policy": "delete"}, False),
        ({"cleanup.policy": "compact"}, True),
        ({"cleanup.policy": "compact,delete"}, True),
        ({"cleanup.policy": "delete, compact"}, True),
        ({"cleanup.policy": ""}, False),
        ({"cleanup.policy": "rewrite"}, None),
        ({"cleanup.policy": "delete,rewrite"}, None),
        ({"retention.ms": "1"}, None),
        (TIMEOUT, None),
    ],
)
def test_a_topic_is_not_compacted_where_its_policy_says_so(configs, compacted):
    """A missing policy, and one with an unknown word, do not tell."""
    assert is_compacted(configs) is compacted


@pytest.mark.parametrize("how", TRANSLATE)
def test_evidence_knows_which_target_topics_are_not_compacted(how, told):
    """Each partition has the fact of its own topic. Where it is not told, by a topic that fails or
    without the right, translations go on without it."""
    policies = {"plain": "delete", "state": "compact", "both": "compact,delete"}
    world = estate(policies | {"failing": "delete", "secret": "delete"})
    world["B"].fail(TIMEOUT, verb=Verb.TOPIC_CONFIGS, topic="A.failing")
    world["B"].allowed.restrict(Resource.TOPIC, "A.secret", Operation.READ)
    translate(how, world, work_of(world))
    assert told.pop(("A.plain", 0))
    assert told == dict.fromkeys(
        ((f"A.{topic}", 0) for topic in ("state", "both", "failing", "secret")), False
    )


@pytest.mark.parametrize("how", TRANSLATE)
def test_an_unreachable_target_ends_no_translation_early(how, told):
    """Its policies are not known; the positions fail one by one, as without this request."""
    world = estate({"plain": "delete"})
    work = work_of(world)
    world["B"].unreachable = True
    translate(how, world, work)
    assert told == {("A.plain", 0): False}


@pytest.mark.parametrize("how", TRANSLATE)
def test_policies_are_asked_for_once_whatever_the_number_of_partitions(how, told):
    """One request for a batch of partitions, with each target topic once; none to the source."""
    world = estate({"orders": "delete", "payments": "delete"}, partitions=50)
    translate(how, world, work_of(world))
    assert asked(world) == [("A.orders", "A.payments")]
    assert asked(world, "A") == []
    assert len(told) == 100
    assert set(told.values()) == {True}


@pytest.mark.parametrize("how", TRANSLATE)
@pytest.mark.parametrize(
    ("settings", "failback"),
    [
        (TranslationSettings(proof="timestamps"), False),
        (TranslationSettings(expect=SAME_OFFSETS), False),
        (TranslationSettings(), True),
    ],
)
def test_policies_are_not_asked_for_where_no_proof_uses_them(how, settings, failback, told):
    """Timestamps alone prove nothing, equal offsets and failback have proofs of their own."""
    world = estate({"orders": "delete"})
    translate(how, world, work_of(world, failback=failback), flow(translation=settings))
    assert asked(world) == []
    assert told == {("A.orders", 0): False}


def test_only_topics_of_forward_partitions_are_asked_for():
    """A flow can have both, and a batch without any partition asks nothing."""
    world = estate({"orders": "delete", "payments": "delete"})
    forward, _ = work_of(world)
    _, back = work_of(world, failback=True)
    settings = TranslationSettings()
    assert topics_not_compacted(settings, world["B"], [forward, back]) == {"A.orders"}
    assert topics_not_compacted(settings, world["B"], []) == frozenset()
    assert asked(world) == [("A.orders",)]
