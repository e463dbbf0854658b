"""Two instances never lead at once, whatever is lost or late between them and the coordinator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_flows import StillTime, flow
from tests.random_examples import scaled
from tsoffset.cluster import Assignment, MemberState
from tsoffset.daemon.election import SESSION_SECONDS, Election, agree
from tsoffset.daemon.status import Instance
from tsoffset.model import Failed, FailureKind

STEP_SECONDS = 0.5
AWAY = Failed(FailureKind.UNREACHABLE, "away", retry_seconds=1.0)


@dataclass
class Known:
    """What the coordinator knows of a member."""

    ends: float
    metadata: bytes = b""
    has_joined: bool = False
    given: bytes | None = None


@dataclass
class Coordinator:
    """One group, as the classic protocol has it: a member is given up exactly when its session
    ends, and those that do not join again, exactly when the time for that does. (A member that
    would wait for others to join is told to ask again.)"""

    time: StillTime
    members: dict[str, Known] = field(default_factory=dict)
    generation: int = 0
    joining_ends: float | None = None
    ids: int = 0

    def tick(self) -> None:
        now = self.time.now
        for name, known in list(self.members.items()):
            if now >= known.ends and not (self.joining_ends and known.has_joined):
                self.remove(name)
        if self.joining_ends is None:
            return
        if now >= self.joining_ends:
            self.members = {name: one for name, one in self.members.items() if one.has_joined}
        if all(one.has_joined for one in self.members.values()):
            self.joining_ends = None
            self.generation += 1
            self.assign()

    def assign(self) -> None:
        """The first member says who leads. (That it may be lost before it does is one more
        generation.)"""
        if self.members:
            content = agree({name: one.metadata for name, one in self.members.items()})
        for known in self.members.values():
            known.given, known.ends = content, self.time.now + SESSION_SECONDS

    def remove(self, name: str) -> None:
        if self.members.pop(name, None) is not None:
            self.have_all_join()

    def have_all_join(self) -> None:
        if self.joining_ends is None:
            self.joining_ends = self.time.now + SESSION_SECONDS
            for known in self.members.values():
                known.has_joined, known.given = False, None

    def join(self, name: str, metadata: bytes) -> tuple[str, int, bytes | None] | None:
        """Its id, the generation, and what it is given, if that is known; None for a stranger."""
        if not name:
            self.ids += 1
            name = f"m{self.ids}"
            self.members[name] = Known(0.0)
            self.have_all_join()
        elif name not in self.members:
            return None
        known = self.members[name]
        known.ends = self.time.now + SESSION_SECONDS
        if known.given is None:
            self.have_all_join()
            known.metadata, known.has_joined = metadata, True
            self.tick()
        return name, self.generation, known.given

    def beat(self, name: str, generation: int) -> MemberState:
        if name not in self.members:
            return MemberState.REMOVED
        if self.joining_ends is not None:
            self.members[name].ends = self.time.now + SESSION_SECONDS
            return MemberState.REBALANCING
        if generation != self.generation:
            return MemberState.REMOVED
        self.members[name].ends = self.time.now + SESSION_SECONDS
        return MemberState.MEMBER


class ElectionWorld:
    """Instances that start, hang, are cut off, suspended and ended by chance; their coordinator,
    and the network between them."""

    def __init__(self, chance: Random) -> None:
        self.time = StillTime()
        self.chance = chance
        self.coordinator = Coordinator(self.time)
        self.troubled = True
        self.numbers = count()
        self.hosts = [Host(self) for _ in range(3)]

    def wait(self, steps: int) -> None:
        for _ in range(steps):
            self.time.now += STEP_SECONDS
            self.coordinator.tick()
            self.check()

    def check(self) -> None:
        assert len(self.leading()) <= 1

    def leading(self) -> list["Host"]:
        return [host for host in self.hosts if host.election.leads()]

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            for host in self.chance.sample(self.hosts, len(self.hosts)):
                host.step_if_due()
                self.check()
            self.wait(1)


class Host:
    """Where an instance runs, one after the other."""

    def __init__(self, world: ElectionWorld) -> None:
        self.world = world
        self.begin()

    def begin(self) -> None:
        self.line = Line(self.world)
        instance = Instance(str(next(self.world.numbers)), "host", 1, self.world.time.now)
        self.election = Election(
            flow(leader_election=True),
            instance,
            enter=lambda *_: self.line,
            now=self.world.time.monotonic,
        )
        self.election.leave_while(lambda: self.world.troubled and self.world.chance.random() < 0.02)
        self.election.give_way_if(self.fails)
        self.due = 0.0

    def fails(self) -> bool:
        return self.world.troubled and self.world.chance.random() < 0.05

    def step_if_due(self) -> None:
        world = self.world
        if world.time.now < self.due:
            return
        if world.troubled and world.chance.random() < 0.02:
            self.election.close()
            self.begin()
            return
        self.due = world.time.now + self.election.step()
        if world.troubled and world.chance.random() < 0.05:
            self.due += world.chance.uniform(0, 20)  # suspended


class Line:
    """A membership whose requests, or the answers to them, may be lost or late."""

    def __init__(self, world: ElectionWorld) -> None:
        self.world = world
        self.name, self.generation = "", -1
        self.cut_until = 0.0

    def over(self, ask: Callable[[], object]) -> object:
        """What is answered; AWAY where the request or the answer is lost."""
        world, chance = self.world, self.world.chance
        if not world.troubled:
            return ask()
        if chance.random() < 0.03:
            self.cut_until = world.time.now + chance.uniform(0, 30)
        world.wait(chance.choice((0, 0, 0, 1, 4)))
        if world.time.now < self.cut_until or chance.random() < 0.05:
            return AWAY
        answer = ask()
        world.check()
        world.wait(chance.choice((0, 0, 0, 1, 4)))
        return AWAY if chance.random() < 0.05 else answer

    def join(self, metadata, assign):
        joined = self.over(lambda: self.world.coordinator.join(self.name, metadata))
        if joined is AWAY:
            return AWAY
        if joined is None:
            self.name = ""
            return MemberState.REMOVED
        self.name, self.generation, _ = joined
        asked_at = self.world.time.now
        given = self.over(self.sync)
        return given if isinstance(given, MemberState | Failed) else Assignment(given, asked_at)

    def sync(self):
        coordinator = self.world.coordinator
        known = coordinator.members.get(self.name)
        if known is None:
            self.name = ""
            return MemberState.REMOVED
        if known.given is None or self.generation != coordinator.generation:
            return MemberState.REBALANCING
        known.ends = self.world.time.now + SESSION_SECONDS
        return known.given

    def beat(self):
        answer = self.over(lambda: self.world.coordinator.beat(self.name, self.generation))
        if answer is MemberState.REMOVED:
            self.name = ""
        return answer

    def leave(self):
        self.over(lambda: self.world.coordinator.remove(self.name))
        self.name = ""

    def close(self): ...


@settings(max_examples=scaled(100))
@given(st.integers(0, 2**32))
def test_two_never_lead_and_one_does_once_all_is_well(seed):
    """Whoever is late, cut off, suspended, ended or new. After that one leads, and stays."""
    world = ElectionWorld(Random(seed))
    world.go_on(300)
    world.troubled = False
    world.go_on(120)
    (leader,) = world.leading()
    world.go_on(20)
    assert world.leading() == [leader]
