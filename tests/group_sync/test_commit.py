"""When target groups' offsets are read and committed, and what may come between."""

from collections import Counter
from typing import NamedTuple

import polars as pl
import pytest

from tests.memory_flows import (
    COMMITTED,
    NOW_MS,
    UNCHANGED,
    Estate,
    failed,
    flow,
    messages,
    mirrored_estate,
    row_of,
    skipped,
    verdict,
)
from tsoffset.cycle.source_commits import preflight
from tsoffset.group_sync.commit import FRESH_SECONDS, commit_groups, failed_results
from tsoffset.group_sync.cycle import cycle
from tsoffset.group_sync.open_flow import OpenFlow
from tsoffset.group_sync.same_logs import (
    is_same_topic,
    target_topics,
    topics_frame,
    with_one_id,
)
from tsoffset.group_sync.tables import TARGET_TOPICS
from tsoffset.group_sync.translated_commits import commit_work, result_rows
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    OutcomeKind,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.testing.memory_cluster import MemoryCluster, Verb

COPY = TopicPartition("A.orders", 0)
GROUPS = ("first", "second", "third")


def passing(kind: FailureKind = FailureKind.COORDINATOR, seconds: float = 2.5) -> Failed:
    return Failed(kind, f"made to fail with {kind}; ask again", retry_seconds=seconds)


class OrderedTarget(MemoryCluster):
    """The cluster `inner`, of which each test orders what happens meanwhile."""

    def __init__(self, inner, clock):
        vars(self).update(vars(inner))
        self.time = clock
        self.looks = []
        self.sent_at = []
        self.after_looks = []
        self.after_commits = []
        self.asked_at_once = []
        self.seconds_a_look = self.seconds_a_group = self.seconds_a_commit = 0.0
        self.seconds_to_describe = 0.0

    def together(self, calls):
        before = len(self.requests)
        answers = super().together(calls)
        self.asked_at_once.append([request.verb for request in self.requests[before:]])
        return answers

    def topics(self, names=None):
        self.time.now += self.seconds_to_describe
        return super().topics(names)

    def committed(self, groups, *, share_groups=(), require_stable, within_seconds=None):
        self.looks.append((tuple(groups), require_stable))
        answers = super().committed(groups, require_stable=require_stable)
        self.time.now += self.seconds_a_look + self.seconds_a_group * len(answers.groups)
        if self.after_looks:
            self.after_looks.pop(0)()
        return answers

    def commit(self, commits, *, share_groups=(), may_send=None):
        def send(group):
            allowed = may_send is None or may_send(group)
            if allowed:
                self.sent_at.append((group, self.time.now))
            self.time.now += self.seconds_a_commit
            return allowed

        answers = super().commit(commits, may_send=send)
        if self.after_commits:
            self.after_commits.pop(0)()
        return answers

    def move(self, group, offset):
        """What a committer without membership does: `assign()`, Flink, a reset."""

        def moved():
            self.group(group).offsets[COPY] = CommittedOffset(offset)

        return moved


@pytest.fixture
def estate() -> Estate:
    """Three groups at 40, mirrored; none of them on the target yet."""
    made = mirrored_estate()
    for group in GROUPS:
        made.commit(group, "orders", 40)
    return made


@pytest.fixture
def target(estate) -> OrderedTarget:
    return OrderedTarget(estate["B"], estate.time)


def sync(estate, target):
    return cycle(flow(), estate["A"], target, clock=estate.time)


class Done(NamedTuple):
    rows: list[Row]
    longest_gap_seconds: float


def settled(estate: Estate, target: MemoryCluster, until: float | None = None) -> Done:
    """The last step alone."""
    opened = OpenFlow(flow(), estate["A"], target, ())
    groups = preflight(flow(), estate["A"], target).groups
    topics = target_topics(target, [COPY.topic])
    work = commit_work(opened.translate(opened.commits(groups)))
    done = commit_groups(flow(), target, work, commit_to=topics, until=until, clock=estate.time)
    return Done(list(result_rows("A->B", work, done.rows)), done.longest_gap_seconds)


# --- no group waits for others ------------------------------------------------------------


def test_a_group_in_an_open_transaction_is_waited_for_alone(estate, target):
    """The others are read and committed before anybody waits, on what they had just then. The one
    fails within a few seconds, with the broker's cause and next step."""
    target.group("second").pending[COPY] = CommittedOffset(90)
    rows = sync(estate, target)
    assert [verdict(row_of(rows, group)) for group in GROUPS] == [
        COMMITTED,
        failed(FailureKind.COORDINATOR),
        COMMITTED,
    ]
    assert dict(target.sent_at) == {"first": 0.0, "third": 0.0}
    assert target.looks[0] == (GROUPS, True)
    assert set(target.looks[1:]) == {(("second",), True)}
    assert "a transaction with this offset is open" in (row_of(rows, "second").message or "")
    assert 2.5 <= estate.time.now <= 3.5


def test_a_topic_made_anew_between_two_parts_moves_no_further_group(estate, target, monkeypatch):
    """The translated offset lies in the new log, too, after records that the groups have not
    read."""
    monkeypatch.setattr("tsoffset.group_sync.commit.GROUPS_AT_ONCE", 1)

    def remake():
        target.delete_topic(COPY.topic)
        target.create_topic(COPY.topic)
        target.log(COPY.topic).append(messages("orders", range(100)))

    target.after_commits = [remake]
    rows = sync(estate, target)
    assert [verdict(row_of(rows, group)) for group in GROUPS] == [
        COMMITTED,
        *[failed(FailureKind.NO_LEADER)] * 2,
    ]


def test_a_transaction_that_ends_meanwhile_counts(estate, target):
    """What it committed is what the group has, whether that is more than the translation."""
    for group, offset in (("first", 90), ("second", 10)):
        target.group(group).pending[COPY] = CommittedOffset(offset)
        target.after_looks.append(lambda: None)
    target.after_looks[1] = lambda: [
        target.group(group).end_transaction() for group in ("first", "second")
    ]
    rows = sync(estate, target)
    assert verdict(row_of(rows, "first")) == skipped(Reason.TARGET_AHEAD)
    assert verdict(row_of(rows, "second")) == COMMITTED
    assert row_of(rows, "second").current_target_offset == 10


def test_a_partition_in_a_transaction_holds_no_other_of_its_group():
    """They are committed at once; the one that waits is decided alone."""
    estate = mirrored_estate(partitions=2)
    for number in range(2):
        estate.commit("billing", "orders", 40, partition=number)
    target = OrderedTarget(estate["B"], estate.time)
    target.group("billing").pending[COPY] = CommittedOffset(90)
    rows = sync(estate, target)
    assert [verdict(row) for row in rows] == [failed(FailureKind.COORDINATOR), COMMITTED]
    assert target.sent_at == [("billing", 0.0)]


def test_a_coordinator_that_has_loaded_is_asked_again(estate, target):
    """In the same cycle; the groups of the others were committed before."""
    target.fail(passing(), verb=Verb.COMMITTED, group="first", times=2)
    rows = sync(estate, target)
    assert {verdict(row) for row in rows} == {COMMITTED}
    times = dict(target.sent_at)
    assert times["second"] == times["third"] == 0.0 < times["first"]


def test_a_silent_coordinator_is_asked_apart(estate, target):
    """A look lasts as long as its slowest answer, so another group that waits, and comes right,
    has a look of its own: else its offsets would be too old whenever they come."""
    target.fail(passing(FailureKind.TIMEOUT, 60.0), verb=Verb.COMMITTED, group="first")
    target.fail(passing(), verb=Verb.COMMITTED, group="third", times=1)
    rows = sync(estate, target)
    assert verdict(row_of(rows, "first")) == failed(FailureKind.TIMEOUT)
    assert verdict(row_of(rows, "third")) == COMMITTED
    assert target.looks[1:3] == [(("third",), True), (("first",), True)]
    assert estate.time.now <= 16.0


def test_groups_known_active_are_not_asked_for_stable_offsets(estate, target):
    """A transactional consumer of the target nearly always has an offset in a transaction. Nothing
    is committed for it, so the cycle does not wait until the offset is stable."""
    target.group("second").state = "Stable"
    target.group("second").offsets[COPY] = CommittedOffset(5)
    target.group("second").pending[COPY] = CommittedOffset(90)
    row = row_of(sync(estate, target), "second")
    assert verdict(row) == skipped(Reason.GROUP_ACTIVE)
    assert row.current_target_offset == 5
    assert estate.time.sleeps == 0
    assert Counter(target.looks) == {(("second",), False): 1, (("first", "third"), True): 1}


# --- what may come between reading and committing -----------------------------------------


def test_topics_are_verified_while_groups_are_read(estate, target):
    """One wait for both."""
    sync(estate, target)
    assert target.asked_at_once[-1] == [Verb.TOPICS, Verb.COMMITTED]


def test_topics_whose_description_takes_long_are_verified_before(estate, target):
    """Else every commit would come too late. A group whose offsets are not stable at first is read
    again, as ever."""
    target.fail(passing(), verb=Verb.COMMITTED, group="first", times=1)
    target.seconds_to_describe = FRESH_SECONDS + 1
    rows = sync(estate, target)
    assert {verdict(row) for row in rows} == {COMMITTED}
    assert len(target.looks) == 2


@pytest.mark.parametrize("ids", [("old", "new"), ("new", "old"), ("new", None), (None, "new")])
def test_a_topic_that_tasks_have_seen_with_two_ids_is_not_known(ids):
    """Some of its offsets may be of the old log, whichever task comes first."""
    seen = pl.DataFrame([(COPY.topic, one) for one in ids], TARGET_TOPICS, orient="row")
    now = topics_frame([COPY.topic], {COPY.topic: "new"})
    rows = pl.DataFrame({"target_topic": [COPY.topic]})
    assert rows.select(is_same_topic(with_one_id(seen), now)).item() is False


def test_a_committer_that_moves_on_between_look_and_commit_is_not_moved_back(estate, target):
    """Where the look took long, what it found is read again before anything is sent."""
    target.seconds_a_look = FRESH_SECONDS + 1
    target.after_looks = [target.move("second", 70), lambda: setattr(target, "seconds_a_look", 0.0)]
    rows = sync(estate, target)
    assert verdict(row_of(rows, "second")) == skipped(Reason.TARGET_AHEAD)
    assert target.group("second").offsets[COPY].offset == 70
    assert {group for group, _ in target.sent_at} == {"first", "third"}


def test_two_instances_at_worst_bring_records_again(estate, target):
    """Another instance's whole cycle, for a later commit on the source, runs between our look and
    our commit: the group stands further back than it could, never further than its source, and
    the next cycle of either moves it on."""

    def later():
        for group in GROUPS:
            estate.commit(group, "orders", 60)
        cycle(flow(), estate["A"], estate["B"], clock=estate.time)
        assert offsets() == [60] * len(GROUPS)

    def offsets():
        return [target.group(group).offsets[COPY].offset for group in GROUPS]

    target.after_looks = [later]
    sync(estate, target)
    assert offsets() == [40] * len(GROUPS)
    sync(estate, target)
    assert offsets() == [60] * len(GROUPS)


def test_a_commit_without_an_answer_is_not_sent_over_one_that_came_since(estate, target):
    """It was written, its answer was lost, and the group's consumer went on from it: the group
    is read again and left where it is."""
    fault = passing(FailureKind.TIMEOUT, 60.0)
    target.fail(fault, verb=Verb.COMMIT, group="second", times=1, takes_effect=True)
    target.after_commits = [target.move("second", 70)]
    row = row_of(sync(estate, target), "second")
    assert verdict(row) == skipped(Reason.TARGET_AHEAD)
    assert Counter(group for group, _ in target.sent_at)["second"] == 1
    assert target.group("second").offsets[COPY].offset == 70


@pytest.mark.parametrize(("written", "sent"), [(True, 1), (False, 2)])
def test_a_commit_without_an_answer_is_looked_for(estate, target, written, sent):
    """If it is found, the row says committed; otherwise it is decided and sent again."""
    fault = passing(FailureKind.TIMEOUT, 60.0)
    target.fail(fault, verb=Verb.COMMIT, group="second", times=1, takes_effect=written)
    row = row_of(sync(estate, target), "second")
    assert verdict(row) == COMMITTED
    assert (row.target_offset, row.current_target_offset) == (40, None)
    assert Counter(group for group, _ in target.sent_at)["second"] == sent


def test_a_commit_that_is_never_answered_is_given_up(estate, target):
    """After a few attempts, each decided on what the group had then."""
    target.fail(passing(), verb=Verb.COMMIT, group="second")
    row = row_of(sync(estate, target), "second")
    assert verdict(row) == failed(FailureKind.COORDINATOR)
    looks = [groups for groups, _ in target.looks if "second" in groups]
    assert len(looks) == Counter(group for group, _ in target.sent_at)["second"] == 4


def test_metadata_that_is_left_out_is_not_sent_over_another_commit():
    """The second commit of such a group, too, is decided on what it has then."""
    estate = mirrored_estate(max_metadata_length=20)
    estate.commit("billing", "orders", 40, metadata="x" * 21)
    target = OrderedTarget(estate["B"], estate.time)
    target.after_commits = [target.move("billing", 70)]
    assert verdict(row_of(sync(estate, target), "billing")) == skipped(Reason.TARGET_AHEAD)
    assert estate.standing("billing", "A.orders") == CommittedOffset(70)


def test_many_groups_are_read_and_committed_in_parts():
    """Whatever a commit takes: no part is sent on offsets that were read too long ago, the
    longest time is told, and each group is committed once."""
    estate = mirrored_estate()
    for number in range(1_200):
        estate.commit(f"g{number:04}", "orders", 40)
    target = OrderedTarget(estate["B"], estate.time)
    target.seconds_a_commit = 0.01
    done = settled(estate, target)
    assert {row.outcome for row in done.rows} == {OutcomeKind.COMMITTED}
    assert [row.group for row in done.rows] == [f"g{number:04}" for number in range(1_200)]
    assert set(Counter(group for group, _, _ in target.commits).values()) == {1}
    assert FRESH_SECONDS - 0.02 <= done.longest_gap_seconds <= FRESH_SECONDS
    assert len(target.looks) < 20


def test_parts_become_smaller_where_they_take_too_long():
    """Until what is read is sent in time."""
    estate = mirrored_estate()
    for number in range(600):
        estate.commit(f"g{number:03}", "orders", 40)
    target = OrderedTarget(estate["B"], estate.time)
    target.seconds_a_group = FRESH_SECONDS / 200
    rows = sync(estate, target)
    assert {row.outcome for row in rows} == {OutcomeKind.COMMITTED}


def test_a_machine_that_is_always_too_late_commits_nothing(estate, target):
    """Its rows say so; better no commit than one on what the group had before."""
    target.seconds_a_look = FRESH_SECONDS + 1
    rows = sync(estate, target)
    assert {verdict(row) for row in rows} == {failed(FailureKind.TIMEOUT)}
    assert all("after its offsets were read" in (row.message or "") for row in rows)
    assert target.commits == []


def test_a_task_that_breaks_fails_each_of_its_rows():
    """As many results as rows, and nothing of their translations."""
    work = pl.DataFrame(
        {"group": ["a", "a", "b"], "target_offset": [1, 2, 3], "precision": "exact"}
    )
    rows = failed_results(work, passing(FailureKind.INTERNAL))
    assert rows["reason"].to_list() == [FailureKind.INTERNAL] * 3
    assert rows["target_offset"].null_count() == rows["precision"].null_count() == 3


# --- attempts that were given up ----------------------------------------------------------


def test_a_late_attempt_commits_nothing(estate, target):
    """A newer one may have committed since. What is not to be committed stays what it is."""
    target.group("first").offsets[COPY] = CommittedOffset(40)
    done = settled(estate, target, until=NOW_MS / 1000)
    assert verdict(row_of(done.rows, "first")) == UNCHANGED
    late = [row_of(done.rows, group) for group in ("second", "third")]
    assert {verdict(row) for row in late} == {failed(FailureKind.TIMEOUT)}
    assert all("the deadline of this attempt has passed" in (row.message or "") for row in late)
    assert target.commits == []
    assert done.longest_gap_seconds == 0.0


def test_an_attempt_that_becomes_late_stops_committing(estate, target):
    """At that moment, in the middle of its groups."""
    target.seconds_a_commit = 0.5
    done = settled(estate, target, until=NOW_MS / 1000 + 0.75)
    assert [verdict(row_of(done.rows, group)) for group in GROUPS] == [
        COMMITTED,
        COMMITTED,
        failed(FailureKind.TIMEOUT),
    ]


# --- a system clock that is set -------------------------------------------------------------


def test_a_clock_that_is_set_forward_costs_one_cycle(estate, target, monkeypatch):
    """All attempts count as given up at once; the next cycle counts from the new time."""
    until = estate.time.time() + 600
    monkeypatch.setattr(estate.time, "time", lambda: NOW_MS / 1000 + 3600)
    done = settled(estate, target, until=until)
    assert {verdict(row) for row in done.rows} == {failed(FailureKind.TIMEOUT)}
    assert target.commits == []
    done = settled(estate, target, until=estate.time.time() + 600)
    assert {row.outcome for row in done.rows} == {OutcomeKind.COMMITTED}


def test_a_clock_that_is_set_back_moves_no_group_back(estate, target, monkeypatch):
    """An attempt that was given up may go on then, and decides on what the groups have now."""
    until = estate.time.time() - 1
    target.group("first").offsets[COPY] = CommittedOffset(45)
    monkeypatch.setattr(estate.time, "time", lambda: NOW_MS / 1000 - 3600)
    done = settled(estate, target, until=until)
    assert verdict(row_of(done.rows, "first")) == skipped(Reason.TARGET_AHEAD)
    assert target.group("first").offsets[COPY] == CommittedOffset(45)
