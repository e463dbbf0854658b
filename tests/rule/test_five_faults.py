"""Logs that a rule answers wrongly which takes "not found" for "not there".

A time lookup answers the first record that is *not older* than a time. In a log with late records
that is far too early, and what is looked for lies behind all that is read. The five faults here
were committed offsets that skip records; each needs one late record, or a budget that ends, and a
replicator that was set back. The re-reads below them were called exact.

Logs are written as in `tests.rule.test_frontier_examples`.
"""

from dataclasses import replace

import pytest

from tests.memory_flows import Estate, messages, row_of
from tests.random_examples import scaled
from tests.random_logs import Kind
from tests.replication_model import build
from tests.rule.test_frontier_examples import Logs, run
from tests.translating import Way, mistake_of, outcomes, translated_with_cache
from tsoffset.flow.settings import TranslationSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.model import Precision, Translated

# A record of this size stands in a batch of its own, and a read of 64 kB holds 170 of them.
WIDE = 300
# The partition's budget of 8 MB ends in a log of 5,200 of these.
VERY_WIDE = 1_900


def assert_skips_nothing(logs: Logs, committed: int) -> None:
    """Nothing is passed: the position is asked alone, and with others from all over the log (50 in
    `make test-long`) and its last ones."""
    offsets = range(logs.source.start, logs.source.end + 1)
    others = {*offsets[:: max(1, len(offsets) // min(50, scaled(50)))], *offsets[-8:], committed}
    for asked in ((committed,), tuple(sorted(others))):
        for offset, outcome in logs.outcomes(*asked).items():
            logs.assert_passes_nothing(offset, outcome)


# --- the five faults ------------------------------------------------------------------------

S = run("s", 0, 600, at=10_000)
FILTERED = run("d", 0, 9, at=0)
LATE = "x@20 y@21"
NOT_YET_COPIED = run("z", 0, 4, at=20_000)


@pytest.mark.parametrize("committed", [600, 602, 609])
def test_late_records_behind_a_long_row_of_younger_ones_are_not_passed(committed):
    """x and y are older than all 600 before them, so lookups of their times answer s0 on both
    sides. That 16 younger records follow there does not tell that x and y are not on the target: C
    = 602 resumes at x, behind the first copy of s599."""
    logs = Logs(f"{S} {FILTERED} {LATE} {NOT_YET_COPIED}", f"{S} {LATE}", padding=WIDE)
    assert_skips_nothing(logs, committed)


@pytest.mark.parametrize("committed", [2, 3, 602])
def test_a_log_that_retention_left_with_late_records_begins_with_these(committed):
    """The same log, of which retention took all before x, and the mirror was set back: x and y lie
    before everything. Who has them to read resumes at the log's start: the oldest record from C on
    is older than what is left there."""
    logs = Logs(
        f"{S} {FILTERED} {LATE} {NOT_YET_COPIED}",
        f"{S} {LATE} [s0 s1 s2]",
        target_from=600,
        padding=WIDE,
    )
    assert_skips_nothing(logs, committed)


@pytest.mark.parametrize("repeated", ["s595 s596 s597", "s599", "s0 s1 s2"])
def test_one_late_record_and_a_restart_skip_nothing(repeated):
    """Another record has a time of x's own: that the source's lookup answers one of the same
    millisecond does not tell that x stands in order. C = 600 resumes at x, behind the first copy of
    the record before it."""
    s = run("s", 0, 600, at=0)
    logs = Logs(f"{s} x@10", f"{s} x@10 [{repeated}]", padding=WIDE)
    assert_skips_nothing(logs, 600)


R = run("r", 0, 5_200, at=7, step=0)
LAST_R = run("r", 4_600, 5_200, at=7, step=0)
LOST = "w0@0 w1@1 w2@2 w3@3 w4@3 w5@3 w6@3 w7@3"


@pytest.mark.parametrize(
    ("source", "target", "source_from", "committed"),
    [
        # A gap: nothing of r4 to r4599 was copied.
        pytest.param(
            f"{R} {NOT_YET_COPIED}",
            f"r0@7 r1@7 r2@7 r3@7 {LAST_R} [r0 r1 r2 r3 r4 r5]",
            0,
            22,
            marks=pytest.mark.thorough,
        ),
        # The source has lost what the target begins with.
        (f"{LOST} {R} {NOT_YET_COPIED}", f"{LOST} {LAST_R} [r0 r1 r2 r3 r4 r5]", 8, 30),
        # It began late, and all is copied.
        (R, f"{LAST_R} [r0 r1 r2 r3 r4 r5]", 0, 22),
    ],
    ids=["gap", "lost", "begun late"],
)
def test_a_budget_that_ended_does_not_tell_that_a_record_is_not_there(
    source, target, source_from, committed
):
    """5,200 records of one time, 10 MB, the last 600 of them copied, and a mirror that was set
    back: to find the original of what the target holds takes more than the budget of 8 MB. C = 22
    resumes before those 600, or nowhere."""
    logs = Logs(source, target, source_from=source_from, padding=VERY_WIDE)
    assert_skips_nothing(logs, committed)


@pytest.mark.parametrize(
    ("committed", "padding"),
    [
        pytest.param(2, 0, marks=pytest.mark.slow),
        pytest.param(999, WIDE, marks=pytest.mark.slow),
        pytest.param(1_002, WIDE, marks=pytest.mark.thorough),
    ],
)
def test_a_replica_that_was_set_back_does_not_hide_what_nobody_has_read(committed, padding):
    """Failback. The replica began at e0, came to e999, and was set back to a: the way from its last
    record to its first is longer than a read. A group at its third record has yet to read a to d,
    which stand before e0 on the original: C = 2 resumes at a."""
    e = run("e", 0, 1_000, at=100)
    logs = Logs(
        f"{e} [a@0 b@1 c@2 d@3 {run('e', 0, 10, at=100)}]",
        f"a@0 b@1 c@2 d@3 {e}",
        padding=padding,
        failback=True,
    )
    assert_skips_nothing(logs, committed)


@pytest.mark.parametrize("committed", [0, 1])
def test_what_the_replica_never_had_is_not_told_by_times_on_it(committed):
    """Failback. The replica has come no further than a, and the original has lost a: x, which is
    older than a, was never on the replica, and lies before all that a lookup of a's time answers.
    What the original still has and the replica never had is to be read, too."""
    logs = Logs("a@10", "a@10 x@5 y@20", target_from=1, failback=True)
    assert_skips_nothing(logs, committed)


@pytest.mark.parametrize("committed", [8, 9, 18])
def test_an_equal_record_feigns_no_beginning(committed):
    """The target begins with s5', which equals s5: where its first record counts with the lowest of
    its equals, the mirror seems to have begun below C, and u0 to u3, which are late, are passed. By
    time C = 9 resumes at the log's start."""
    s, late = run("s", 0, 9, at=100), run("u", 0, 4, at=10)
    logs = Logs(
        f"{s} {run('d', 0, 9, at=150)} s5' {late} {run('z', 0, 4, at=1_000)}", f"s5' {late} [{s}]"
    )
    assert_skips_nothing(logs, committed)


# --- what was called exact and was not ------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_over_what_was_not_read_is_not_exact(seed):
    """Most copies are gone from a compacted target, so that the nearest pairs of a position lie far
    apart: over more than 500 source records, which were not read, a walk takes the copies that
    are left between them for records of others. They come again."""
    kind = Kind(records=2_500, keys=416, padding=1_000, segments=200, target_compacted=True)
    world, way = build(kind, seed), Way(settings=TranslationSettings(budget=2))
    for committed, outcome in outcomes(world, world.positions()[::37], way).items():
        assert mistake_of(world, way, committed, outcome) is None, (committed, outcome)


def test_as_many_offsets_before_both_first_records_mean_nothing_after_a_repeat():
    """Begun at f, repeated from there (a cleaner took the first five copies), and set back to a:
    five offsets lie before the first record on the target, and five records before its original;
    but a to e come for the first time behind all others."""
    logs = Logs("a b c d e f g h i j", "-f -g -h -i -j [f g h i j] [a b c d e]")
    logs.assert_all_safe()


@pytest.mark.parametrize("rest", ["", run("z", 0, 600, at=4_000)], ids=["to come", "copied"])
def test_a_header_that_names_what_nobody_has_read_hides_no_copy(rest):
    """c, d and r were left out. The header of b's copy names another record, far away: until that
    was read the copy may be b's, so what lies behind a's copy is not exact for C = 4."""
    last = run("z", 0, 600, at=4_000)
    headed = " ".join(f"{word}={offset}" for offset, word in enumerate(rest.split(), 6))
    logs = Logs(
        f"a@0 b@1000 c@1001 d@1002 r@1 t@3000 {last}",
        f"a@0=0 b@1000=300 t@3000=5 {headed}",
        padding=WIDE,
    )
    logs.assert_all_safe(*range(6))


@pytest.mark.parametrize("come_to", [5, 40, 50, 70, 100])
def test_what_was_exact_is_so_no_more_once_the_mirror_was_set_back(come_to):
    """Begun at 50 and all copied: C = 70 is exact, and remembered. Since then the mirror was set
    back to 0, which is below its beginning: what is copied now for the first time, or will be, lies
    behind the answer and was read by the group. A cycle that remembers says so as one that
    does not."""
    estate, cache = Estate(), CachedTables()
    estate.write("orders", 100)
    estate["B"].create_topic("A.orders")
    copies = estate["B"].log("A.orders")
    copies.append(messages("orders", range(50, 100)), batch_size=7)
    estate.commit("billing", "orders", 70)
    row = row_of(estate.sync(cache=cache), "billing")
    assert (row.target_offset, row.precision) == (20, Precision.EXACT)
    copies.append(messages("orders", range(come_to)), batch_size=7)
    row = row_of(estate.sync(cache=cache), "billing")
    assert row.reread_bound is not None
    if row.target_offset == 120:
        assert come_to == 100  # all lies there again, in order
    else:
        assert row.target_offset == 20
        assert row.reread_bound >= min(50, come_to)


# --- what a second reading of the proofs found ----------------------------------------------


@pytest.mark.parametrize(
    "repeated", [pytest.param("f a b0 b1 b2", marks=pytest.mark.slow), "b300 b301"]
)
def test_that_a_lookup_answers_none_proves_nothing_on_any_log(repeated):
    """The log starts in mid-segment: f alone reaches the times that are looked up, so the broker
    looks into no further segment, and f is deleted."""
    b = run("b", 0, 600, at=50)
    logs = Logs(f"f@10000 a@1 {b}", f"f@10000 a@1 | {b} [{repeated}]", target_from=1)
    logs.assert_skips_nothing(2, 5, 300, 302, 599, 601)


@pytest.mark.parametrize("compacted", [False, True])
def test_by_time_a_pair_shows_nothing_of_what_an_earlier_equal_leaves_between(compacted):
    """What follows x' lies behind the x at the end, by time; but that is of the first x, so u,
    which lies between the two on the source, may lie before it."""
    s = run("s", 0, 10, at=0)
    logs = Logs(
        f"{s} a@20 x@21 u@22 x'",
        f"{s} a@20 x@21 u@22 [{s} a x]",
        target_from=12,
        compacted=compacted,
    )
    logs.assert_skips_nothing(10, 11, 12, 13, 14)


@pytest.mark.parametrize("order", ["k l m n o p q r", "m k r n q l p o"])
def test_equal_records_feign_no_beginning_however_many_there_are(order):
    """A producer wrote eight records again, with their old times, and the mirror began at those: c0
    to c3 follow there, and lie before all that was copied since."""
    first = " ".join(f"{letter}0@{at}" for at, letter in enumerate("klmnopqr"))
    again = " ".join(f"{letter}0'@{'klmnopqr'.index(letter)}" for letter in order.split())
    a, c = run("a", 0, 600, at=100), run("c", 0, 4, at=9_000)
    logs = Logs(f"{first} {a} {again} {c}", f"{again} {c} [{first} {a}]")
    for committed in (14, 300, 511, 518, 600):
        logs.assert_loses_no_content(committed, logs.outcome(committed))


def test_a_first_record_of_the_far_future_makes_no_other_one_very_late():
    """What the source has lost begins the target, so the log is taken from the copy of the source's
    own first record on, F; but the record at the commit is older than F."""
    a, c = run("a", 0, 100, at=100), run("c", 0, 1_200, at=5_001)
    logs = Logs(f"F@9999999 {a} {c}", f"y@4000 {c} [F {a}]", padding=WIDE)
    logs.assert_skips_nothing(2, 39, 76, 99, 500)


@pytest.mark.parametrize(
    ("first", "repeated"),
    [
        pytest.param("F@-", "F", id="no lookup finds the first record"),
        pytest.param("F@9999999", "", id="the target has nothing of its time"),
        pytest.param("F@50", "", id="it is not on the target"),
        pytest.param("F@9999999", "F x@60", id="what follows it there has no original"),
        pytest.param("F@50", "F", id="what lies before it there has no original"),
    ],
)
def test_where_the_log_begins_stays_unknown(first, repeated):
    """The source has lost what begins the target, and its own first record does not tell where the
    log begins, either: c lies before the copies of a, and is not passed."""
    a, c = run("a", 0, 100, at=100), run("c", 0, 1_200, at=5_001)
    logs = Logs(f"{first} {a} {c}", f"y@4000 {c} [{repeated} {a}]", padding=WIDE)
    logs.assert_skips_nothing(2, 39, 76, 99, 500)


def test_a_record_without_a_timestamp_may_lie_before_the_copy_of_the_first_one():
    """Retention took the target's first b, and no lookup finds c: so the target seems to begin with
    what the source has lost, and the log is taken from the copy of a on. But c is the third source
    record, and C = 0 does not resume behind its only copy."""
    logs = Logs("a@0 b@10 c@- d@0", "b@10 c@- a@0 b@10", target_from=1)
    logs.assert_skips_nothing(0)


def test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept():
    """Identity: the source is the replica, begun at a. What follows d lies behind its original
    today; the replica is set back then, and has x0 and x1, which the group has yet to read."""
    logs = Logs("a@10 b@11 c@12 d@13 e@14 f@15", "x0@0 x1@1 a@10 b@11 c@12 d@13 e@14 f@15")
    clusters = logs.source_cluster, logs.target_cluster
    cached = translated_with_cache(*clusters, 0, 3, is_remote_topic=False).learned.cache
    content = {message.value: message for _, message in logs.target.messages()}
    logs.source.append([content[name] for name in (b"x0", b"x1", b"a", b"b", b"c", b"d")])
    for committed in (4, 5, 6):
        found = translated_with_cache(*clusters, committed, cached=cached, is_remote_topic=False)
        outcome = found.translations[committed].outcome
        assert not isinstance(outcome, Translated) or outcome.target_offset == 0


def test_a_copy_whose_value_was_rewritten_is_no_proof_that_it_is_not_there():
    """The replicator changed the values of b and c, and `translation.match` names them: tombstones
    alone are equal on both sides. That b and c equal nothing does not say that they are not there:
    C = 1 does not resume behind them."""
    logs = Logs("a b@1 c@2 d@3", "")
    content = dict(enumerate(message for _, message in logs.source.messages()))
    copies = [content[0], *(replace(content[n], value=b"schema 7") for n in (1, 2))]
    logs.target.append(copies)
    for committed in (1, 2, 3):
        outcome = logs.outcome(committed)
        assert not isinstance(outcome, Translated) or outcome.target_offset <= committed


@pytest.mark.parametrize(
    ("replica", "original", "original_from", "committed", "at_most"),
    [
        # b1 on the replica is of the original's lost one; b2 lies before its equal.
        ("-a0@100 | a0@100 b1@110 | a0@100 b1@110", "a0@100 -b1@110 b2@100 b1'@110", *(0, 5, 2)),
        # Compaction took a2 between the commit and the next record; it comes again behind that.
        (
            "-a0@100 b1@90 -a2@100 a3@80 a4@100 | a2@100 a3@80 a4@100 | a4@100",
            "a0@100 b1@90 a2@100 a3@80 a4@100",
            *(1, 2, 2),
        ),
        ("-a0@100 | a0@100 b1@110 | b1@110", "a0@100 b1@110 a2@110 b1'@110 b1''@110", *(0, 4, 2)),
        ("a0@100 a1@110", "a0@100 a1@110 a2@120 a0'@100 a1'@110", 2, 0, 2),
        ("a0@100 a1@110", "a0@100 a1@110 a2@120 a0'@100 a1'@110", 2, 2, 2),
        (
            "-a0@100 -a1@110 | -a0@100 a1@110 | a0@100",
            "-a0@100 a1@110 b2@100 a1'@110 a0'@100",
            *(0, 4, 2),
        ),
        ("a1@90 a1@90 a0@100", "-a0@100 a1@90 b2@110 a1'@90 a0'@100", 0, 3, 2),
    ],
    ids=["lost", "compacted", "twice", "retry at start", "retry", "run again", "lost equal"],
)
def test_in_failback_no_answer_lies_behind_what_is_to_be_read(
    replica, original, original_from, committed, at_most
):
    """Found in samples of small logs. In the last five the original holds a record that the replica
    lacks, before equal records that were written after it."""
    logs = Logs(replica, original, target_from=original_from, failback=True)
    assert_skips_nothing(logs, committed)
    *_, everyone = logs.everyone()
    for outcome in (logs.outcome(committed), logs.outcomes(*everyone)[committed]):
        assert not isinstance(outcome, Translated) or outcome.target_offset <= at_most
