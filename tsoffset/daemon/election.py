"""Electing the instance that runs a flow, with a consumer group on the flow's target cluster.

The instances are members of the group. The member that the coordinator appoints decides who leads:
the current leader, if it is still a member. An instance leads until its session ends. The session
starts when a heartbeat is sent that the coordinator answers, so it ends for the instance before it
ends for the coordinator.

Two instances may lead for a moment, after a process was suspended or a coordinator lost its state.
That is safe, because commits are safe without an election, too.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import structlog
from pydantic import AfterValidator, TypeAdapter, ValidationError

from tsoffset.cluster import MemberState
from tsoffset.daemon.flow_loop import Peers
from tsoffset.daemon.schedule import REFUSED_SECONDS
from tsoffset.daemon.status import Instance
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.kafka.membership import KafkaMembership
from tsoffset.model import Failed, FailureKind

log = structlog.get_logger(__name__)

SESSION_SECONDS = 10.0
BEAT_SECONDS = 3.0
# Wait before the next attempt: after a transient error, after an error that somebody has to fix,
# and after a change of the group. After each further refused login the wait doubles, up to
# REFUSED_SECONDS: each attempt may count towards the lock of an account.
_RETRY_SECONDS = 1.0
_RETRY_REFUSED_SECONDS = 30.0
_AT_ONCE_SECONDS = 0.1
# Longest wait for the thread in `close`.
_END_SECONDS = 5.0
# The URL is shown as a link, and any member of the group may have written it.
_URL = re.compile(r"https?://[0-9A-Za-z._\[\]:-]{1,260}")

T = TypeVar("T")

Enter = Callable[[ClusterSettings, str, float], KafkaMembership]
"""From a cluster, a group's name and the seconds of a session to a membership."""


def _check(instance: Instance) -> Instance:
    if not math.isfinite(instance.started_at):
        raise ValueError("no time")
    is_safe = instance.url is None or _URL.fullmatch(instance.url)
    return instance if is_safe else replace(instance, url=None)


_Instance = Annotated[Instance, AfterValidator(_check)]


@dataclass(frozen=True, slots=True)
class Member:
    """What a member tells the others; `fails` is true if its cycles do."""

    instance: _Instance
    leads: bool = False
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Agreed:
    """What the members agreed on: the id of the leader, and the members by their start."""

    leader: str | None
    instances: tuple[_Instance, ...]


MEMBER, AGREED = TypeAdapter(Member), TypeAdapter(Agreed)


class Election(Peers):
    """This process in the election of one flow's leader. `start` starts its thread; all methods may
    be called from any thread.

    `target` reads the secrets and returns the flow's target; without it, that of `flow` is used. It
    is called at the start, and again after the target has refused these settings."""

    def __init__(
        self,
        flow: FlowSettings,
        instance: Instance,
        *,
        target: Callable[[], ClusterSettings] | None = None,
        enter: Enter = KafkaMembership,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._flow = flow
        self._instance = instance
        self._target = target or (lambda: flow.target)
        self._enter = enter
        self._membership: KafkaMembership | None = None
        self._now = now
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"election-{flow.name}", daemon=True)
        # Written only by the election's thread; never changed in place.
        self._agreed: Agreed | None = None
        self._known_until = float("-inf")
        self._failed: Failed | None = None
        self._refused_pause = _RETRY_REFUSED_SECONDS
        self._joined = False
        self._logged = False
        self._hung: Callable[[], bool] = lambda: False
        self._failing: Callable[[], bool] = lambda: False
        # Whether the group knows that the cycles of this instance fail.
        self._told_failing = False

    # --- from other threads -----------------------------------------------------------------

    def leads(self) -> bool:
        """True while this instance leads and its session lasts."""
        agreed = self._agreed
        return agreed is not None and self._has_lead(agreed) and self._in_session()

    def leader(self) -> Instance | None:
        """The leader; None if there is none or it is unknown."""
        agreed = self._agreed
        if agreed is None or not self._in_session():
            return None
        return next((one for one in agreed.instances if one.id == agreed.leader), None)

    def others(self) -> tuple[Instance, ...]:
        return tuple(one for one in self._instances() if one.id != self._instance.id)

    def problem(self) -> str | None:
        """Why this instance is not a member, and what to do; None if it is, or is joining. If the
        target is unreachable, no instance leads."""
        failed = self._failed
        return None if failed is None or self._in_session() else failed.message

    def leave_while(self, hung: Callable[[], bool]) -> None:
        self._hung = hung

    def give_way_if(self, failing: Callable[[], bool]) -> None:
        self._failing = failing

    def _instances(self) -> tuple[Instance, ...]:
        agreed = self._agreed
        return agreed.instances if agreed is not None and self._in_session() else ()

    def _in_session(self) -> bool:
        return not self._ending.is_set() and self._now() < self._known_until

    def _has_lead(self, agreed: Agreed) -> bool:
        return agreed.leader == self._instance.id

    # --- in its own thread ------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Leave the group, so that another instance leads at once."""
        self._ending.set()
        if self._thread.ident is not None:
            self._end_thread()
        if self._membership is None:
            return
        # An unreachable target would delay the end.
        if self._failed is None:
            self._membership.leave()
        self._membership.close()

    def _end_thread(self) -> None:
        for _ in range(int(_END_SECONDS / _AT_ONCE_SECONDS)):
            self._thread.join(_AT_ONCE_SECONDS)
            if not self._thread.is_alive():
                return
            # The thread may be waiting for other members to join.
            membership = self._membership
            if membership is not None:
                membership.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            pause = self.step()
            self._ending.wait(pause)

    def step(self) -> float:
        """Join or send a heartbeat. Returns the seconds until the next step."""
        try:
            if self._membership is None:
                group = self._flow.election_group
                self._membership = self._enter(self._target(), group, SESSION_SECONDS)
            exchange = self._beat if self._joined else self._join
            pause = (self._step_down if self._hung() else exchange)(self._membership)
        except TsoffsetError as error:  # unusable addresses
            pause = self._note_failure(Failed(FailureKind.INTERNAL, str(error)))
        except Exception as error:  # if the thread ended, this instance would never lead again
            if not self._ending.is_set():
                log.exception("election_failed", flow=self._flow.name)
            pause = self._note_failure(
                Failed(
                    FailureKind.INTERNAL,
                    f"elect the leader of {self._flow.name}: {type(error).__name__}: {error}; "
                    "report this with the versions of tsoffset and of the brokers",
                )
            )
        self._log_change()
        return pause

    def _join(self, membership: KafkaMembership) -> float:
        self._told_failing = self._failing()
        if self._told_failing:
            # Another instance leads as soon as it knows.
            self._note_removal(MemberState.REMOVED)
        # The last leader claims the lead. Unless the coordinator removed it, no other member leads.
        holds = self._agreed is not None and self._has_lead(self._agreed)
        told = MEMBER.dump_json(Member(self._instance, holds, self._told_failing))
        answer = membership.join(told, agree)
        if isinstance(answer, Failed):
            return self._note_failure(answer)
        if isinstance(answer, MemberState):
            self._note_removal(answer)
            return _AT_ONCE_SECONDS
        self._agreed = _read(AGREED, answer.content)
        self._joined = True
        self._note_known(answer.asked_at)
        return BEAT_SECONDS

    def _beat(self, membership: KafkaMembership) -> float:
        if not self._failing():
            self._told_failing = False
        elif self.leads() and not self._told_failing:
            # Told once, until a cycle has a result. If the cycles of all instances fail, the lead
            # stays.
            self._joined = False
            return self._join(membership)
        asked_at = self._now()
        answer = membership.beat()
        if isinstance(answer, Failed):
            return self._note_failure(answer)
        if answer is MemberState.MEMBER:
            # The generation has not changed, so no other member has become leader.
            self._note_known(asked_at)
            return BEAT_SECONDS
        # While members rejoin, the session continues from the last heartbeat: the coordinator waits
        # that long for each.
        self._joined = False
        self._note_removal(answer)
        return 0.0

    def _step_down(self, membership: KafkaMembership) -> float:
        """Leave the group: the flow's thread hangs, and cannot close the election."""
        self._joined = False
        self._note_removal(MemberState.REMOVED)
        membership.leave()
        return self._note_failure(
            Failed(
                FailureKind.INTERNAL,
                f"elect the leader of {self._flow.name}: a cycle of this instance, or its read of"
                " history.dir, runs far past the time limit, so it has left the election; restart"
                " this process",
                retry_seconds=_RETRY_SECONDS,
            )
        )

    def _note_removal(self, standing: MemberState) -> None:
        if standing is MemberState.REMOVED:
            self._agreed = None
            self._known_until = float("-inf")

    def _note_known(self, asked_at: float) -> None:
        """The coordinator knew this member at that time, so it does until the session ends."""
        self._known_until = asked_at + SESSION_SECONDS
        self._failed = None
        self._refused_pause = _RETRY_REFUSED_SECONDS

    def _note_failure(self, failed: Failed) -> float:
        if self._ending.is_set():
            return 0.0
        self._failed = failed
        if failed.retry_seconds:
            return _RETRY_SECONDS
        if self._membership is not None and not self._in_session():
            # Join again as a new member, with a new password if it changed, and without the lead.
            self._membership.close()
            self._membership, self._agreed, self._joined = None, None, False
        if failed.kind is not FailureKind.AUTHENTICATION:
            return _RETRY_REFUSED_SECONDS
        pause = self._refused_pause
        self._refused_pause = min(2 * pause, REFUSED_SECONDS)
        return pause

    def _log_change(self) -> None:
        if (leads := self.leads()) is not self._logged and not self._ending.is_set():
            self._logged = leads
            log.info("lead_gained" if leads else "lead_lost", flow=self._flow.name)


def agree(members: Mapping[str, bytes]) -> bytes:
    """The leader and the members (AGREED), to be sent to every member. `members` has the metadata
    of each member by its id. (Pure.)"""
    found = [one for one in (_read(MEMBER, metadata) for metadata in members.values()) if one]
    leader = choose_leader([(one.instance, one.leads, one.fails) for one in found])
    instances = sorted((one.instance for one in found), key=lambda one: (one.started_at, one.id))
    return AGREED.dump_json(Agreed(None if leader is None else leader.id, tuple(instances)))


def choose_leader(candidates: Sequence[tuple[Instance, bool, bool]]) -> Instance | None:
    """The leader among these, each with whether it leads already and whether its cycles fail
    (pure); None for no candidates.

    The current leader, or else the instance that started last: in a rolling restart it stays, so
    the leader changes only once. An instance whose cycles fail leads only if those of all others
    fail, too.
    """
    if not candidates:
        return None
    return max(candidates, key=lambda one: (not one[2], one[1], one[0].started_at, one[0].id))[0]


def _read(form: TypeAdapter[T], content: bytes) -> T | None:
    """What another instance wrote, without fields of later versions; None if it is not valid."""
    try:
        return form.validate_json(content)
    except ValidationError:
        return None
