"""Small logs that the rule has been wrong about, or could be: each says which rule it needs.

Logs are written as words, one record each: `a` is a record with key, value and a time of its
own; `a1 a2` have the key in common, `d d'` are equal (duplicates), `x@4` bears the time 4, and
`x@-` none. `-a` is a record that compaction took (then the topic's policy is to compact), `|`
begins a segment, `[ ]` only mark a series, `e=4` has an offset header that says 4.
"""

import re
from typing import Any

import pytest

from tests.random_logs import Kind
from tests.replication_model import HEADER, NOW_MS, SOURCE, TARGET, Failback, World
from tests.replicator import ReplicatorHistory
from tests.translating import questions_since_last_time, translated_of
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import (
    Isolation,
    Outcome,
    Precision,
    Reason,
    Skipped,
    TimestampType,
    TopicPartition,
    Translated,
)
from tsoffset.testing.memory_cluster import MemoryCluster, Message, PartitionLog

LATER_MS = NOW_MS + 1_000_000


class Logs:
    """A source and what lies on its target; the truth is in the names.

    `padding` is by how many bytes each value is longer than its name. In `failback` the source is
    the replica, and the target its original. With `compacted` the target's policy is to compact,
    though that took nothing.
    """

    def __init__(
        self,
        source: str,
        target: str,
        *,
        source_from: int = 0,
        target_from: int = 0,
        padding: int = 0,
        failback: bool = False,
        compacted: bool = False,
    ) -> None:
        self.times: dict[str, int | None] = {}
        self.padding = b"." * padding
        self.failback = failback
        self.source_cluster = _cluster("A", SOURCE, compacted=_compacted(source))
        self.target_cluster = _cluster("B", TARGET, compacted=compacted or _compacted(target))
        self.source = self.source_cluster.log(SOURCE.topic)
        self.target = self.target_cluster.log(TARGET.topic)
        self.headers = "=" in target
        self.names = self._write(self.source, source)
        self.origins = {name: offset for offset, name in self.names.items()}
        self.target_names = self._write(self.target, target)
        self.copies = {
            offset: self.origins[name]
            for offset, name in self.target_names.items()
            if name in self.origins
        }
        if source_from:
            self.source.delete_records(source_from)
        if target_from:
            self.target.delete_records(target_from)

    def as_written(self, message: Message) -> Message:
        """What is written for a word; logs of another kind change it."""
        return message

    def _write(self, log: PartitionLog, words: str) -> dict[int, str]:
        names: dict[int, str] = {}
        gone: list[int] = []
        for word in re.sub(r"[\[\]]", " ", words).split():
            if word == "|":
                log.roll()
                continue
            name, _, said = word.lstrip("-").partition("=")
            name, _, time = name.partition("@")
            content = name.rstrip("'")
            new = None if time == "-" else int(time or len(self.times))
            stamp = self.times.setdefault(content, new)
            stamp_ms = None if stamp is None else NOW_MS + stamp
            headers = ((HEADER.name, int(said).to_bytes(8, "big")),) if said else ()
            value = content.encode() + self.padding
            message = Message(stamp_ms, content[:1].encode(), value, headers)
            offset = log.append([self.as_written(message)])
            names[offset] = name
            if word.startswith("-"):
                gone.append(offset)
        log.clock.now_ms = LATER_MS
        log.remove(gone)
        return names

    def outcomes(
        self,
        *committed: int,
        identity: bool = False,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        settings: TranslationSettings | None = None,
    ) -> dict[int, Outcome]:
        """Of positions that are asked together. With `identity` no name tells which side is the
        replica."""
        found = translated_of(
            self.source_cluster,
            self.target_cluster,
            *committed,
            is_remote_topic=not (identity or self.failback),
            failback=self.failback and not identity,
            isolation=isolation,
            translation=settings
            or TranslationSettings(offset_header=HEADER if self.headers else None),
        )
        return {offset: translation.outcome for offset, translation in found.items()}

    def outcome(self, committed: int, **asked: Any) -> Outcome:
        """Of a position that is asked alone, as `outcomes`."""
        return self.outcomes(committed, **asked)[committed]

    def translated(self, committed: int, **asked: Any) -> Translated:
        """The answer for a position that is asked alone; there is one."""
        outcome = self.outcome(committed, **asked)
        assert isinstance(outcome, Translated), (committed, outcome)
        return outcome

    def everyone(self, *committed: int) -> list[tuple[int, ...]]:
        """Each of these positions (else of all there are) alone, and all of them together."""
        together = committed or tuple(range(self.source.start, self.source.end + 1))
        return [*((offset,) for offset in together), together]

    @property
    def world(self) -> World:
        """The truth about both logs as they are now: one replicator wrote the copies, and stands
        behind the last one. In failback nothing is known of how far it has read."""
        clusters, written = (self.source_cluster, self.target_cluster), dict(self.source.messages())
        if self.failback:
            originals = {name: offset for offset, name in self.target_names.items()}
            run = [(originals[it], at) for at, it in self.names.items() if it in originals]
            return Failback(*clusters, Kind(failback=True), ReplicatorHistory([run]), written)
        run = [(origin, at) for at, origin in self.copies.items()]
        stands = run[-1][0] + 1 if run else 0
        return World(*clusters, Kind(), ReplicatorHistory([run], stands), written)

    def assert_passes_nothing(self, committed: int, outcome: Outcome) -> None:
        """The answer is none, or lies within the log and passes nothing that the group has to
        read."""
        assert isinstance(outcome, Translated | Skipped), (committed, outcome)
        if isinstance(outcome, Translated):
            true = self.world.true_position(committed)
            assert self.target.start <= outcome.target_offset <= true, (committed, outcome, true)

    def assert_safe(self, committed: int, outcome: Outcome) -> None:
        """It passes nothing, and no more comes again than it says."""
        self.assert_passes_nothing(committed, outcome)
        if isinstance(outcome, Translated):
            again = self.world.rereads(committed, outcome.target_offset)
            assert outcome.reread_bound is not None
            assert again <= outcome.reread_bound, (committed, outcome, again)

    def assert_loses_no_content(self, committed: int, outcome: Outcome) -> None:
        """What it passes equals what the group has read or will read, so that no reader of both
        logs could tell the difference."""
        if isinstance(outcome, Translated):
            is_safe = self.world.is_safe(committed, outcome.target_offset)
            assert is_safe or self.world.excuse(committed, outcome) == "equal", (committed, outcome)

    def assert_skips_nothing(self, *committed: int, **asked: Any) -> None:
        """None of these positions passes anything, nor any where none is given: each asked alone,
        and all together."""
        for together in self.everyone(*committed):
            for offset, outcome in self.outcomes(*together, **asked).items():
                self.assert_passes_nothing(offset, outcome)

    def assert_all_safe(self, *committed: int, **asked: Any) -> None:
        """The same, and all bounds hold."""
        for together in self.everyone(*committed):
            for offset, outcome in self.outcomes(*together, **asked).items():
                self.assert_safe(offset, outcome)

    def assert_exact(self, committed: int, target_offset: int) -> None:
        """The answer resumes at the record at this target offset."""
        outcome = self.translated(committed)
        assert outcome.precision is Precision.EXACT, (committed, outcome)
        assert outcome.equivalent_from <= target_offset <= outcome.equivalent_to, (
            committed,
            outcome,
        )
        self.assert_safe(committed, outcome)


def _cluster(alias: str, partition: TopicPartition, *, compacted: bool) -> MemoryCluster:
    cluster = MemoryCluster(alias, offset_header=HEADER)
    policy = "compact" if compacted else "delete"
    cluster.create_topic(partition.topic, configs={"cleanup.policy": policy})
    return cluster


def _compacted(words: str) -> bool:
    return re.search(r"(^|[\s\[])-", words) is not None


def run(letter: str, first: int, end: int, *, at: int, step: int = 1) -> str:
    """Words for the records first..end-1 of a letter, with times that rise by `step`."""
    return " ".join(
        f"{letter}{number}@{at + step * (number - first)}" for number in range(first, end)
    )


# --- mirrored again -------------------------------------------------------------------------

ANEW = "a1 b1 c1 d1 e1 f1 g1 a2 b2 c2 d2 e2 f2 g2 x1"
MIRRORED_ANEW = (
    "-a1 -b1 -c1 -d1 -e1 -f1 -g1 | a2 b2 c2 d2 e2 f2 g2 x1 [a1 b1 c1 d1 e1 f1]",
    # The same without an emptied segment: the cleaner merged it into the next.
    "-a1 -b1 -c1 -d1 -e1 -f1 -g1 a2 b2 c2 d2 e2 f2 g2 x1 [a1 b1 c1 d1 e1 f1]",
)


HEADED_ANEW = re.sub(r"\w\d", lambda it: f"{it[0]}={ANEW.split().index(it[0])}", MIRRORED_ANEW[1])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        # F is x1, f its copy at 14: the e1 at 19 lies behind f, so it is no answer (a2..x1
        # lie below it only).
        *((ANEW, target) for target in MIRRORED_ANEW),
        # A header says where a copy lies, not that the frontier lies behind it.
        (ANEW, HEADED_ANEW),
        # A retried batch: b@5 is out of order behind x@4, and the first a and b are gone from the
        # target. The b at 6 is the copy of the second: x and a lie before it.
        ("p@0 q@1 a@3 b@5 x@4 a' b' y@7 z@8", "p q -a -b x a' b' y z"),
        # The copy of the second x is left out, and the first one's is taken for it. The
        # replicator still passed what follows the first.
        ("a x b c x' d e", "a x b c d e"),
        # The first x is left out; the x at 3 is the second's, and b and c lie before it.
        ("a x b c x' d e", "a b c x' d e"),
        # z is twice on the source, its second copy lies in front of others: the frontier is the
        # highest record that nothing else is taken for, or as high as counting shows.
        ("a b z c d z' e f", "a b z c d z' [b z c d]"),
        # Begun at e, set back to a: behind the named copies of a..c the records e..h never come.
        ("a b c d e f g h", "e=4 f=5 g=6 h=7 [a=0 b=1 c=2]"),
    ],
)
def test_every_answer_is_safe(source, target):
    """Asked alone and together: nothing is passed, and the bounds hold."""
    Logs(source, target).assert_all_safe()


@pytest.mark.parametrize("target", MIRRORED_ANEW)
def test_the_same_holds_where_the_broker_knows_no_youngest_record(target, monkeypatch):
    """As before Kafka 3.0. Lookups behind an emptied segment find not even the last record, so
    that they find no later one is no hint that the mirror has not come further."""
    monkeypatch.setattr(PartitionLog, "youngest", lambda *_: None)
    Logs(ANEW, target).assert_all_safe()


@pytest.mark.parametrize("target", MIRRORED_ANEW)
@pytest.mark.parametrize(("committed", "resumed"), [*((at, at) for at in range(8, 15)), (15, 21)])
def test_records_before_the_frontier_answer_though_the_log_ends_in_a_repeat(
    target, committed, resumed
):
    """Their copies lie before that of the highest record: everything after them lies behind those.
    (What compaction took from the beginning may have been copied or not: it is counted.) A
    caught-up group is at the end."""
    logs = Logs(ANEW, target)
    outcome = logs.translated(committed)
    assert outcome.target_offset == resumed
    logs.assert_safe(committed, outcome)


@pytest.mark.parametrize("repeat", ["a b c d e f g h", "a b c"])
def test_a_mirror_set_back_before_its_beginning_counts_what_comes_first_in_the_repeat(repeat):
    """It began at e: for a group at g a..d come for the first time behind that; in a mirror that
    has come to c, d later still."""
    logs = Logs("a b c d e f g h", f"e f g h [{repeat}]")
    logs.assert_all_safe()
    outcome = logs.translated(6)
    assert outcome.target_offset == 2
    assert outcome.reread_bound is not None
    assert outcome.reread_bound >= 4


def test_records_that_the_replica_lacks_hide_no_restart_before_its_beginning():
    """No name tells that the source is the replica. It began at e, was set back to a, and has
    nothing of the original's end: what the group has read comes again from a on."""
    end = " ".join(f"n{n}@{20 + n}" for n in range(20))
    logs = Logs("e@5 f@6 g@7 h@8 a@1 b@2 c@3 d@4 e' f' g' h'", f"a b c d e f g h {end}")
    logs.assert_all_safe(3, identity=True)


# --- equal records --------------------------------------------------------------------------


def test_a_distance_that_a_repeat_brings_about_proves_no_copy():
    """The second e lies two further on the target, as far as the repeat of a and b is long: the
    e at 6 is the first one's, and behind it e and d come again."""
    logs = Logs("a b c d e d' e' f", "a b [a b] c d e d' e' f")
    logs.assert_all_safe()
    outcome = logs.translated(6)
    assert outcome.target_offset in (6, 8)


def test_a_pair_that_is_as_far_away_by_chance_tells_no_duplicate_apart():
    """c, the second x and d were left out, so the copy of the first x is as far from that of e as
    the second x is from e. Behind it x and b come again."""
    logs = Logs("a x b c x' d e", "a x b e")
    logs.assert_all_safe(4)
    logs.assert_all_safe(5)


# --- offset headers -------------------------------------------------------------------------


def test_copies_without_a_header_lie_on_the_target_too():
    """Headers were switched on at a restart: e and f with one lie behind g and h without."""
    logs = Logs("a b c d e f g h", "a b c d e f g h [e=4 f=5]")
    logs.assert_all_safe()
    for committed in range(8):
        logs.assert_exact(committed, committed)
    logs.assert_exact(8, 10)


def test_a_copy_without_a_header_may_be_any_equal_ones():
    """The x in the middle bears none: it may be the second's, so a group between both resumes at
    it or before it."""
    logs = Logs("a x x' b", "a=0 x' b=3")
    logs.assert_all_safe()
    outcome = logs.translated(2)
    assert outcome.target_offset <= 1


@pytest.mark.parametrize(
    "target",
    ["a=3 b=4 c=5 d=6 e=7 f=8 g=9 h=10", "a=0 b=0 c=0 d=3 e=3 f=3 g=6 h=6", "a b=1 c d=3 e f g h"],
)
def test_headers_that_are_off_stale_or_missing_cost_no_answer(target):
    """Content decides where the header's record has another one."""
    logs = Logs("a b c d e f g h", target)
    logs.assert_all_safe()
    for committed in range(9):
        logs.assert_exact(committed, committed)


# --- filters, losses ------------------------------------------------------------------------


def test_a_record_that_came_first_in_a_repeat_is_safe():
    """The filter was widened at a restart: c lies in the repeat only, d in front of it and behind
    it. The lowest copy of d answers for d; for c only what lies before that d does."""
    Logs("a b c d e f", "a b d e [b c d e f]").assert_skips_nothing()


def test_a_repeat_whose_first_copies_compaction_took_skips_nothing():
    """Of 50..60, which were copied again, the second copies are left: behind one of them the
    records after 60 would never come."""
    first, again, rest = (run("r", *part, at=part[0]) for part in ((0, 50), (50, 61), (61, 100)))
    gone = " ".join(f"-{word}" for word in again.split())
    logs = Logs(f"{first} {again} {rest}", f"{first} {gone} {rest} [{again}]")
    logs.assert_skips_nothing(*range(0, 45, 5), *range(45, 66), *range(70, 101, 5))
    assert [logs.translated(at).target_offset for at in (20, 80)] == [20, 80]


def test_a_trimmed_source_leaves_its_copies_on_the_target():
    """Source from i, target from b: the pair of i is there and answers, not the log's start."""
    logs = Logs("a b c d e f g h i j k l", "a b c d e f g h i j k l", source_from=8)
    logs.target.delete_records(1)
    logs.assert_exact(8, 8)


def test_what_lies_behind_a_gap_is_mirrored():
    """c..e were never copied, f and g were: the mirror is not behind C."""
    logs = Logs("a b c d e f g h", "| -a -b | f g")
    logs.assert_all_safe()
    for committed in (2, 3, 4):
        outcome = logs.outcome(committed)
        assert not (isinstance(outcome, Skipped) and outcome.reason is Reason.NOT_MIRRORED)


# --- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [False, True])
def test_a_commit_past_the_mirrored_end_is_at_the_end_of_a_repeat(identity):
    """Nothing from C on is there and what comes is written behind te: four come again at most,
    those from the frontier to C."""
    logs = Logs("a b c d e f g h i j k l", "a b c d e f g h [c d e]")
    outcome = logs.translated(12, identity=identity)
    assert outcome.target_offset >= 8
    assert outcome.reread_bound == 4
    logs.assert_all_safe(identity=identity)


@pytest.mark.parametrize("identity", [False, True])
def test_a_caught_up_group_reads_nothing_again_though_the_log_ends_in_a_repeat(identity):
    """All of the source is there, and the group has read it."""
    logs = Logs("a b c d e f g h", "a b c d e f g h [c d e]")
    outcome = logs.translated(8, identity=identity)
    assert outcome.reread_bound == 0
    assert logs.world.rereads(8, outcome.target_offset) == 0


@pytest.mark.parametrize("records", [1, 3, 20])
def test_a_caught_up_group_passes_no_record_that_the_source_lacks(records):
    """The broker that answers for the source may be cut off from its cluster, and lack the newest
    records; or producers write to the target since a failover. The answer lies before them."""
    newer = " ".join(f"z{n}" for n in range(records))
    Logs("a b c", f"a b c {newer}").assert_exact(3, 3)
    # A filter left d out.
    assert Logs("a b c d", f"a b c {newer}").translated(4).target_offset == 3


SMALL_SCANS = TranslationSettings(scan_bytes=10_000)


def test_the_last_record_answers_whatever_equals_it():
    """One timestamp for all, more than may be scanned: nothing comes after the last record on
    both sides."""
    words = run("r", 0, 2_000, at=7, step=0)
    outcome = Logs(words, words).translated(1_999, settings=SMALL_SCANS)
    assert outcome.target_offset == 1_999


def test_where_the_budget_ends_the_log_start_is_left():
    """One timestamp for all, more than may be read: nothing is proven, and near the source's
    beginning the log start is of use."""
    words = run("r", 0, 2_000, at=7, step=0)
    logs = Logs(words, words)
    near = logs.outcome(3, settings=SMALL_SCANS)
    assert isinstance(near, Translated), near
    assert (near.target_offset, near.reread_bound) == (0, 3)
    far = logs.outcome(1_500, settings=SMALL_SCANS)
    assert isinstance(far, Skipped), far
    assert far.reason is Reason.NO_PROOF
    assert "translation.scan.bytes" in far.message


def test_a_commit_past_the_last_stable_offset_does_not_ask_for_ever():
    """Undecided records are data that cannot be read: one empty read says so."""
    logs = Logs("a b c d e f", "a b c d e f")
    transaction = logs.source.begin()
    transaction.append([Message(NOW_MS + 50 + n, b"k", b"%d" % n) for n in range(10)])
    outcome = logs.translated(12, isolation=Isolation.READ_COMMITTED)
    assert outcome.target_offset == 6
    assert questions_since_last_time(logs.world) <= 20


def test_markers_of_todays_time_do_not_mislead():
    """An exactly-once mirror of a backlog: each lookup answers the first marker, but the record
    is found by its distance."""
    logs = Logs(run("r", 0, 300, at=0), "")
    for _, message in logs.source.messages():
        transaction = logs.target.begin()
        transaction.append([message])
        transaction.commit()
    outcome = logs.translated(150)
    assert (outcome.target_offset, outcome.precision) in [
        (at, Precision.EXACT) for at in (299, 300)
    ]
    assert questions_since_last_time(logs.world) <= 40


def test_timestamps_alone_notice_a_target_that_writes_its_own():
    """LogAppendTime on the target: a looked-up time is not the record's."""
    logs = Logs("a b c d", "")
    logs.target.timestamp_type = TimestampType.LOG_APPEND_TIME
    logs.target.append([message for _, message in logs.source.messages()])
    outcome = logs.outcome(2, settings=TranslationSettings(proof="timestamps"))
    assert isinstance(outcome, Skipped), outcome
    assert outcome.reason is Reason.TARGET_REWRITES_TIMESTAMPS


def test_the_first_copy_may_name_a_record_that_was_not_read():
    """The source has lost p, with which the target begins. A filter left out the first a; the copy
    of the second equals it, and its header names a record that was not read."""
    before, behind = (" ".join(map("r{}".format, part)) for part in (range(2, 60), range(61, 120)))
    copied = " ".join(f"r{at}={at}" for at in range(61, 118))
    logs = Logs(f"p a {before} a' {behind}", f"p=0 a'=60 {copied}", source_from=1, padding=3_000)
    logs.assert_all_safe(2, 61, 118)
