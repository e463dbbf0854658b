"""The rule by example: the rows of docs/design.md section 1, each in a few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.memory_flows import after_each
from tests.replication_model import NOW_MS, SOURCE, TARGET
from tests.rule.test_frontier_examples import Logs
from tests.translating import ask, translated_of
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import (
    Failed,
    FailureKind,
    Outcome,
    Precision,
    ReadFrom,
    Reason,
    Side,
    Skipped,
    TimedOffset,
    TimestampType,
    Translated,
    Youngest,
)
from tsoffset.records import FetchedRange, Record, UnreadableRecords
from tsoffset.rule.duplicates import earliest_of
from tsoffset.rule.evidence import Evidence, Last
from tsoffset.rule.found import Unanswered
from tsoffset.rule.frontier import last_copy
from tsoffset.rule.inquiry import Inquiry, Question
from tsoffset.rule.pairs import Pair
from tsoffset.rule.translate import Translation
from tsoffset.testing.memory_cluster import MemoryCluster, Message, mirror_partition


class MemoryMirror:
    """One partition of a source and its mirror, both in memory. `compacted` is what the target's
    cleanup.policy says."""

    def __init__(self, *, target_starts_at: int = 0, compacted: bool = False) -> None:
        self.source_cluster, self.target_cluster = MemoryCluster("A"), MemoryCluster("B")
        self.source_cluster.create_topic(SOURCE.topic)
        policy = {"cleanup.policy": "compact" if compacted else "delete"}
        self.target_cluster.create_topic(
            TARGET.topic, first_offset=target_starts_at, configs=policy
        )
        self.source = self.source_cluster.log(SOURCE.topic)
        self.target = self.target_cluster.log(TARGET.topic)

    def write(self, stamps: Sequence[int | None], *, batch_size: int = 10) -> "MemoryMirror":
        """Records with these timestamps (after NOW_MS) and keys and values of their own."""
        first = self.source.end
        self.source.append(
            [
                Message(None if at is None else NOW_MS + at, b"k%d" % n, b"v%d" % n)
                for n, at in enumerate(stamps, first)
            ],
            batch_size=batch_size,
        )
        return self

    def copy(self, start: int | None = None, end: int | None = None) -> "MemoryMirror":
        mirror_partition(self.source, self.target, start=start, end=end, batch_size=7)
        return self

    def translation(self, committed: int, **asked: Any) -> Translation:
        """Of a position that is asked alone; `asked` as for `translated_of`."""
        [found] = translated_of(
            self.source_cluster, self.target_cluster, committed, **asked
        ).values()
        return found

    def outcomes(self, *committed: int) -> list[Outcome]:
        """Of positions that are asked together."""
        found = translated_of(self.source_cluster, self.target_cluster, *committed)
        return [translation.outcome for translation in found.values()]

    def outcome(self, committed: int, **asked: Any) -> Outcome:
        return self.translation(committed, **asked).outcome


def resumes(outcome: Outcome) -> tuple[int, Precision, int | None]:
    assert isinstance(outcome, Translated), outcome
    return outcome.target_offset, outcome.precision, outcome.reread_bound


def reason(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


EXACT, FRONTIER = Precision.EXACT, Precision.FRONTIER


@pytest.mark.parametrize(
    ("mirrored", "expected"),
    [
        # (R, q): the next record to read has its image at q.
        (MemoryMirror(target_starts_at=100).write(range(50)).copy(), {20: (120, EXACT, 0)}),
        # Among records of one millisecond the content decides, not the first of them.
        (MemoryMirror(target_starts_at=2).write([7] * 50).copy(), {33: (35, EXACT, 0)}),
        # The scan of a longer run begins at the time lookup's answer: the copy it meets is the
        # first.
        (MemoryMirror().write([7] * 2_000, batch_size=100).copy(), {1_500: (1_500, EXACT, 0)}),
        # The lookup answers the far-future record for every time; the scan goes on from there.
        (MemoryMirror().write([0, 10**12, *range(2, 60)]).copy(), {40: (40, EXACT, 0)}),
        # All there was to copy lies before C, so the target's end is safe.
        (MemoryMirror().write(range(50)).copy(), {50: (50, EXACT, 0)}),
        # (o, q), q the last data record on the target: te, and the bound is what lies between.
        (
            MemoryMirror().write(range(50)).copy(end=30),
            {30: (30, FRONTIER, 0), 40: (30, FRONTIER, 10)},
        ),
        # A log that ends inside a repeat, 0..99 and 50..59: after the second copy of 55 the records
        # 60..99 would never come.
        (
            MemoryMirror().write(range(100)).copy().copy(start=50, end=60),
            {55: (55, EXACT, 0), 80: (80, EXACT, 0)},
        ),
    ],
)
def test_where_a_group_resumes(mirrored, expected):
    """Target offset, precision and bound by committed offset."""
    assert {at: resumes(mirrored.outcome(at)) for at in expected} == expected


def test_markers_after_the_last_record_do_not_keep_a_group_from_being_caught_up():
    """Control records are no data: a group that has read all is at the end before them, too."""
    mirrored = MemoryMirror()
    transaction = mirrored.source.begin()
    transaction.append([Message(NOW_MS, b"k", b"v")])
    transaction.commit()
    mirrored.copy()
    assert resumes(mirrored.outcome(1)) == (1, Precision.EXACT, 0)
    assert resumes(mirrored.outcome(2)) == (1, Precision.EXACT, 0)


def test_a_compaction_hole_resumes_at_the_next_record():
    """A committed offset whose record is gone means the next one there is."""
    mirrored = MemoryMirror(compacted=True).write(range(50)).copy()
    mirrored.source.remove(range(15, 35))
    mirrored.target.remove(range(20, 40))
    assert resumes(mirrored.outcome(16)) == (15, Precision.EXACT, 0)
    assert resumes(mirrored.outcome(45)) == (45, Precision.EXACT, 0)


def test_a_source_emptied_before_the_commit_is_read_from_the_targets_start():
    """Nothing that lies before C is left on the source, and R is gone from the target: its log
    start is safe, and what it still holds of lost records is the bound."""
    mirrored = MemoryMirror(compacted=True).write(range(60), batch_size=2).copy()
    mirrored.source.remove(range(40), keep_empty_batches=True)
    mirrored.target.remove(range(40, 41))
    offset, precision, bound = resumes(mirrored.outcome(38))
    assert (offset, precision, bound) == (0, Precision.BOUNDED, 38)


def test_a_trimmed_log_that_begins_inside_a_repeat_is_read_from_its_start():
    """Of 0..99 and 50..69 only what follows 80 is left: the first copy of 55 is gone, and its
    second lies behind records that the group has yet to read. Whether the repeated records
    were ever before the log's start cannot be seen, so the row says so."""
    mirrored = MemoryMirror().write(range(100)).copy().copy(start=50, end=70)
    mirrored.target.delete_records(80)
    assert resumes(mirrored.outcome(55)) == (80, Precision.BOUNDED, 55)


def test_twins_of_one_run_are_not_told_apart_by_content():
    """A later equal record in the run of R's timestamp: its copy may be what is there."""
    logs = Logs("a@0 x@1 o1@1 o2@1 o3@1 x'@1", "a -x o1 o2 o3 x'")
    assert logs.translated(1).target_offset <= 2


@pytest.mark.parametrize("committed", [2, 3])
def test_counting_between_two_pairs_tells_twins_apart(committed):
    """Between two pairs with equally many records, equal one by one, all are pairs."""
    logs = Logs("a@0 x@1 b@1 x'@1 c@2", "a x b x' c")
    assert resumes(logs.translated(committed)) == (committed, EXACT, 0)


def test_twins_that_cannot_be_counted_cost_rereads_that_are_stated():
    """Of two equal records one copy is left: it may be of either, so nothing behind it."""
    logs = Logs("a@0 x@1 b@1 x'@1 c@2", "a x -b -x' c")
    offset, precision, bound = resumes(logs.translated(3))
    assert (offset, precision) == (1, Precision.BOUNDED)
    assert bound is not None
    assert bound >= 1


def test_headers_do_not_reject_an_image():
    """Many replicators add headers: timestamp, key and value make records equal."""
    mirrored = MemoryMirror().write(range(20))
    mirror_partition(
        mirrored.source,
        mirrored.target,
        rewrite=lambda message: replace(message, headers=(("hop", b"A"),)),
    )
    assert resumes(mirrored.outcome(11)) == (11, Precision.EXACT, 0)


def test_a_neighbour_with_a_timestamp_anchors_one_without():
    """R carries no time, the record before does: q + 1."""
    mirrored = MemoryMirror().write([1, 2, 3, None, 5, 6]).copy()
    assert resumes(mirrored.outcome(3))[0] == 3


def test_log_append_time_on_the_source_alone_is_harmless():
    """The replicator carries the source's times over."""
    mirrored = MemoryMirror()
    mirrored.source.timestamp_type = TimestampType.LOG_APPEND_TIME
    for at in range(20):
        mirrored.source_cluster.clock.now_ms = NOW_MS + at
        mirrored.write([None])
    for offset, message in mirrored.source.messages():
        mirrored.target.append([replace(message, timestamp_ms=NOW_MS + offset)])
    assert resumes(mirrored.outcome(11))[0] == 11


def test_a_failback_flow_without_a_pair_has_no_proof():
    """Caught up, but nothing there is known to be a copy: no log end is answered."""
    mirrored = MemoryMirror().write(range(20))
    mirrored.target.append([Message(NOW_MS + 99, b"new", b"on the original")])
    assert reason(mirrored.outcome(20, is_remote_topic=False, failback=True)) is Reason.NO_PROOF


def test_under_identity_a_log_end_needs_a_proven_mirror():
    """A topic of the same name that holds other records is no mirror."""
    mirrored = MemoryMirror().write(range(20))
    mirrored.target.append([Message(NOW_MS + 99, b"other", b"other")])
    assert reason(mirrored.outcome(20, is_remote_topic=False)) is Reason.NO_PROOF
    assert (
        resumes(MemoryMirror().write(range(20)).copy().outcome(20, is_remote_topic=False))[0] == 20
    )


def test_timestamps_alone_answer_what_the_kip_says_and_claim_nothing():
    """translation.proof = timestamps: the lookup's answer, precision unproven, no bound."""
    mirrored = MemoryMirror().write([1, 2, 2, 2, 3]).copy()
    kip = TranslationSettings(proof="timestamps")
    assert resumes(mirrored.outcome(3, translation=kip)) == (1, Precision.UNPROVEN, None)
    assert reason(mirrored.outcome(5, translation=kip)) is Reason.NO_PROOF


def test_the_timestamp_of_the_row():
    """That of R; for a caught-up group, of the last record before C."""
    mirrored = MemoryMirror().write(range(0, 100, 10)).copy()
    assert mirrored.translation(3).source_timestamp_ms == NOW_MS + 30
    assert mirrored.translation(10).source_timestamp_ms == NOW_MS + 90


def test_the_youngest_record_is_asked_for_once_a_side():
    """Its answer is kept for all positions of a partition, none too; a failure is not."""
    evidence = Evidence(SOURCE, TARGET, TranslationSettings())
    failing = Inquiry(evidence).youngest(Side.TARGET)
    assert next(failing) == Question(Side.TARGET, Youngest(TARGET))
    with pytest.raises(Unanswered):
        failing.send(Failed(FailureKind.TIMEOUT, "too late"))
    for side, partition, answer in (
        (Side.TARGET, TARGET, TimedOffset(7, NOW_MS)),
        (Side.SOURCE, SOURCE, None),
    ):
        first, second = (Inquiry(evidence).youngest(side) for _ in range(2))
        assert next(first) == Question(side, Youngest(partition))
        with pytest.raises(StopIteration) as told:
            first.send(answer)
        with pytest.raises(StopIteration) as kept:
            next(second)
        assert (told.value.value, kept.value.value) == (answer, answer)


def test_a_last_copy_whose_original_is_gone_may_be_of_any_earlier_record():
    """The target's last record was seen to be a copy of c', and both were dropped to limit memory.
    Since then compaction has taken c': that the target's record is of the c before it is not
    overlooked."""
    mirrored = MemoryMirror().write([1, 2]).copy(end=1)
    [(_, c), _] = mirrored.source.messages()
    mirrored.source.append([c])
    mirrored.write([4])
    evidence = Evidence(SOURCE, TARGET, TranslationSettings())
    inquiry = Inquiry(evidence)

    clusters = mirrored.source_cluster, mirrored.target_cluster
    for side in Side:
        ask(inquiry.log_range(side), *clusters)
    ask(inquiry.read(Side.SOURCE, 2), *clusters)
    last = ask(last_copy(inquiry), *clusters)
    assert isinstance(last, Last)
    assert last.lowest == 2
    evidence.forget_records(-1)
    mirrored.source.remove([2])
    assert ask(earliest_of(inquiry, last), *clusters) == 0


def test_a_mistake_of_ours_costs_one_position_and_tells_no_content():
    """What breaks inside a translator is a failed position; the error's text is not repeated,
    for it may hold digests of content."""

    # The pair at the end does not say where 20 is: a part was left out.
    mirrored = MemoryMirror().write(range(50)).copy(end=18).copy(start=30)
    # Not what the seam promises, so the translator stumbles over it.
    after_each(mirrored.target_cluster, "first_at_times", lambda it: dict.fromkeys(it, Failed))
    outcomes = mirrored.outcomes(20, 50)
    assert isinstance(outcomes[0], Failed)
    assert outcomes[0].kind is FailureKind.INTERNAL
    assert "AssertionError in first_at_time" in outcomes[0].message
    assert resumes(outcomes[1]) == (38, Precision.EXACT, 0)


def test_a_malformed_batch_costs_the_positions_that_need_it():
    """A batch that turns out to be malformed where it is looked at is a failed position; those
    of the same partition that do not need it are translated."""

    class Malformed(Sequence[Record]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, at: int | slice) -> Record:
            raise UnreadableRecords("a record of the batch at offset 20 is malformed")

    def damaged(
        answers: Mapping[ReadFrom, FetchedRange | Failed],
    ) -> dict[ReadFrom, FetchedRange | Failed]:
        return {
            request: replace(answer, records=Malformed())
            if isinstance(answer, FetchedRange) and answer.start <= 20 < answer.end
            else answer
            for request, answer in answers.items()
        }

    mirrored = MemoryMirror().write(range(50), batch_size=5).copy()
    after_each(mirrored.source_cluster, "read", damaged)
    first, *others = mirrored.outcomes(22, 40, 50)
    assert isinstance(first, Failed)
    assert first.kind is FailureKind.CORRUPT_BATCH
    assert [resumes(other) for other in others] == [
        (40, Precision.EXACT, 0),
        (50, Precision.EXACT, 0),
    ]


def test_a_safe_pair_is_learned_once():
    """A known one that is proven again is no reason for a second attempt."""
    evidence = Evidence(SOURCE, TARGET, TranslationSettings())
    for _ in range(2):
        evidence.add_safe(Pair(5, 5, 5))
    assert (evidence.learned, len(evidence.safe)) == (1, 1)
