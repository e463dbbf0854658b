"""Elections of a flow's leader, held by real coordinators."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient

from tests.kafka.test_versions import KRAFT, OLDEST, ZOOKEEPER
from tests.memory_flows import flow
from tests.processes import stopped
from tests.scenarios.flows import member
from tests.secured import PASSWORDS
from tests.waiting import wait_until
from tsoffset.daemon.election import SESSION_SECONDS, Election
from tsoffset.daemon.status import Instance
from tsoffset.flow.security import PasswordLogin, Security
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.kafka.membership import KafkaMembership
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.model import Failed, FailureKind

pytestmark = pytest.mark.integration

OLD, NEW, NEWEST_STARTED = (Instance(name, f"host-{name}", 1, at) for at, name in enumerate("abc"))


class Machine(KafkaMembership):
    """A membership of a machine that can be cut off from the network, which no broker is told."""

    cut = False

    def beat(self):
        if self.cut:
            self.close()
            return Failed(FailureKind.UNREACHABLE, "cut off", retry_seconds=1.0)
        return super().beat()

    def leave(self):
        if not self.cut:
            super().leave()


class Part(Election):
    """The part of one machine in an election."""

    def __init__(self, flow: FlowSettings, instance: Instance, rivals: list["Part"]) -> None:
        self.rivals = rivals
        self.times_led = 0
        self.clashes = 0

        self.machine = Machine(flow.target, flow.election_group, SESSION_SECONDS)
        super().__init__(flow, instance, enter=lambda *_: self.machine)

    def step(self) -> float:
        """One that gains the lead must not find another with it."""
        led = self.leads()
        pause = super().step()
        if self.leads() and not led:
            self.times_led += 1
            self.clashes += sum(one.leads() for one in self.rivals if one is not self)
        return pause


class Electing:
    """The election of one flow, whose instances begin one by one."""

    def __init__(self, flow: FlowSettings, stack: ExitStack) -> None:
        self.flow = flow
        self.parts: list[Part] = []
        self._stack = stack

    def begin(self, instance: Instance) -> Part:
        """An instance that takes part, once it knows who leads."""
        part = self._stack.enter_context(closing(Part(self.flow, instance, self.parts)))
        self.parts.append(part)
        part.start()
        wait_until(lambda: part.leader() is not None, "the instance knows who leads")
        return part

    def leading(self) -> list[Part]:
        found = [part for part in self.parts if part.leads()]
        # Between two questions the lead may pass on: those who lead at once do so still.
        if len(found) > 1:
            found = [part for part in found if part.leads()]
        assert len(found) <= 1, "two lead"
        return found

    def wait_for(self, part: Part) -> None:
        """Wait until it leads, and see that no two do on the way."""
        wait_until(lambda: self.leading() == [part], "the lead is where it belongs")
        assert not any(one.clashes for one in self.parts)


Hold = Callable[[str], Electing]


@pytest.fixture
def hold(unique) -> Iterator[Hold]:
    """A function that holds an election of a new flow into the cluster at an address."""
    with ExitStack() as stack:

        def start(bootstrap):
            into = ClusterSettings("B", (bootstrap,))
            return Electing(replace(flow(unique("A")), target=into, leader_election=True), stack)

        yield start


@pytest.fixture
def electing(hold, target_broker) -> Electing:
    """An election on the shared target."""
    return hold(target_broker.bootstrap)


def test_who_leaves_hands_over_at_once(electing):
    """The lead goes once, to the one that started last, though an older one may be replaced
    next; no member waits for a session to end."""
    first, older, newest = map(electing.begin, (NEW, OLD, NEWEST_STARTED))
    wait_until(lambda: len(older.others()) == 2, "all know each other")
    first.close()
    assert not first.leads()
    electing.wait_for(newest)
    older.close()
    wait_until(lambda: newest.others() == (), "the last one knows that it is alone")
    assert newest.leads()
    assert (newest.times_led, older.times_led) == (1, 0)


def test_whose_cycles_fail_gives_the_lead_to_another(electing):
    """To one whose cycles do not; if those of both do, to the one that started last."""
    newer, older = map(electing.begin, (NEW, OLD))
    for part, then in ((newer, older), (older, newer)):
        part.give_way_if(lambda: True)
        electing.wait_for(then)


@pytest.mark.thorough
def test_who_is_cut_off_stops_before_another_begins(electing):
    """It counts its session from an earlier moment than the coordinator, which hears nothing. Back
    on the network it is told that it was removed, and follows."""
    first, second = electing.begin(OLD), electing.begin(NEW)
    first.machine.cut = True
    electing.wait_for(second)
    assert first.problem() == "cut off"
    first.machine.cut = False
    wait_until(lambda: first.leader() == NEW, "it follows")
    assert (first.leads(), first.problem()) == (False, None)
    electing.wait_for(second)


@pytest.mark.thorough
def test_who_ends_while_it_joins_holds_nobody_up(electing):
    """It waits for a member that is away, and still ends at once."""
    first = electing.begin(OLD)
    first.machine.cut = True
    joining = Part(electing.flow, NEW, electing.parts)
    joining.start()
    wait_until(lambda: joining.machine._member_id != "", "the coordinator knows the new one")
    joining.close()
    assert not joining._thread.is_alive()
    newest = electing.begin(NEWEST_STARTED)
    electing.wait_for(newest)
    assert newest.others() == ()


@pytest.mark.thorough
def test_a_coordinator_that_stops_and_comes_back(hold, tmp_path):
    """A restart within the session changes nothing; a broker that hangs for longer leaves the flow
    without a leader, with a sentence, and the same one leads when it answers again."""
    with EmbeddedBroker(tmp_path, name="coordinator") as broker:
        electing = hold(broker.bootstrap)
        first, second = electing.begin(OLD), electing.begin(NEW)
        broker.restart()
        wait_until(lambda: bool(electing.leading()), "somebody leads")
        with stopped(broker.pid):
            wait_until(lambda: first.problem() is not None, "the first one notices")
            wait_until(lambda: second.problem() is not None, "the second one notices")
            assert electing.leading() == []
            assert "cluster B" in (first.problem() or "")
        wait_until(lambda: bool(electing.leading()), "somebody leads again")
        wait_until(lambda: first.problem() is None and second.problem() is None, "all is well")
        assert not any(one.clashes for one in electing.parts)


def test_the_group_is_no_group_to_sync(electing, target_broker):
    """Flows that have this cluster as their source see nothing of it, with members or without;
    other tools do."""
    group = electing.flow.election_group

    def listed():
        with KafkaCluster(ClusterSettings("B", (target_broker.bootstrap,))) as cluster:
            return group in cluster.groups().groups

    part = electing.begin(OLD)
    with closing(KafkaAdminClient(bootstrap_servers=target_broker.bootstrap)) as admin:
        assert group in {one["group_id"] for one in admin.list_groups()}
    assert not listed()
    part.close()
    assert not listed()


def test_a_group_of_somebody_else_is_left_alone(electing, target, unique):
    """No member leads, and the message says why."""
    topic = target.create_topic(unique("topic"))
    with member(target, electing.flow.election_group, topic):
        part = Part(electing.flow, OLD, [])
        with closing(part):
            part.start()
            wait_until(lambda: part.problem() is not None, "it is told")
            assert "another application uses" in str(part.problem())
            assert not part.leads()


@pytest.mark.thorough
def test_the_right_to_read_the_group_is_enough(secured, unique):
    """Without it no member leads, and the message says what to grant."""
    into = ClusterSettings(
        "B",
        (secured.broker.bootstrap_at("SASL"),),
        security=Security(login=PasswordLogin("PLAIN", "alice", PASSWORDS["alice"])),
    )
    guarded = replace(flow(unique("A")), target=into, leader_election=True)
    with closing(Part(guarded, OLD, [])) as part:
        part.start()
        wait_until(lambda: part.problem() is not None, "it is told")
        assert f"group {guarded.election_group}, cluster B: not authorized" in str(part.problem())
    secured.grant("alice", "group", guarded.election_group, "read")
    with closing(Part(guarded, OLD, [])) as part:
        part.start()
        wait_until(part.leads, "it leads")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "version", [KRAFT, pytest.param(ZOOKEEPER, marks=pytest.mark.long), OLDEST]
)
def test_brokers_of_all_versions_hold_elections(hold, broker_of, version):
    electing = hold(broker_of(version).bootstrap)
    first, second = electing.begin(OLD), electing.begin(NEW)
    first.close()
    electing.wait_for(second)
