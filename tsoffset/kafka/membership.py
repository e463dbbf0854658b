"""Membership in a group by the classic protocol, which Kafka Connect's workers use, too.

The group commits nothing; its coordinator only tells which members are alive.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kafka.errors import (
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from tsoffset.cluster import Assignment, MemberState, all_failed
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.connections import Api, BrokerConnections
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Remedy, Trouble, error_class, failure, rule
from tsoffset.kafka.groups import ELECTION, GroupLookup
from tsoffset.kafka.rounds import Again
from tsoffset.kafka.topology import Topology
from tsoffset.model import Failed

JOIN_GROUP = Api("join_group", JoinGroupRequest, 5, 9)
SYNC_GROUP = Api("sync_group", SyncGroupRequest, 3, 5)
HEARTBEAT = Api("heartbeat", HeartbeatRequest, 3, 4)
LEAVE_GROUP = Api("leave_group", LeaveGroupRequest, 3, 5)

_PROTOCOL = "instances"
# Two of these, one after the other, fit between a heartbeat and the session timeout.
_ANSWER_MS = 3_000
# In addition to the time for which the coordinator waits for the other members.
_JOIN_MORE_MS = 5_000
_LEAVE_MS = 2_000
_WAS_REMOVED = (UnknownMemberIdError, FencedInstanceIdError)

T = TypeVar("T")


class KafkaMembership:
    """Membership of this process in one group of a cluster; it opens nothing before the first call.

    Use it from one thread at a time, except for `close`. Failures are values; the next call
    tries again, and looks up the coordinator again if needed. Raises ConfigurationError for
    addresses that cannot be used.
    """

    def __init__(self, settings: ClusterSettings, group: str, session_seconds: float) -> None:
        self._connections = BrokerConnections(settings)
        self._groups = GroupLookup(self._connections, Topology(self._connections))
        self._group = group
        self._session_ms = int(session_seconds * 1000)
        self._member_id = ""
        self._generation = -1

    def join(
        self, metadata: bytes, assign: Callable[[Mapping[str, bytes]], bytes]
    ) -> Assignment | MemberState | Failed:
        """Join, or join again, and wait until all members have.

        `assign` makes every member's assignment from the metadata of each, by member id; it is
        called if the coordinator has chosen this member as the leader. Returns a state other than
        MEMBER if the group has moved on meanwhile.
        """
        deadline = Deadline.after(self._session_ms + _JOIN_MORE_MS)
        return self._run(lambda: self._join(metadata, assign, deadline), "join")

    async def _join(
        self, metadata: bytes, assign: Callable[[Mapping[str, bytes]], bytes], deadline: Deadline
    ) -> Assignment | MemberState | Failed:
        joined = await self._ask_to_join(metadata, deadline)
        if joined.error_code == MemberIdRequiredError.errno:
            self._member_id = joined.member_id
            joined = await self._ask_to_join(metadata, deadline)
        if joined.error_code:
            return self._refusal(joined.error_code, "join")
        self._member_id, self._generation = joined.member_id, joined.generation_id
        members = {one.member_id: bytes(one.metadata) for one in joined.members}
        content = assign(members) if joined.leader == joined.member_id else b""
        asked_at = time.monotonic()
        synced = await self._ask(
            SYNC_GROUP,
            deadline,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=ELECTION,
            protocol_name=_PROTOCOL,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=content)
                for member in (members if content else ())
            ],
        )
        if synced.error_code:
            return self._refusal(synced.error_code, "join")
        return Assignment(bytes(synced.assignment), asked_at)

    async def _ask_to_join(self, metadata: bytes, deadline: Deadline) -> Any:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=metadata)
        return await self._ask(
            JOIN_GROUP,
            deadline,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._session_ms,
            member_id=self._member_id,
            protocol_type=ELECTION,
            protocols=[protocol],
        )

    def beat(self) -> MemberState | Failed:
        return self._run(self._beat, "stay in")

    async def _beat(self) -> MemberState | Failed:
        answer = await self._ask(
            HEARTBEAT,
            Deadline.after(_ANSWER_MS),
            generation_id=self._generation,
            member_id=self._member_id,
        )
        if answer.error_code:
            return self._refusal(answer.error_code, "stay in")
        return MemberState.MEMBER

    def leave(self) -> None:
        """Tell the coordinator that this member has left, so that it does not wait for the session
        timeout. If the coordinator is unreachable, the timeout applies."""
        if not self._member_id:
            return
        deadline = Deadline.after(_LEAVE_MS)
        member = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        self._member_id = ""
        self._run(lambda: self._ask(LEAVE_GROUP, deadline, members=[member]), "leave")

    def close(self) -> None:
        """A call in another thread ends and fails; a later call makes new connections."""
        self._connections.close()

    # --- requests --------------------------------------------------------------------------

    def _run(self, work: Callable[[], Awaitable[T]], verb: str) -> T | Failed:
        async def run() -> T | Failed:
            # An error that leaves the loop would close the connection.
            try:
                return await work()
            except _Failure as error:
                return error.failed
            except KafkaError as error:
                return self._failure(error, verb)

        try:
            return self._connections.run(run)
        except ClusterRefused as error:
            return all_failed(error)
        except ClusterUnreachable as error:
            return replace(all_failed(error), retry_seconds=rule(error).retry_seconds)
        except KafkaError as error:  # closed by another thread
            return self._failure(error, verb)

    async def _ask(self, api: Api, deadline: Deadline, **fields: Any) -> Any:
        operation = "find the coordinator of group"
        found = await self._groups.coordinators((self._group,), operation, deadline)
        node = found[self._group]
        if isinstance(node, Again):
            node = node.otherwise
        if isinstance(node, Failed):
            raise _Failure(node)

        def build(version: int) -> Any:
            return api.request(group_id=self._group, version=version, **fields)

        return await self._connections.ask(node, api, build, deadline)

    def _refusal(self, code: int, verb: str) -> MemberState | Failed:
        trouble = error_class(code)
        if trouble is RebalanceInProgressError:
            return MemberState.REBALANCING
        if trouble in _WAS_REMOVED:
            self._member_id = ""
        if trouble in (*_WAS_REMOVED, IllegalGenerationError):
            return MemberState.REMOVED
        if trouble is GroupIdNotFoundError:
            # The answer to joining a group of another type (a share group).
            trouble = InconsistentGroupProtocolError
        return self._failure(trouble, verb)

    def _failure(self, trouble: Trouble, verb: str) -> Failed:
        if rule(trouble).remedy is Remedy.REFRESH:
            self._groups.forget((self._group,))
        return failure(trouble, f"{verb} group {self._group}", self._connections.alias)


class _Failure(Exception):
    """Carries a failure past the code that would have used the answer."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed
