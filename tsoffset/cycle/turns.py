"""The turns in which target groups are read and committed.

A commit is decided on what the group had on the target at most `FRESH_SECONDS` before it is
sent. Committers without membership are not seen by anybody else, so that this is the time in
which one of them could be moved backwards.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.source_commits import committed_offsets
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupOffsets,
    OutcomeKind,
    Row,
    TopicPartition,
)
from tsoffset.rule.decide import (
    LastCommit,
    SourceCommit,
    TranslatedPosition,
    active,
    decide,
    target_missing,
    with_verdict,
)

# A commit is not sent when the question for what the group has was asked longer ago.
FRESH_SECONDS = 2.0
# A coordinator that takes longer to answer is asked apart from the others.
LOOK_SECONDS = 1.5
# How long a group may wait in all, whatever its coordinator says, and between two looks.
_PATIENCE_SECONDS = 15.0
_PAUSE_SECONDS = 0.5
# How many commits of a row may come to nothing, too late to be sent or without an answer, beside
# the one that is made at once.
_ATTEMPTS = 3
# What is read, decided and sent in one go, so that it is sent in time. After one that was too
# late, half of it.
GROUPS_AT_ONCE = 500
ROWS_AT_ONCE = 10_000


class Time(Protocol):
    """What of the `time` module is used here."""

    def monotonic(self) -> float:
        """Seconds of a clock that nobody sets."""

    def time(self) -> float:
        """Seconds since 1970 UTC."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """One commit with its translation (None where its verdict is known without one).

    `rewind_from` is as in `decide`.
    """

    commit: SourceCommit
    position: TranslatedPosition | None = None
    last_commit: LastCommit | None = None
    rewind_from: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look before the turns has found: the offsets of groups that are past the translation,
    by settlement, which are not read again, for nothing is committed there; and the groups that
    could not be asked then."""

    ahead: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[str, Failed] = field(default_factory=dict)


class Turns:
    """Reading, deciding and committing until each row is settled.

    A turn looks at all groups that are left, some hundreds at once: rows that can be decided
    are decided and committed at once. Those whose offset waits for a transaction, or whose
    coordinator is not ready, are left for the next turn, while there is patience with them:
    nobody waits for them. So are those whose commit was too late to be sent, or may have been
    written although its answer does not say so: it is decided anew on what the group has then.
    """

    def __init__(
        self,
        flow: FlowSettings,
        target: Cluster,
        settlements: Sequence[Settlement],
        *,
        commit: bool,
        until: float | None,
        clock: Time,
        seen: "Seen",
    ) -> None:
        self._flow = flow
        self._target = target
        self._settlements = settlements
        self._commit = commit
        self._until = until
        self._clock = clock
        self._seen = seen
        self._rows: dict[int, Row] = {}
        self._open: defaultdict[str, list[int]] = defaultdict(list)
        self._first_looks: dict[str, float] = {}
        self._attempts: defaultdict[int, int] = defaultdict(int)
        # Rows whose commit may have been written.
        self._sent: dict[int, Row] = {}
        self._without_metadata: set[int] = set()
        self._groups_at_once = GROUPS_AT_ONCE
        self.longest_gap_seconds = 0.0

    def rows(self) -> list[Row]:
        """The row of each settlement."""
        active_groups: set[str] = set()
        for number, settlement in enumerate(self._settlements):
            group = settlement.commit.group
            if settlement.commit.partition is None:
                self._rows[number] = self._decided(number, None)
                continue
            if number in self._seen.ahead:
                there = CommittedOffset(self._seen.ahead[number])
                self._rows[number] = self._decided(number, there)
                continue
            self._open[group].append(number)
            if settlement.commit.target_active:
                active_groups.add(group)
        waiting: Mapping[str, Failed | None]
        waiting = {
            group: self._seen.failed.get(group)
            for group in sorted(self._open)
            if group not in active_groups
        }
        while waiting:
            waiting = self._turn(waiting)
            if any(waiting.values()):
                self._clock.sleep(_PAUSE_SECONDS)
        self._take_active(sorted(active_groups))
        return [self._rows[number] for number in range(len(self._settlements))]

    def _take_active(self, groups: Sequence[str]) -> None:
        """Groups with members are not committed, so nothing of theirs has to be stable."""
        current = committed_offsets(self._target, groups, require_stable=False)
        for group in groups:
            for number in self._open.pop(group):
                self._rows[number] = self._decided(number, self._current(number, current))

    def _turn(self, groups: Mapping[str, Failed | None]) -> dict[str, Failed | None]:
        """One look at each group; the groups that have rows left, with what to wait for.

        `groups` are those, with what they waited for. Who was silent is asked after the others.
        """
        silent: list[str] = []
        others: list[str] = []
        for group, why in groups.items():
            is_silent = why is not None and why.kind is FailureKind.TIMEOUT
            (silent if is_silent else others).append(group)
        left: dict[str, Failed | None] = {}
        for some in chain(self._at_once(others), self._at_once(silent)):
            left |= self._look(some)
        return left

    def _at_once(self, groups: Sequence[str]) -> Iterator[list[str]]:
        """The groups in parts, each as large as may be when the one before it is done."""
        some: list[str] = []
        rows, limit = 0, self._groups_at_once
        for group in groups:
            more = len(self._open[group])
            if some and (len(some) >= limit or rows + more > ROWS_AT_ONCE):
                yield some
                some, rows, limit = [], 0, self._groups_at_once
            some.append(group)
            rows += more
        if some:
            yield some

    def _look(self, groups: Sequence[str]) -> dict[str, Failed | None]:
        """Read what the groups have and settle the rows that can be; the groups that have rows
        left, with what to wait for."""
        looked_at = self._clock.monotonic()
        current = committed_offsets(
            self._target, groups, require_stable=True, within_seconds=LOOK_SECONDS
        )
        left: dict[str, Failed | None] = {}
        pending: dict[int, Row] = {}
        for group in groups:
            first = self._first_looks.setdefault(group, looked_at)
            waited = self._clock.monotonic() - first
            for number in self._open.pop(group):
                there = self._current(number, current)
                if isinstance(there, Failed) and waited < min(
                    there.patience_seconds, _PATIENCE_SECONDS
                ):
                    self._open[group].append(number)
                    left[group] = there
                    continue
                row = self._settled_before(number, self._decided(number, there), there)
                if self._commit and row.outcome is OutcomeKind.WOULD_COMMIT:
                    pending[number] = row
                else:
                    self._rows[number] = row
        if pending:
            for group, why in self._send(pending, looked_at).items():
                left[group] = left.get(group) or why
        return left

    def _settled_before(self, number: int, row: Row, there: CommittedOffset | Failed | None) -> Row:
        """The row as committed where the group has what was sent for it before."""
        sent = self._sent.get(number)
        if sent is None or not isinstance(there, CommittedOffset):
            return row
        if there.offset != sent.target_offset:
            return row
        return self._committed(number, sent)

    def _committed(self, number: int, row: Row) -> Row:
        message = (
            "committed without the source commit's metadata, which the target refuses as too "
            "large; raise offset.metadata.max.bytes there"
            if number in self._without_metadata
            else None
        )
        return replace(row, outcome=OutcomeKind.COMMITTED, message=message)

    def _send(self, pending: Mapping[int, Row], looked_at: float) -> dict[str, Failed | None]:
        """Commit what is pending; the groups that are to be looked at again, with the answer
        that says so."""
        commits: defaultdict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
        for number, row in pending.items():
            commit = self._settlements[number].commit
            assert commit.committed is not None
            assert commit.target is not None
            assert row.target_offset is not None
            metadata = "" if number in self._without_metadata else commit.committed.metadata
            commits[commit.group][commit.target] = CommittedOffset(row.target_offset, metadata)
        refused: dict[str, Failed] = {}
        sent: set[str] = set()

        def may_send(group: str) -> bool:
            gap = self._clock.monotonic() - looked_at
            if self._until is not None and self._clock.time() >= self._until:
                refused[group] = self._given_up(group)
            elif gap > FRESH_SECONDS:
                refused[group] = self._too_late(group)
            else:
                self.longest_gap_seconds = max(self.longest_gap_seconds, gap)
                sent.add(group)
                return True
            return False

        answers = try_commit(self._target, commits, may_send)
        again: dict[str, Failed | None] = {}
        for number, row in pending.items():
            commit = self._settlements[number].commit
            assert commit.target is not None
            answer = answers[commit.group][commit.target]
            refusal = refused.get(commit.group)
            # Of a group with many partitions a part may have been sent before.
            if answer is None or answer.kind is not FailureKind.TIMEOUT:
                refusal = None
            done = self._done(number, row, refusal or answer)
            if done is not None:
                self._rows[number] = done
                continue
            self._open[commit.group].append(number)
            waits = answer is not None and refusal is None and not answer.metadata_too_large
            if waits and commit.group in sent:
                self._sent[number] = row
            again[commit.group] = answer if waits else again.get(commit.group)
        if refused:
            self._groups_at_once = max(1, self._groups_at_once // 2)
        return again

    def _done(self, number: int, row: Row, answer: Failed | None) -> Row | None:
        """The row after its commit was answered; None where it is to be decided again."""
        commit = self._settlements[number].commit
        assert commit.target is not None
        if answer is None:
            return self._committed(number, row)
        if answer.group_active:
            return with_verdict(row, active(commit.group))
        if answer.missing:
            return with_verdict(row, target_missing(commit.target))
        if answer.metadata_too_large and number not in self._without_metadata:
            self._without_metadata.add(number)
            return None
        self._attempts[number] += 1
        if answer.patience_seconds and self._attempts[number] < _ATTEMPTS:
            return None
        return with_verdict(row, answer)

    def _given_up(self, group: str) -> Failed:
        return Failed(
            FailureKind.TIMEOUT,
            f"commit offsets of group {group}, cluster {self._target.alias}: this attempt is so "
            "late that it counts as given up, and a newer one may have committed since; nothing "
            "was sent, the next cycle decides anew",
        )

    def _too_late(self, group: str) -> Failed:
        return Failed(
            FailureKind.TIMEOUT,
            f"commit offsets of group {group}, cluster {self._target.alias}: more than "
            f"{FRESH_SECONDS:g} s went by since its offsets were read, {_ATTEMPTS + 1} times, so "
            "that it may have moved on; check the load of this machine, of the brokers and of the "
            "network, the next cycle tries again",
            patience_seconds=_PATIENCE_SECONDS,
        )

    def _decided(self, number: int, current: CommittedOffset | Failed | None) -> Row:
        return decided(self._flow, self._settlements[number], current)

    def _current(
        self, number: int, current: Mapping[str, GroupOffsets | Failed]
    ) -> CommittedOffset | Failed | None:
        commit = self._settlements[number].commit
        offsets = current.get(commit.group, {})
        if isinstance(offsets, Failed):
            return offsets
        return None if commit.target is None else offsets.get(commit.target)


def decided(
    flow: FlowSettings, settlement: Settlement, current: CommittedOffset | Failed | None
) -> Row:
    """The row of a settlement where the group has `current` on the target."""
    return decide(
        flow.name,
        settlement.commit,
        settlement.position,
        current,
        last_commit=settlement.last_commit,
        floor=flow.translation.floor,
        rewind_from=settlement.rewind_from,
    )


def try_commit(
    target: Cluster,
    commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    may_send: Callable[[str], bool],
) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
    """What `Cluster.commit` answers; a cluster that cannot be reached fails each of them."""
    try:
        return target.commit(commits, may_send=may_send)
    except ClusterUnreachable as error:
        failed = all_failed(error)
        return {group: dict.fromkeys(offsets, failed) for group, offsets in commits.items()}
