"""Who of several instances leads, as far as one of them can know.

What the coordinator does about it is in tests/daemon/test_election_on_brokers.py.
"""

import json

import pytest

from tests.memory_flows import StillTime, flow
from tsoffset.cluster import Assignment, MemberState
from tsoffset.daemon.election import AGREED, SESSION_SECONDS, Election, agree, choose_leader
from tsoffset.daemon.status import Instance
from tsoffset.errors import ConfigurationError, ConfigurationProblem
from tsoffset.model import Failed, FailureKind

FLOW = flow(leader_election=True)
OLD, NEW, NEWEST = (Instance(name, f"host-{name}", 1, at) for at, name in enumerate("abc"))
AWAY = Failed(FailureKind.UNREACHABLE, "stay in group g, cluster B: away; wait", retry_seconds=1)
REFUSED = Failed(FailureKind.AUTHORIZATION, "join group g, cluster B: not allowed; grant READ")


class ScriptedMembership:
    """A membership whose answers are those that a test says, each after `seconds`; what it was
    told is in `said`. With `others` in the group it is we who say who leads."""

    def __init__(self, time: StillTime) -> None:
        self.time = time
        self.others: dict[str, bytes] = {}
        self.answers: list[MemberState | Failed] = []
        self.seconds = 0.0
        self.said: list[str] = []

    def join(self, metadata, assign):
        self.said.append(f"join {'holding' if json.loads(metadata)['leads'] else ''}".strip())
        if self.answers:
            return self.answers.pop(0)
        return Assignment(assign({**self.others, "us": metadata}), self.time.now)

    def beat(self):
        self.said.append("beat")
        self.time.now += self.seconds
        return self.answers.pop(0) if self.answers else MemberState.MEMBER

    def leave(self):
        self.said.append("leave")

    def close(self):
        self.said.append("close")


@pytest.fixture
def time() -> StillTime:
    return StillTime()


@pytest.fixture
def coordinator(time) -> ScriptedMembership:
    return ScriptedMembership(time)


@pytest.fixture
def election(coordinator, time) -> Election:
    """That of NEW."""
    return Election(FLOW, NEW, enter=lambda *_: coordinator, now=time.monotonic)


def metadata(instance: Instance, *, leads: bool = False, fails: bool = False) -> bytes:
    facts = {name: getattr(instance, name) for name in Instance.__slots__}
    said = {"version": 1, "instance": facts, "leads": leads, "fails": fails}
    return json.dumps(said).encode()


# --- who is chosen ------------------------------------------------------------------------


@pytest.mark.parametrize("there", [(OLD, NEW, NEWEST), (NEWEST, OLD, NEW)])
def test_the_lead_stays_where_it_is(there):
    """Whoever joins, and in whichever order they are listed."""
    assert choose_leader([(one, one is OLD, False) for one in there]) is OLD


def test_the_one_that_started_last_takes_over():
    """Of instances that are replaced one by one it is the one that stays."""
    assert choose_leader([(one, False, False) for one in (NEW, NEWEST, OLD)]) is NEWEST
    assert choose_leader([]) is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"instance": 3}', b"[" * 100_000])
def test_a_member_that_says_nothing_of_use_is_left_out(content):
    """It does not lead, and does not keep others from leading."""
    told = json.loads(agree({"odd": content, "us": metadata(NEW)}))
    assert told["leader"] == NEW.id
    assert [one["id"] for one in told["instances"]] == [NEW.id]


def test_what_a_later_version_adds_is_passed_over():
    """In a rolling deployment both versions are in the group."""
    facts = json.loads(metadata(OLD, leads=True))
    facts["version"], facts["mood"], facts["instance"]["shoe_size"] = 2, "good", 43
    told = json.loads(agree({"later": json.dumps(facts).encode(), "us": metadata(NEW)}))
    assert told["leader"] == OLD.id


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://sync-2:8083", "https://sync-2:8083"),
        ("http://[2001:db8::1]:8083", "http://[2001:db8::1]:8083"),
        (None, None),
        ("javascript:alert(1)", None),
        ("https://user:password@evil.example", None),
        ("https://sync-2:8083/\x1b[2J", None),
    ],
)
def test_an_address_of_another_instance_is_one(url, kept):
    """Whoever is in the group may have written it, and people follow it."""
    facts = json.loads(metadata(OLD))["instance"]
    del facts["url"]
    told = {"leader": None, "instances": [{**facts, "url": url}, facts]}
    found, without = AGREED.validate_python(told).instances
    assert (found.url, without) == (kept, OLD)


# --- how long one leads -------------------------------------------------------------------


def test_nobody_leads_before_the_group_has_agreed(election):
    assert (election.leads(), election.leader(), election.others()) == (False, None, ())
    assert election.problem() is None


def test_a_follower_knows_who_leads(election, coordinator):
    coordinator.others = {"x": metadata(OLD, leads=True), "y": metadata(NEWEST)}
    election.step()
    assert (election.leads(), election.leader()) == (False, OLD)
    assert election.others() == (OLD, NEWEST)


def test_the_lead_ends_with_the_session(election, coordinator, time):
    """Counted from when the last heartbeat that was answered was sent: what the coordinator
    counts begins later."""
    election.step()
    coordinator.seconds = 2.0
    election.step()
    coordinator.answers = [AWAY, AWAY]
    coordinator.seconds = 0.0
    election.step()
    assert election.leads()
    assert election.problem() is None
    time.now = SESSION_SECONDS - 0.01
    assert election.leads()
    time.now = SESSION_SECONDS
    assert not election.leads()
    assert (election.leader(), election.others()) == (None, ())
    assert election.problem() == AWAY.message


def test_a_member_that_is_still_known_leads_again(election, coordinator, time):
    """A coordinator that was away, and then accepts a heartbeat of the same generation, has not
    chosen another leader meanwhile."""
    election.step()
    coordinator.answers = [AWAY]
    time.now = 100.0
    election.step()
    assert not election.leads()
    election.step()
    assert election.leads()
    assert election.problem() is None


def test_the_lead_lasts_while_others_join(election, coordinator):
    """We join again, say that we have it, and keep it."""
    election.step()
    coordinator.answers = [MemberState.REBALANCING]
    election.step()
    assert election.leads()
    coordinator.others = {"y": metadata(NEWEST)}
    election.step()
    assert election.leads()
    assert election.others() == (NEWEST,)
    assert coordinator.said == ["join", "beat", "join holding"]


@pytest.mark.parametrize("while_joining", [False, True])
def test_a_member_that_was_removed_stops_at_once(election, coordinator, while_joining):
    """Another member may lead by now: it joins again, without a claim."""
    election.step()
    answers = (
        [MemberState.REBALANCING, MemberState.REMOVED] if while_joining else [MemberState.REMOVED]
    )
    coordinator.answers = list(answers)
    for _ in answers:
        election.step()
    assert not election.leads()
    coordinator.others = {"x": metadata(OLD, leads=True)}
    election.step()
    assert coordinator.said[-1] == "join"
    assert election.leader() == OLD


def test_a_refusal_is_not_repeated_every_second(election, coordinator):
    """What somebody has to mend waits longer than what may pass, and a login ever longer: it may
    lock an account."""
    login = Failed(FailureKind.AUTHENTICATION, "wrong password")
    coordinator.answers = [AWAY, REFUSED, *[login] * 6]
    assert [election.step() for _ in range(8)] == [1, 30, 30, 60, 120, 240, 300, 300]
    assert election.problem() == login.message
    election.step()
    coordinator.answers = [login]
    assert election.step() == 30


def test_a_mistake_of_ours_is_a_problem_and_no_end(election, coordinator):
    coordinator.answers = [None]
    election.step()
    assert "report this" in (election.problem() or "")
    election.step()
    assert election.leads()


def test_settings_that_cannot_be_used_are_a_problem(time):
    """They are those of every cycle, too; the daemon lives on."""

    def enter(*_):
        raise ConfigurationError((ConfigurationProblem("B.client", "x", "must be y"),))

    election = Election(FLOW, NEW, enter=enter, now=time.monotonic)
    election.step()
    assert election.problem() == "B.client = x: must be y"
    election.close()


def test_a_new_password_is_used_without_a_restart(coordinator, time):
    """Once the lead is over in which the old one was refused; the new member has no claim."""
    passwords, used = iter(("old", "new")), []

    def enter(settings, *_):
        used.append(settings)
        return coordinator

    election = Election(FLOW, NEW, target=lambda: next(passwords), enter=enter, now=time.monotonic)
    election.step()
    coordinator.answers = [REFUSED, REFUSED]
    election.step()
    assert (election.leads(), used) == (True, ["old"])
    time.now = SESSION_SECONDS
    election.step()
    election.step()
    assert (election.leads(), used) == (True, ["old", "new"])
    assert coordinator.said == ["join", "beat", "beat", "close", "join"]


@pytest.mark.parametrize(("answers", "left"), [([], True), ([AWAY], False)])
def test_who_ends_gives_up_the_lead_and_leaves(election, coordinator, answers, left):
    """A coordinator that was away just now is not waited for."""
    election.step()
    coordinator.answers = list(answers)
    election.step()
    election.close()
    assert not election.leads()
    assert coordinator.said[2:] == (["leave", "close"] if left else ["close"])


def test_an_instance_whose_cycle_hangs_does_not_lead(election, coordinator):
    """Another one leads at once; when the cycle has ended, this one joins without a claim."""
    hangs = [True, True, False]
    election.step()
    assert election.leads()
    election.leave_while(lambda: hangs.pop(0))
    for _ in range(2):
        election.step()
        assert not election.leads()
        assert "restart this process" in (election.problem() or "")
    coordinator.others = {"x": metadata(OLD, leads=True)}
    election.step()
    assert (election.leader(), election.problem()) == (OLD, None)
    assert coordinator.said == ["join", "leave", "leave", "join"]


def test_an_instance_whose_cycles_fail_gives_way_once(election, coordinator):
    """It joins without a claim, and another one leads. If those of all fail, the lead does not go
    round: this one gives way again only after a cycle that had a result."""
    fails = [True]
    election.step()
    election.give_way_if(lambda: fails[-1])
    coordinator.others = {"x": metadata(OLD)}
    election.step()
    assert election.leader() == OLD
    coordinator.others = {"x": metadata(OLD, fails=True)}
    coordinator.answers = [MemberState.REBALANCING]
    for _ in range(4):
        election.step()
    assert election.leads()
    assert coordinator.said == ["join", "join", "beat", "join", "beat", "beat"]
    coordinator.others = {"x": metadata(OLD)}
    for now in (False, True):
        fails.append(now)
        election.step()
    assert election.leader() == OLD
