"""One round, from the first record to the last one that a consumer gets on the target."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from kafka import KafkaConsumer
from kafka.structs import OffsetAndMetadata

from tests.copies import CopiedPartition
from tests.scenarios.rounds.applications import Application, Writer
from tests.scenarios.rounds.foreign_clients import ForeignApplication
from tests.scenarios.rounds.plans import Ending, Plan, Trouble
from tests.scenarios.rounds.stage import RoundsTestbed, Synced, Syncing
from tests.waiting import wait_until

AnyApplication = Application | ForeignApplication


@dataclass(frozen=True, slots=True)
class GoneOver:
    """One group. `processed` and `got` are, by partition, the values with their offsets that
    it processed on the source and then got on the target; `committed` what the source has
    acknowledged. `last_sync` is the last cycle that had ended when it began on the target,
    None where there was none.
    """

    group: str
    processed: Mapping[int, Mapping[bytes, int]]
    got: Mapping[int, Mapping[bytes, int]]
    committed: Mapping[int, int]
    last_sync: Synced | None


@dataclass(frozen=True, slots=True)
class Played:
    """A round that is over, with the mirror complete: all that was written and may be read, with
    its copies, by partition."""

    plan: Plan
    logs: Mapping[int, CopiedPartition]
    cycles: Sequence[Synced]
    groups: Sequence[GoneOver]


def play(
    stage: RoundsTestbed, plan: Plan, kinds: Sequence[Callable[..., AnyApplication]] = ()
) -> Played:
    """Play the round: until a random moment records are written, processed, mirrored and
    synced at the same time; then the groups go on on the target. `kinds` makes each group's
    application, where it is not the ordinary one."""
    stage.prepare(plan)
    chance = plan.chance()
    with ExitStack() as stack:
        writer = Writer(stage.source, plan, chance)
        applications = [
            make(stage.source, group, plan, chance)
            for make, group in zip(
                kinds or [Application] * plan.groups, plan.group_names, strict=True
            )
        ]

        def committed() -> Mapping[tuple[str, int], int]:
            return {
                (one.group, partition): offset
                for one in applications
                for partition, offset in dict(one.committed).items()
            }

        syncing = stack.enter_context(Syncing(stage, plan, committed))
        trouble = stack.enter_context(_troubled(stage, plan))
        _until_the_moment(plan, chance, writer, applications, syncing, trouble)
        writer.finish()
        if plan.ending is Ending.FINAL:
            syncing.another()
        if plan.ending is not Ending.GOES_ON:
            syncing.stop()
        trouble.end()
        logs = {number: CopiedPartition(of_one) for number, of_one in writer.written.items()}
        wait_until(
            lambda: all(stage.is_copied(plan, number, one) for number, one in logs.items()),
            f"all that was written is on {stage.remote(plan)}",
        )
        groups = [_go_over(stage, plan, one, syncing) for one in applications]
        syncing.stop()
        return Played(plan, logs, syncing.done, groups)


class _Troubled:
    """What befalls the mirror, and its end, which may take as long as Java takes to start."""

    def __init__(self, stage: RoundsTestbed, plan: Plan, pool: ThreadPoolExecutor) -> None:
        self._mirror = stage.mirror
        self._trouble = plan.trouble
        self._pool = pool
        self._relieved: Future[None] | None = None

    def begin(self) -> None:
        match self._trouble:
            case Trouble.PAUSED:
                self._mirror.pause()
            case Trouble.KILLED:
                self._mirror.process.kill()
            case Trouble.RESTARTED:
                self._mirror.process.stop()
            case Trouble.NONE:
                pass

    def ease(self) -> None:
        """Begin to end it, and go on meanwhile."""
        if self._relieved is None:
            self._relieved = self._pool.submit(self._mirror.relieve)

    def end(self) -> None:
        self.ease()
        self._relieved.result()


@contextmanager
def _troubled(stage: RoundsTestbed, plan: Plan) -> Iterator[_Troubled]:
    with ThreadPoolExecutor(1) as pool:
        trouble = _Troubled(stage, plan, pool)
        try:
            yield trouble
        finally:
            trouble.end()


def _until_the_moment(
    plan: Plan,
    chance: Random,
    writer: Writer,
    applications: Sequence[AnyApplication],
    syncing: Syncing,
    trouble: _Troubled,
) -> None:
    """What happens up to the moment when the last group stops, step by step."""
    steps = chance.randint(30, 70)
    stops = {one: chance.randint(steps // 4, steps) for one in applications}
    begin_syncs = chance.randrange(steps // 4)
    end_syncs = chance.randint(steps // 2, steps)
    begin_trouble = chance.randint(steps // 4, steps)
    end_trouble = chance.randint(begin_trouble, 2 * steps)
    for step in range(steps + 1):
        if step == begin_syncs:
            syncing.start()
        if step == end_syncs and plan.ending is Ending.BEFORE:
            syncing.stop()
        if step == begin_trouble:
            trouble.begin()
        if step == end_trouble:
            trouble.ease()
        for one, last in stops.items():
            if step == last:
                one.stop()
        running = [one for one, last in stops.items() if step < last]
        match chance.choices(("write", "process", "rest"), (5, 7, 1))[0]:
            case "write":
                writer.write()
            case "process":
                for one in running:
                    one.step()
            case "rest" if syncing.going_on:
                syncing.another()


def _go_over(
    stage: RoundsTestbed, plan: Plan, application: AnyApplication, syncing: Syncing
) -> GoneOver:
    """Let the group go on on the target. While the syncs go on, too, they leave it alone: a
    member's group, and then one that has come further."""
    group, remote = application.group, stage.remote(plan)
    joins = plan.ending is Ending.GOES_ON
    last_sync = syncing.done[-1] if syncing.done else None
    with application.gone_over(stage.target, remote, joins=joins) as (consumer, got):
        if consumer is not None and joins:
            _hold_against_syncs(stage, consumer, group, syncing)
    return GoneOver(group, application.processed, got, application.committed, last_sync)


def _hold_against_syncs(
    stage: RoundsTestbed, consumer: KafkaConsumer, group: str, syncing: Syncing
) -> None:
    """Commit on the target, and see that the next sync does not move the group."""
    stands = {place: consumer.position(place) for place in consumer.assignment()}
    consumer.commit({place: OffsetAndMetadata(at, "", -1) for place, at in stands.items()})
    syncing.another()
    after = stage.target.committed_offsets(group)
    expected = {(place.topic, place.partition): (at, "") for place, at in stands.items()}
    assert after == expected, group
