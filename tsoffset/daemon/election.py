"""Which of several instances runs a flow: they agree by a group on the flow's target cluster.

The group's coordinator tells who is there, and one member, chosen by it, says who leads: whoever
leads already, so that the lead moves only where its holder goes. A member leads for as long as
the coordinator cannot have given it up: its session begins when a heartbeat that was answered was
sent, so it ends for the member before it ends for the coordinator.

That two lead for a moment (a process that was suspended, a coordinator that lost its memory) is
as harmless as two instances without election: the commit rule makes it so, not this.
"""

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from tsoffset.cluster import Membership, MemberState
from tsoffset.daemon.status import Instance
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import Failed, FailureKind

log = structlog.get_logger(__name__)

SESSION_SECONDS = 10.0
BEAT_SECONDS = 3.0
# Before the next attempt: after what may pass, after what somebody has to mend, and where the
# group has moved on.
_RETRY_SECONDS = 1.0
_RETRY_REFUSED_SECONDS = 30.0
_AT_ONCE_SECONDS = 0.1
# How long an end waits for the thread.
_END_SECONDS = 5.0
# Shown to people, who may follow it; and it may have been written by anybody who is in the group.
_URL = re.compile(r"https?://[0-9A-Za-z._\[\]:-]{1,260}")


Enter = Callable[[ClusterSettings, str, float], Membership]
"""Makes a membership in the group of that name, with a session of so many seconds."""


def kafka_membership(settings: ClusterSettings, group: str, session_seconds: float) -> Membership:
    """A membership on a real cluster; nothing is connected before it is used."""
    from tsoffset.kafka.membership import KafkaMembership

    return KafkaMembership(settings, group, session_seconds)


@dataclass(frozen=True, slots=True)
class _Agreed:
    """What the members were told: who leads, and who they are."""

    leader: str
    instances: tuple[Instance, ...]


class Election:
    """The part of this process in the election of one flow's leader.

    `start` begins it in a thread of its own. All may be asked from any thread.
    """

    def __init__(
        self,
        flow: FlowSettings,
        instance: Instance,
        *,
        enter: Enter = kafka_membership,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._flow = flow
        self._instance = instance
        self._enter = enter
        self._membership: Membership | None = None
        self._now = now
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"election-{flow.name}", daemon=True)
        # Replaced as a whole, by the election's thread.
        self._agreed: _Agreed | None = None
        self._known_until = float("-inf")
        self._failed: Failed | None = None
        self._joined = False
        self._told = False

    # --- what is asked ---------------------------------------------------------------------

    def leads(self) -> bool:
        """True while this instance is the one that runs the flow."""
        agreed = self._agreed
        return agreed is not None and self._has_lead(agreed) and self._in_session()

    def leader(self) -> Instance | None:
        """Who leads; None where nobody does, or that is not known."""
        agreed = self._agreed
        if agreed is None or not self._in_session():
            return None
        return next((one for one in agreed.instances if one.id == agreed.leader), None)

    def others(self) -> tuple[Instance, ...]:
        """The other instances that take part, as far as is known."""
        return tuple(one for one in self._instances() if one.id != self._instance.id)

    def problem(self) -> str | None:
        """Why this instance takes no part, and what to do; None where it does, or is about to.
        A target that is away gives the lead to nobody."""
        failed = self._failed
        return None if failed is None or self._in_session() else failed.message

    def _instances(self) -> tuple[Instance, ...]:
        agreed = self._agreed
        return agreed.instances if agreed is not None and self._in_session() else ()

    def _in_session(self) -> bool:
        return not self._ending.is_set() and self._now() < self._known_until

    def _has_lead(self, agreed: _Agreed) -> bool:
        return agreed.leader == self._instance.id

    # --- taking part -----------------------------------------------------------------------

    def start(self) -> None:
        """Take part from now on."""
        self._thread.start()

    def close(self) -> None:
        """Give the lead up, and tell the coordinator, so that another instance gets it at once."""
        self._ending.set()
        if self._thread.ident is not None:
            self._end_thread()
        if self._membership is None:
            return
        # A target that is away would hold up the end.
        if self._failed is None:
            self._membership.leave()
        self._membership.close()

    def _end_thread(self) -> None:
        for _ in range(int(_END_SECONDS / _AT_ONCE_SECONDS)):
            self._thread.join(_AT_ONCE_SECONDS)
            if not self._thread.is_alive():
                return
            # It may wait for others to join.
            if self._membership is not None:
                self._membership.interrupt()

    def _run(self) -> None:
        while not self._ending.is_set():
            pause = self.step()
            self._ending.wait(pause)

    def step(self) -> float:
        """One exchange with the coordinator; the seconds until the next."""
        try:
            if self._membership is None:
                group = self._flow.election_group
                self._membership = self._enter(self._flow.target, group, SESSION_SECONDS)
            exchange = self._beat if self._joined else self._join
            pause = exchange(self._membership)
        except TsoffsetError as error:  # client settings that cannot be used
            pause = self._missed(Failed(FailureKind.INTERNAL, str(error)))
        except Exception as error:  # a thread that ended would never lead again
            if not self._ending.is_set():
                log.exception("election_failed", flow=self._flow.name)
            pause = self._missed(
                Failed(
                    FailureKind.INTERNAL,
                    f"elect the leader of {self._flow.name}: {type(error).__name__}: {error}; "
                    "report this with the versions of tsoffset and of the brokers",
                )
            )
        self._tell()
        return pause

    def _join(self, membership: Membership) -> float:
        # Whoever had the lead last says so: unless the coordinator removed it, nobody else got it.
        holds = self._agreed is not None and self._has_lead(self._agreed)
        facts = {"instance": asdict(self._instance), "leads": holds}
        answer = membership.join(json.dumps(facts).encode(), agreed_by)
        if isinstance(answer, Failed):
            return self._missed(answer)
        if isinstance(answer, MemberState):
            self._void(answer)
            return _AT_ONCE_SECONDS
        self._agreed = _agreed_of(answer.content)
        self._joined = True
        self._known(answer.asked_at)
        return BEAT_SECONDS

    def _beat(self, membership: Membership) -> float:
        asked_at = self._now()
        answer = membership.beat()
        if isinstance(answer, Failed):
            return self._missed(answer)
        if answer is MemberState.MEMBER:
            # No other generation has been agreed on, so that nobody else has the lead.
            self._known(asked_at)
            return BEAT_SECONDS
        # While the members join, the session goes on from the last heartbeat that found them
        # all: the coordinator waits as long for who does not join.
        self._joined = False
        self._void(answer)
        return 0.0

    def _void(self, standing: MemberState) -> None:
        if standing is MemberState.REMOVED:
            self._agreed = None
            self._known_until = float("-inf")

    def _known(self, asked_at: float) -> None:
        """The coordinator knew us at that time, so it does for a session from then on."""
        self._known_until = asked_at + SESSION_SECONDS
        self._failed = None

    def _missed(self, failed: Failed) -> float:
        if self._ending.is_set():
            return 0.0
        self._failed = failed
        return _RETRY_SECONDS if failed.retry_seconds else _RETRY_REFUSED_SECONDS

    def _tell(self) -> None:
        if (leads := self.leads()) is not self._told and not self._ending.is_set():
            self._told = leads
            log.info("lead_gained" if leads else "lead_lost", flow=self._flow.name)


def agreed_by(members: Mapping[str, bytes]) -> bytes:
    """What all members are told, of the metadata of each (pure): who leads, and who they are."""
    candidates = []
    for metadata in members.values():
        facts = _of_json(metadata)
        instance = instance_of(facts.get("instance"))
        if instance is not None:
            candidates.append((instance, facts.get("leads") is True))
    found = chosen(candidates)
    agreed = {
        "leader": None if found is None else found.id,
        "instances": [asdict(instance) for instance, _ in candidates],
    }
    return json.dumps(agreed).encode()


def chosen(candidates: Sequence[tuple[Instance, bool]]) -> Instance | None:
    """Who of these leads, each with whether it leads already (pure); None where there is none.

    Whoever does; otherwise the one that started last: of instances that are replaced one after the
    other it is the one that stays, so the lead moves once.
    """
    if not candidates:
        return None
    return max(candidates, key=lambda one: (one[1], one[0].started_at, one[0].id))[0]


def _agreed_of(content: bytes) -> _Agreed | None:
    facts = _of_json(content)
    listed = facts.get("instances")
    found = [instance_of(one) for one in listed] if isinstance(listed, list) else []
    instances = tuple(
        sorted((one for one in found if one), key=lambda one: (one.started_at, one.id))
    )
    return _Agreed(str(facts.get("leader") or ""), instances)


def _of_json(content: bytes) -> Mapping[str, Any]:
    """What another instance wrote; nothing where that cannot be read."""
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def instance_of(facts: object) -> Instance | None:
    """The instance with these fields, further ones left out; None where it lacks one."""
    if not isinstance(facts, dict):
        return None
    try:
        started_at = float(facts["started_at"])
        if not math.isfinite(started_at):
            return None
        return Instance(
            str(facts["id"]),
            str(facts["host"]),
            int(facts["pid"]),
            started_at,
            str(facts["version"]),
            _url_of(facts.get("url")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _url_of(text: object) -> str | None:
    return text if isinstance(text, str) and _URL.fullmatch(text) else None
