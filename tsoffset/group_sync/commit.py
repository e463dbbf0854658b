"""Reading target groups, deciding, and committing, until each row has its result.

Three promises:

- A commit is sent at most `FRESH_SECONDS` after the group's offsets were asked for. Only in this
  time can a commit of a client that is not a member be moved backwards.
- Nothing is sent a second time before the group's offsets were read again.
- Nothing is sent after the deadline (`until`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import polars as pl

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.commit_rule import decide, with_outcome
from tsoffset.group_sync.log_ranges import with_log_ranges
from tsoffset.group_sync.read import target_commits, with_current
from tsoffset.group_sync.same_logs import is_same_topic, target_topics, without_changed
from tsoffset.group_sync.send import send
from tsoffset.group_sync.tables import (
    COMMIT_RESULTS,
    COMMIT_WORK,
    TARGET_PARTITION,
    Schema,
    anti_join,
    left_join,
    null_where,
    select,
)
from tsoffset.model import Failed, FailureKind, OutcomeKind, Reason

FRESH_SECONDS = 2.0
# A coordinator that takes longer to answer is asked apart from the others.
READ_SECONDS = 1.5
# How long a group is read again in all, and the pause between two reads.
_RETRY_SECONDS = 15.0
_PAUSE_SECONDS = 0.5
# How often a row's commit may be refused, sent too late or left without an answer.
_ATTEMPTS = 4
# The size of a part: the groups that are read, decided and sent together, before what was read is
# too old. After a part that was sent too late, parts have half as many groups.
GROUPS_AT_ONCE = 500
ROWS_AT_ONCE = 10_000
_MAY_BE_WRITTEN = [FailureKind.TIMEOUT.value, FailureKind.INTERNAL.value]
_NO_METADATA = (
    "committed without the source commit's metadata, which the target refuses as too large; raise "
    "offset.metadata.max.bytes there"
)

# Which rows of COMMIT_WORK are still to be decided, and what has happened to each.
_OPEN: Schema = {
    "row": pl.Int64,
    "group": pl.String,
    "attempts": pl.Int32,
    "without_metadata": pl.Boolean,
    # The failure after which the group is read again; null after one that needs no pause.
    "waits_for": pl.String,
    "first_read": pl.Float64,
}
_DONE: Schema = {"row": pl.Int64, **COMMIT_RESULTS}


class Time(Protocol):
    """The functions of the `time` module that are used here."""

    def monotonic(self) -> float: ...

    def time(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


@dataclass(frozen=True, slots=True)
class CommitResults:
    """COMMIT_RESULTS, and the longest time between asking for a group's offsets and sending its
    commit."""

    rows: pl.DataFrame
    longest_gap_seconds: float


def commit_groups(
    flow: FlowSettings,
    target: Cluster,
    work: pl.DataFrame,
    *,
    commit_to: pl.DataFrame | None,
    until: float | None = None,
    clock: Time = time,
) -> CommitResults:
    """Decide each row of `work` (COMMIT_WORK, a group's rows together) and, unless `commit_to` is
    None, commit what may be committed, until `until` (seconds since 1970 UTC). Running it again
    commits nothing twice.

    `commit_to` are the target topics as they were before translating (TARGET_TOPICS). A row fails
    if its topic was recreated since, or if that is not known.
    """
    work = select(work, COMMIT_WORK)
    committer = _Committer(flow, target, work, commit_to, until, clock)
    done = committer.run()
    # After the commits: no slow answer may come between reading offsets and sending them.
    done = _decide_with_own_log_end(target, work, done, flow.translation.floor)
    return CommitResults(select(done, COMMIT_RESULTS), committer.longest_gap_seconds)


def failed_results(work: pl.DataFrame, failed: Failed) -> pl.DataFrame:
    """COMMIT_RESULTS that say that nothing could be done for these rows."""
    rows = work.select("group").with_columns_seq(
        outcome=pl.lit(OutcomeKind.FAILED),
        reason=pl.lit(failed.kind),
        message=pl.lit(failed.message),
    )
    return select(rows, COMMIT_RESULTS)


def _of_same_topics(work: pl.DataFrame, is_same: pl.Expr) -> pl.DataFrame:
    """The work; rows with a translation fail if their target topic was recreated or cannot be
    described: a missing topic may be created again before the commit. The log start of such a topic
    is not committed either (`translation.floor`)."""
    work = without_changed(work, ~is_same & pl.col("target_offset").is_not_null())
    return work.with_columns_seq(null_where(~is_same, ["target_start", "target_end"]))


class _Committer:
    """Reads, decides and commits the groups in turns. Rows that cannot be decided yet wait for the
    next turn.

    No group waits for another one's open transaction or coordinator.
    """

    def __init__(
        self,
        flow: FlowSettings,
        target: Cluster,
        work: pl.DataFrame,
        commit_to: pl.DataFrame | None,
        until: float | None,
        clock: Time,
    ) -> None:
        self._target = target
        self._floor = flow.translation.floor
        self._work = work
        self._share_groups = frozenset(work.filter("is_share_group")["group"])
        self._commit_to = commit_to
        self._until = until
        self._clock = clock
        self._groups_at_once = GROUPS_AT_ONCE
        # True once a part was sent too late. Topics are then verified before the groups are read
        # and no longer at the same time, since describing many topics may be what took so long.
        self._is_late = False
        self._done: list[pl.DataFrame] = []
        # The results of commits that may have been written although no answer says so.
        self._sent = pl.DataFrame(schema=_DONE)
        self.longest_gap_seconds = 0.0

    def run(self) -> pl.DataFrame:
        """The rows of `_DONE`, in the order of the work."""
        unread = pl.col("source_topic").is_null()
        has_members = ~unread & pl.col("target_active").fill_null(False)
        rows = self._work.with_row_index("row").with_columns_seq(
            pl.col("row").cast(pl.Int64),
            attempts=pl.lit(0),
            without_metadata=pl.lit(False),
            is_open=~unread & ~has_members,
        )
        is_open = select(rows.filter("is_open"), _OPEN)
        while not is_open.is_empty():
            is_open = self._turn(is_open)
            if is_open["waits_for"].is_not_null().any():
                self._clock.sleep(_PAUSE_SECONDS)
        # No commit is sent to groups with members, so their offsets need not be stable.
        others = rows.filter(~pl.col("is_open"))
        names = others.filter(has_members)["group"].unique(maintain_order=True).to_list()
        found = committed_columns(
            self._target, names, share_groups=self._share_groups, require_stable=False
        )
        self._finish(decide(with_current(others, target_commits(found)), self._floor))
        return pl.concat(self._done).sort("row")

    def _finish(self, rows: pl.DataFrame) -> None:
        self._done.append(select(rows, _DONE))

    def _turn(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Read each group once; returns the rows of `_OPEN` that are left. An answer takes as long
        as the slowest coordinator, so groups of silent coordinators are read after the others."""
        silent = rows.filter(pl.col("waits_for") == FailureKind.TIMEOUT)["group"].unique()
        is_silent = pl.col("group").is_in(silent.implode())
        left = [
            self._part(part)
            for some in (rows.filter(~is_silent), rows.filter(is_silent))
            for part in self._parts(some)
        ]
        return pl.concat(left).sort("row")

    def _parts(self, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The rows of whole groups in parts, each as large as is allowed when it begins."""
        begin = end = groups = 0
        for size in rows["group"].rle().struct.field("len").to_list():
            too_many = groups >= self._groups_at_once or end - begin + size > ROWS_AT_ONCE
            if groups and too_many:
                yield rows[begin:end]
                begin, groups = end, 0
            end += size
            groups += 1
        if groups:
            yield rows[begin:end]

    def _part(self, part: pl.DataFrame) -> pl.DataFrame:
        """Read, decide and send these rows; returns those that are left."""
        # Always from the original work: deciding changes some of its columns.
        rows = self._work[part["row"]]
        topics = self._topics_to_verify(rows)
        verify = partial(target_topics, self._target, topics)
        read = partial(self._current, part["group"].unique(maintain_order=True).to_list())
        if self._is_late:
            now = verify()
            read_at = self._clock.monotonic()
            current = read()
        else:
            read_at = self._clock.monotonic()
            now, current = self._target.together([verify, read])
        if self._commit_to is not None:
            rows = _of_same_topics(rows, is_same_topic(self._commit_to, now))
        rows = rows.hstack(part.drop("group"))
        # Measured from here, not from `read_at`: a slow verification of topics must not use up a
        # group's time for retries.
        answered_at = self._clock.monotonic()
        rows = with_current(rows, current).with_columns(pl.col("first_read").fill_null(answered_at))
        waited = answered_at - pl.col("first_read")
        waits = (
            waited < pl.col("current_retry_seconds").clip(upper_bound=_RETRY_SECONDS)
        ).fill_null(False)
        waiting = rows.filter(waits).with_columns(waits_for="current_reason")
        rows = self._without_written(decide(rows.filter(~waits), self._floor))
        would_commit = pl.col("outcome") == OutcomeKind.WOULD_COMMIT
        pending = rows.filter(would_commit)
        if self._commit_to is None or pending.is_empty():
            self._finish(rows)
            return select(waiting, _OPEN)
        self._finish(rows.filter(~would_commit))
        return pl.concat([select(waiting, _OPEN), self._send(pending, read_at)])

    def _topics_to_verify(self, rows: pl.DataFrame) -> list[str]:
        """The target topics of rows of which something may be committed."""
        if self._commit_to is None:
            return []
        may_be_committed = pl.col("target_offset").is_not_null()
        if self._floor == "log_start":
            may_be_committed |= pl.col("target_start").is_not_null()
        return rows.filter(may_be_committed)["target_topic"].unique(maintain_order=True).to_list()

    def _current(self, groups: list[str]) -> pl.DataFrame:
        """What the groups have on the target (TARGET_COMMITS)."""
        found = committed_columns(
            self._target,
            groups,
            share_groups=self._share_groups,
            require_stable=True,
            within_seconds=READ_SECONDS,
        )
        return target_commits(found)

    def _without_written(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows, without those whose group now has the offset that was sent: these are done."""
        if self._sent.is_empty():
            return rows
        now = rows.select("row", now="current_target_offset")
        written = self._sent.join(now, on="row", validate="1:1", maintain_order="left").filter(
            pl.col("now") == pl.col("target_offset")
        )
        self._finish(written)
        return anti_join(rows, written, ["row"])

    def _send(self, pending: pl.DataFrame, read_at: float) -> pl.DataFrame:
        """Commit these rows; returns those that are to be decided again."""
        refused: dict[str, Failed] = {}
        sent: set[str] = set()

        def may_send(group: str) -> bool:
            gap = self._clock.monotonic() - read_at
            if self._until is not None and self._clock.time() >= self._until:
                refused[group] = self._past_deadline(group)
            elif gap > FRESH_SECONDS:
                refused[group] = self._too_late(group)
            else:
                self.longest_gap_seconds = max(self.longest_gap_seconds, gap)
                sent.add(group)
                return True
            return False

        failures = send(self._target, pending, self._share_groups, may_send, refused)
        if refused:
            self._groups_at_once = max(1, self._groups_at_once // 2)
            self._is_late = True
        return self._take_answers(pending, failures, sent)

    def _take_answers(
        self, pending: pl.DataFrame, failures: pl.DataFrame, sent: set[str]
    ) -> pl.DataFrame:
        """Finish the rows that the answers decide; returns those to be decided again."""
        committed = pl.lit(OutcomeKind.COMMITTED)
        no_metadata = pl.when("without_metadata").then(pl.lit(_NO_METADATA))
        if failures.is_empty():
            self._finish(pending.with_columns_seq(outcome=committed, message=no_metadata))
            return pl.DataFrame(schema=_OPEN)
        rows = left_join(pending, failures, TARGET_PARTITION)
        answer, not_sent = pl.col("answer"), pl.col("not_sent")
        drop_metadata = pl.col("metadata_too_large") & ~pl.col("without_metadata")
        attempts = pl.col("attempts") + (~drop_metadata).cast(pl.Int32)
        # Without an answer, or with one that cannot be understood, the commit may have been
        # written: the group is read again, always.
        may_be_written = answer.is_in(_MAY_BE_WRITTEN) & ~not_sent & (attempts == 1)
        is_final = pl.col("missing") | pl.col("group_active")
        again = (answer.is_not_null() & ~is_final) & (
            drop_metadata | may_be_written | (pl.col("answer_retry_seconds") > 0)
        )
        rows = rows.with_columns_seq(
            again=(again & (attempts < _ATTEMPTS)).fill_null(False),
            attempts=attempts.fill_null(0),
            # No pause before rows that were not sent, or that are sent again without metadata.
            waits_for=pl.when(~not_sent & ~pl.col("metadata_too_large")).then(answer),
            without_metadata=pl.col("without_metadata") | drop_metadata.fill_null(False),
        )
        left = rows.filter("again")
        unanswered = left.filter(pl.col("waits_for").is_not_null() & pl.col("group").is_in(sent))
        unanswered = select(
            unanswered.with_columns_seq(outcome=committed, message=no_metadata), _DONE
        )
        older = anti_join(self._sent, unanswered, ["row"])
        self._sent = pl.concat([older, unanswered])
        verdict = (
            pl.when(answer.is_null())
            .then(committed)
            .when("group_active")
            .then(pl.lit(Reason.GROUP_ACTIVE))
            .when("missing")
            .then(pl.lit(Reason.TARGET_MISSING))
            .otherwise(answer)
        )
        done = with_outcome(rows.filter(~pl.col("again")), verdict)
        is_answer = pl.col("reason") == answer
        is_committed = pl.col("outcome") == OutcomeKind.COMMITTED
        self._finish(
            done.with_columns(
                message=pl.when(is_committed)
                .then(no_metadata)
                .when(is_answer)
                .then("answer_message")
                .otherwise("message")
            )
        )
        return select(left, _OPEN)

    def _past_deadline(self, group: str) -> Failed:
        return Failed(
            FailureKind.TIMEOUT,
            f"commit offsets of group {group}, cluster {self._target.alias}: the deadline of "
            "this attempt has passed, and a newer attempt may have committed since; nothing was "
            "sent, and the next cycle decides again; if it fails, too, check that the clocks of "
            "driver and executors agree",
        )

    def _too_late(self, group: str) -> Failed:
        return Failed(
            FailureKind.TIMEOUT,
            f"commit offsets of group {group}, cluster {self._target.alias}: {_ATTEMPTS} times, "
            f"more than {FRESH_SECONDS:g} s passed after its offsets were read, and it may have "
            "moved since; nothing was sent; check the load of this machine, of the brokers and of "
            "the network; the next cycle tries again",
            retry_seconds=_RETRY_SECONDS,
        )


def _decide_with_own_log_end(
    target: Cluster, work: pl.DataFrame, done: pl.DataFrame, floor: str
) -> pl.DataFrame:
    """The rows. Those whose group seems to be past its log's end are decided again, with the log's
    present range, or with none if that cannot be read. The group may be at records that were
    written since translating, or in an open transaction; both are harmless."""
    is_past = pl.col("reason") == Reason.TARGET_PAST_LOG_END
    suspects = done.filter(is_past)
    if suspects.is_empty():
        return done
    rows = work[suspects["row"]].hstack(suspects.select("row", "current_target_offset"))
    rows = with_log_ranges(target, rows).with_columns_seq(
        pl.lit(None, pl.String).alias(name) for name in ("current_reason", "current_message")
    )
    again = select(decide(rows, floor), _DONE)
    return pl.concat([done.filter(is_past.ne_missing(True)), again]).sort("row")
