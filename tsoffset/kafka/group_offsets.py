"""Committed offsets of groups: OffsetFetch has many groups in a request, OffsetCommit one.

A share group has share-partition start offsets instead, with their own requests. The caller says
which groups are share groups.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np
from kafka.errors import KafkaError
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from tsoffset.committed import CommittedColumns, GroupPartition, join_columns
from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections, in_parts
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Remedy, Trouble, failure, rule
from tsoffset.kafka.groups import GroupLookup
from tsoffset.kafka.rounds import TOPIC_AND_PARTITION, Again, answer_to, in_rounds
from tsoffset.kafka.wire import offset_commit_codec, offset_fetch_codec, share_offsets_codec
from tsoffset.kafka.wire.offset_commit_codec import (
    CommitPart,
    OffsetCommitAnswer,
    OffsetCommitCodec,
)
from tsoffset.kafka.wire.offset_fetch_codec import (
    MANY_SINCE,
    OffsetFetchAnswer,
    OffsetFetchCodec,
)
from tsoffset.kafka.wire.share_offsets_codec import (
    AlterShareOffsetsCodec,
    DescribeShareOffsetsCodec,
)
from tsoffset.model import CommittedOffset, Failed, GroupOffsets, TopicPartition

# Versions with require_stable, and with topic names instead of ids.
OFFSET_FETCH = Api(
    "offset_fetch",
    OffsetFetchRequest,
    offset_fetch_codec.LOWEST,
    offset_fetch_codec.HIGHEST,
    many_since=MANY_SINCE,
    at_most=50,
    answer_bytes=32_000_000,  # 1,000,000 offsets
)
OFFSET_COMMIT = Api(
    "offset_commit", OffsetCommitRequest, offset_commit_codec.LOWEST, offset_commit_codec.HIGHEST
)
DESCRIBE_SHARE_OFFSETS = Api(
    "describe_share_group_offsets",
    share_offsets_codec.DESCRIBE,
    share_offsets_codec.DESCRIBE.min_version,
    share_offsets_codec.DESCRIBE.max_version,
    at_most=50,
    answer_bytes=32_000_000,
)
ALTER_SHARE_OFFSETS = Api(
    "alter_share_group_offsets",
    share_offsets_codec.ALTER,
    share_offsets_codec.ALTER.min_version,
    share_offsets_codec.ALTER.max_version,
)

# A commit becomes one batch of __consumer_offsets, and the size of batches is limited.
_PARTITIONS_PER_COMMIT = 1_000
# A broker handles the requests of one connection one after the other, so a large number of commits
# is spread over several connections.
_FEWEST_COMMITS_A_CONNECTION, _MOST_CONNECTIONS = 32, 4

_READ = "read the offsets of group"
_COMMIT = "commit offsets of group"

_Accepted = Mapping[TopicPartition, Failed | None]

# An answer, and the group's index in it.
_Found = tuple[OffsetFetchAnswer, int]


class CommittedOffsets:
    """OffsetFetch and OffsetCommit over all coordinators of a cluster; for share groups
    DescribeShareGroupOffsets and AlterShareGroupOffsets."""

    def __init__(self, connections: BrokerConnections, groups: GroupLookup) -> None:
        self._connections = connections
        self._groups = groups

    # --- reading ---------------------------------------------------------------------------

    def committed(
        self,
        groups: Collection[str],
        share_groups: Collection[str],
        require_stable: bool,
        deadline: Deadline,
        *,
        single_attempt: bool = False,
    ) -> CommittedColumns:
        """All committed offsets of each group; with `single_attempt`, nothing is retried."""
        attempt = partial(
            self._fetch_round,
            share_groups=frozenset(share_groups),
            require_stable=require_stable,
            deadline=deadline,
        )
        asked = tuple(dict.fromkeys(groups))
        found = in_rounds(
            self._connections,
            sorted(asked),
            attempt,
            _READ,
            deadline,
            single_attempt=single_attempt,
            forget=self._groups.forget,
        )
        return self._columns(asked, found)

    async def _fetch_round(
        self,
        groups: Collection[str],
        share_groups: frozenset[str],
        require_stable: bool,
        deadline: Deadline,
    ) -> dict[str, _Found | Failed | Again]:
        answers: dict[str, _Found | Failed | Again] = {}
        coordinators = await self._groups.coordinators(groups, _READ, deadline)
        by_node: dict[tuple[Node, bool], list[str]] = defaultdict(list)
        for group, node in coordinators.items():
            if isinstance(node, Failed | Again):
                answers[group] = node
            else:
                by_node[node, group in share_groups].append(group)

        client_id = self._connections.client.client_id
        codec = partial(OffsetFetchCodec, client_id, deadline, require_stable)
        share_codec = partial(DescribeShareOffsetsCodec, client_id, deadline)

        def take(some: Sequence[str], response: OffsetFetchAnswer | KafkaError) -> None:
            answers.update(self._group_results(some, response))

        async def ask(where: tuple[Node, bool], items: list[str]) -> None:
            node, is_share = where
            await self._connections.stream_many(
                node,
                DESCRIBE_SHARE_OFFSETS if is_share else OFFSET_FETCH,
                items,
                share_codec if is_share else codec,
                take,
                deadline,
            )

        await self._connections.at_each(by_node, ask)
        return answers

    def _group_results(
        self, groups: Sequence[str], response: OffsetFetchAnswer | KafkaError
    ) -> dict[str, _Found | Failed | Again]:
        alias = self._connections.alias
        if isinstance(response, KafkaError):
            return {group: answer_to(response, f"{_READ} {group}", alias) for group in groups}
        retry_seconds = _retry_seconds(response)
        found: dict[str, _Found | Failed | Again] = {}
        for number, (name, error_code) in enumerate(response.groups):
            group = groups[0] if name is None else name
            if group not in groups:
                continue  # that group belongs to another broker, whose answer counts
            if error_code:
                found[group] = answer_to(error_code, f"{_READ} {group}", alias)
            elif number in retry_seconds:
                found[group] = Again((response, number), retry_seconds=retry_seconds[number])
            else:
                found[group] = response, number
        return found

    def _columns(
        self, groups: Sequence[str], found: Mapping[str, _Found | Failed]
    ) -> CommittedColumns:
        unread: dict[str, GroupOffsets | Failed] = {}
        by_answer: dict[int, tuple[OffsetFetchAnswer, dict[int, int]]] = {}
        for index, group in enumerate(groups):
            one = found[group]
            unread[group] = one if isinstance(one, Failed) else {}
            if not isinstance(one, Failed):
                answer, number = one
                by_answer.setdefault(id(answer), (answer, {}))[1][number] = index
        parts = [self._part(groups, *one) for one in by_answer.values()]
        return join_columns([CommittedColumns.of(unread), *parts])

    def _part(
        self, groups: Sequence[str], answer: OffsetFetchAnswer, indices: Mapping[int, int]
    ) -> CommittedColumns:
        """An answer's entries for some of its groups: `indices` has their indices in `groups`."""
        index_of = np.full(len(answer.groups), -1, np.int32)
        index_of[list(indices)] = list(indices.values())
        group = index_of[answer.group]
        failed_entries: dict[GroupPartition, Failed] = {}
        for number in np.flatnonzero((group >= 0) & (answer.error_code != 0)).tolist():
            name = groups[group[number]]
            topic = answer.topics[answer.topic[number]]
            tp = TopicPartition(topic, int(answer.partition[number]))
            failed_entries[name, tp] = failure(
                int(answer.error_code[number]), f"{_READ} {name}, {tp}", self._connections.alias
            )
        # An offset of -1 means none.
        kept = (group >= 0) & (answer.error_code == 0) & (answer.offset >= 0)
        kept &= answer.partition >= 0
        number_of = np.where(kept, np.cumsum(kept) - 1, -1)[list(answer.metadata)].tolist()
        lag = {}
        if answer.lag is not None:
            lag = {n: each for n, each in enumerate(answer.lag[kept].tolist()) if each >= 0}
        return CommittedColumns(
            groups,
            answer.topics,
            group[kept],
            answer.topic[kept],
            answer.partition[kept],
            answer.offset[kept],
            answer.leader_epoch[kept],
            {
                number: text
                for number, text in zip(number_of, answer.metadata.values(), strict=True)
                if number >= 0
            },
            {},
            failed_entries,
            lag,
        )

    # --- committing ------------------------------------------------------------------------

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        share_groups: Collection[str],
        deadline: Deadline,
        may_send: Callable[[str], bool] | None = None,
    ) -> dict[str, dict[TopicPartition, Failed | None]]:
        """Commit without membership and without leader epochs, in one request per group (and
        thousand partitions). A request is never sent again, whatever the answer.

        Even after the answer that the coordinator has moved, the commit may have been written, and
        the group may have moved on since: a second request would move it backwards. Looking up a
        coordinator and connecting to it are retried, unless `may_send` is given, which is called
        before each request.
        """
        parts = [
            CommitPart(group, {tp: offsets[tp] for tp in some}, number)
            for number, (group, offsets, some) in enumerate(
                (group, offsets, some)
                for group, offsets in sorted(commits.items())
                for some in in_parts(
                    sorted(offsets, key=TOPIC_AND_PARTITION), _PARTITIONS_PER_COMMIT
                )
            )
        ]
        attempt = partial(
            self._commit_round,
            parts=parts,
            share_groups=frozenset(share_groups),
            deadline=deadline,
            may_send=may_send,
        )
        done = in_rounds(
            self._connections,
            range(len(parts)),
            attempt,
            _COMMIT,
            deadline,
            single_attempt=may_send is not None,
            forget=lambda numbers: self._groups.forget({parts[each].group for each in numbers}),
        )
        answers: dict[str, dict[TopicPartition, Failed | None]] = {group: {} for group in commits}
        for number, answer in done.items():
            part = parts[number]
            if isinstance(answer, Failed):
                answer = dict.fromkeys(part.offsets, answer)
            answers[part.group].update(answer)
        return answers

    async def _commit_round(
        self,
        numbers: Collection[int],
        parts: Sequence[CommitPart],
        share_groups: frozenset[str],
        deadline: Deadline,
        may_send: Callable[[str], bool] | None,
    ) -> dict[int, _Accepted | Failed | Again]:
        answers: dict[int, _Accepted | Failed | Again] = {}
        groups = {parts[number].group for number in numbers}
        coordinators = await self._groups.coordinators(groups, _COMMIT, deadline)
        by_node: dict[tuple[Node, bool], list[CommitPart]] = defaultdict(list)
        for number in numbers:
            part = parts[number]
            node = coordinators[part.group]
            if isinstance(node, Failed | Again):
                answers[number] = node
            else:
                by_node[node, part.group in share_groups].append(part)
        by_connection = {
            (*where, connection): some
            for where, items in by_node.items()
            for connection, some in enumerate(in_parts(items, _size_of_part(len(items))))
        }
        sent: set[int] = set()
        moved: set[str] = set()

        def take(part: CommitPart, response: OffsetCommitAnswer | KafkaError) -> None:
            answers[part.number] = self._commit_results(part, response, part.number in sent, moved)

        def may_send_part(part: CommitPart) -> bool:
            if may_send is not None and not may_send(part.group):
                return False
            sent.add(part.number)
            return True

        async def ask(where: tuple[Node, bool, int], items: Sequence[CommitPart]) -> None:
            node, is_share, connection = where
            await self._connections.stream_once(
                node,
                ALTER_SHARE_OFFSETS if is_share else OFFSET_COMMIT,
                items,
                partial(
                    AlterShareOffsetsCodec if is_share else OffsetCommitCodec,
                    self._connections.client.client_id,
                ),
                take,
                deadline,
                may_send=may_send_part,
                number=connection,
            )

        await self._connections.at_each(by_connection, ask)
        self._groups.forget(moved)
        return answers

    def _commit_results(
        self,
        part: CommitPart,
        response: OffsetCommitAnswer | KafkaError,
        sent: bool,
        moved: set[str],
    ) -> _Accepted | Failed | Again:
        """The results of a request, or of the attempt to send it. A group whose coordinator has to
        be looked up again goes into `moved`."""
        group = part.group
        silence: Trouble = KafkaError("not answered for")
        error_codes: Mapping[tuple[str, int], int] = {}
        if not isinstance(response, KafkaError):
            error_codes = response.error_codes
            silence = response.error_code or silence
        elif sent:
            silence = response
        else:
            return answer_to(response, f"{_COMMIT} {group}", self._connections.alias)
        answers: dict[TopicPartition, Failed | None] = {}
        for tp in part.offsets:
            trouble = error_codes.get((tp.topic, tp.partition), silence)
            if not trouble:
                answers[tp] = None
                continue
            answers[tp] = failure(trouble, f"{_COMMIT} {group}, {tp}", self._connections.alias)
            if rule(trouble).remedy is Remedy.REFRESH and not rule(trouble).missing:
                moved.add(group)
        return answers


def _retry_seconds(answer: OffsetFetchAnswer) -> dict[int, float]:
    """For how long to retry each group of an answer because of its single offsets."""
    retry_seconds: dict[int, float] = {}
    for number in np.flatnonzero(answer.error_code).tolist():
        what = rule(int(answer.error_code[number]))
        if what.remedy is Remedy.AGAIN:
            group = int(answer.group[number])
            retry_seconds[group] = max(retry_seconds.get(group, 0.0), what.retry_seconds)
    return retry_seconds


def _size_of_part(commits: int) -> int:
    """How many of the commits to one broker go over each connection."""
    return max(_FEWEST_COMMITS_A_CONNECTION, math.ceil(commits / _MOST_CONNECTIONS))
