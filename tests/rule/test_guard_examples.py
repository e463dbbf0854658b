"""Small logs that one guard of the rule each is for: without it they are answered wrongly
(`tests.mutants` removes guards). Written as those of `tests.rule.test_frontier_examples`."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

import pytest

from tests.memory_flows import flow
from tests.replication_model import SOURCE, TARGET
from tests.rule.test_frontier_examples import LATER_MS, Logs
from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Precision, Translated
from tsoffset.testing.memory_cluster import MemoryCluster, Message, PartitionLog


def assert_passes_nothing(logs: Logs, settings: TranslationSettings | None = None) -> None:
    """No position resumes behind what it has to read, asked alone and with all others."""
    for asked in logs.everyone():
        for committed, outcome in logs.outcomes(*asked, settings=settings).items():
            if isinstance(outcome, Translated):
                true = logs.true_position(committed)
                assert logs.target.start <= outcome.target_offset <= true, (committed, outcome)


def assert_none_passed_together(logs: Logs, *committed: int) -> None:
    """These positions do not resume behind what they have to read, where all are asked: then the
    equal records are known, which bear times of others."""
    *_, everyone = logs.everyone()
    outcomes = logs.outcomes(*everyone)
    for offset in committed:
        outcome = outcomes[offset]
        if isinstance(outcome, Translated):
            assert outcome.target_offset <= logs.true_position(offset), (offset, outcome)


def _at(words: Iterable[str], first_ms: int) -> str:
    """The words with times that rise by one."""
    return " ".join(f"{word}@{at}" for at, word in enumerate(words, first_ms))


def _gone(words: str) -> str:
    return " ".join(f"-{word}" for word in words.split())


class _Bare:
    """A log that is written without keys and values where the key is x."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def append(self, messages: list[Message]) -> int:
        return self._log.append(
            [replace(it, key=None, value=None) if it.key == b"x" else it for it in messages]
        )


class BareLogs(Logs):
    """Logs whose x are bare."""

    def _write(self, log: PartitionLog, words: str) -> dict[int, str]:
        return super()._write(cast(PartitionLog, _Bare(log)), words)


# --- where the frontier is sought -----------------------------------------------------------

# More records than are looked for above the last one: compaction took what stood between.
# So many are not copied yet: more than are looked for from the end of the source.
LAG = _at([f"{chr(108 + n)}9" for n in range(12)], 200)
OLD, NEW = [f"{key}1" for key in "abcdefghijk"], [f"{key}2" for key in "abcdefghijk"]


def test_the_youngest_record_tells_that_the_log_ends_inside_a_repeat() -> None:
    """The next eight after k1 are gone, and the first ones that are younger than k1 were written
    before it: only the youngest, t, tells that the mirror had come further."""
    early, next_ones = _at([f"{key}1" for key in "abcdefghij"], 50), _at([*"lmnopqrs"], 61)
    kept, gone = early.split()[:9], early.split()[9:]
    assert_passes_nothing(
        Logs(
            f"{early} k1@20 {next_ones} t@69 {LAG}",
            f"{' '.join(kept)} {_gone(' '.join(gone))} -k1@20 {_gone(next_ones)} t@69 "
            f"[{early} k1@20]",
        )
    )


def test_the_first_younger_record_tells_that_the_log_ends_inside_a_repeat() -> None:
    """The next eight after c1 are gone, o is the target's first, and p1 its youngest: only a2, the
    first one younger than c1, tells."""
    old, new = _at(OLD, 2), _at(NEW, 14)
    assert_passes_nothing(
        Logs(
            f"o@0 p1@100 {old} {new} p2@40 x@41 {LAG}",
            f"o@0 -p1@100 {_gone(old)} {new} p2@40 x@41 [o@0 p1@100 {' '.join(old.split()[:3])}]",
        )
    )


def _only_the_first_tells() -> Logs:
    old, new = _at(OLD, 50), _at(NEW, 10)
    return Logs(
        f"p@0 {old} {new} x@30 {LAG}",
        f"-p@0 {_gone(old)} {new} x@30 [p@0 {' '.join(old.split()[:3])}]",
    )


def test_the_first_record_tells_that_the_log_ends_inside_a_repeat() -> None:
    """A clock that was set back: the next eight after c1 are gone, and c1 is the youngest of all
    that is left. Only the target's first, a2, tells."""
    assert_passes_nothing(_only_the_first_tells())


def test_what_the_first_record_would_tell_may_be_so() -> None:
    """The same, where the budget does not reach its original."""
    settings = TranslationSettings(budget=1, scan_bytes=600)
    assert_passes_nothing(_only_the_first_tells(), settings)


BACKWARDS = " ".join(f"{chr(97 + n)}@{40 - n}" for n in range(20))
LAG_BACKWARDS = " ".join(f"{chr(97 + n)}9@{20 - n}" for n in range(12))


def test_the_next_records_are_looked_for_until_none_is_there() -> None:
    """A clock that runs backwards, and a log that ends inside a repeat: only the next records
    tell, eight and again eight."""
    assert_passes_nothing(Logs(f"{BACKWARDS} {LAG_BACKWARDS}", f"{BACKWARDS} [a@40 b@39]"))


@pytest.mark.parametrize(
    ("budget", "scan_bytes"), [(2, 1), (3, 1), (1, 150), (2, 150), (2, 500), (4, 300)]
)
def test_what_could_not_be_looked_for_may_be_there(budget: int, scan_bytes: int) -> None:
    """The same, where the budget does not reach so far: then nothing is known of the frontier."""
    settings = TranslationSettings(budget=budget, scan_bytes=scan_bytes)
    assert_passes_nothing(
        Logs(f"{BACKWARDS} {LAG_BACKWARDS}", f"{BACKWARDS} [a@40 b@39]"), settings
    )


def test_what_follows_the_highest_equal_of_the_last_record_is_looked_for() -> None:
    """The last record on the target may be of x or of x', and behind the copy of x' are j and k."""
    logs = Logs(
        "x@5 a@10 b@11 c@12 d@13 e@14 f@15 g@16 h@17 i@18 x'@5 j@3 k@2 " + LAG,
        "x'@5 j@3 k@2 [x@5]",
    )
    assert_none_passed_together(logs, 11, 12)


def test_a_clock_that_was_set_back_hides_no_copy() -> None:
    """The lookup of x's time answers the first of 1,500 younger records: that x is not among these
    does not tell that it is not there."""
    many = [f"r{n}@{100 + n}" for n in range(1_500)]
    logs = Logs(" ".join([*many, "x@5", "y@6"]), " ".join([*many, "x@5", "[", many[1495], "]"]))
    outcome = logs.outcome(1_500)
    assert isinstance(outcome, Translated), outcome
    assert outcome.target_offset <= 1_500


def test_the_time_of_what_retention_took_is_not_followed_out_of_the_log() -> None:
    """The broker answers a, which was deleted, as the youngest."""
    logs = Logs("a@9 b@1 c@2 d@3", "a@9 b@1 c@2")
    logs.target.delete_records(1)
    logs.assert_all_safe()


def test_records_of_others_do_not_hide_that_the_log_ends_inside_a_repeat() -> None:
    """The youngest is of others, and hides u and v from time lookups."""
    source = _at([f"{chr(97 + n)}1" for n in range(26)], 1)
    assert_passes_nothing(Logs(source, "a1 y9@99 -- u1 v1 [a1 b1 c1]".replace("-- ", "")))


# --- equal records --------------------------------------------------------------------------

BETWEEN = "c@3 e@4 f@5 g@6 h@7 i@8"


def test_a_later_equal_record_that_is_known_may_be_meant() -> None:
    """x, b and c are left out. The x at 1 is the second's: behind it the second does not come."""
    assert_none_passed_together(Logs("a x b c x' d", "a x' d"), 2, 3)


def test_a_later_equal_record_further_along_the_run_may_be_meant() -> None:
    """The same within one millisecond: the run is read to its end."""
    Logs("a@0 x@1 b@1 c@1 e@1 f@1 g@1 x'@1 d@9", "a@0 x'@1 d@9").assert_all_safe()


def test_equal_records_on_both_sides_of_the_commit_move_no_walk() -> None:
    """From a on: the x at 1 may be the one behind b, which the group has yet to read."""
    assert_none_passed_together(Logs("a x b x' c", "a x' c"), 2)


def test_a_copy_that_is_out_of_order_on_the_target_may_be_of_a_later_record() -> None:
    """x was written again with its old time, far away, and that alone is there: the record of
    others before it is younger."""
    Logs(f"a@0 x@1 b@2 {BETWEEN} x'@1 d@9", "a@0 z@5 x'@1 d@9").assert_all_safe()


def test_a_record_that_is_out_of_order_on_the_source_may_have_equals_far_away() -> None:
    """a before it is younger, so that the next one of its time may be anywhere."""
    Logs(f"p@0 a@5 x@1 b@6 {BETWEEN} x'@1 d@9", "p@0 x'@1 d@9").assert_all_safe()


def test_a_target_that_begins_later_does_not_tell_the_order() -> None:
    """Nothing lies before the x on the target: its place is not seen."""
    Logs(f"a@0 x@1 b@2 {BETWEEN} x'@1 d@9", "x'@1 d@9").assert_all_safe()


def test_records_of_others_do_not_hide_what_lies_before_a_stretch() -> None:
    """A retried batch, a and b: before their copies lies one of others', and x before that."""
    Logs("p@0 q@1 a@3 b@5 x@4 a' b' y@7 z@8", "p q x z0@4 a' b' y z").assert_all_safe()


def test_what_could_not_be_read_before_a_stretch_may_be_later() -> None:
    """The same, and x is not read for the budget's sake."""
    logs = Logs("p@0 q@1 a@3 b@5 x@4 a' b' y@7 z@8", "p q x a' b' y z")
    assert_passes_nothing(logs, TranslationSettings(budget=3, scan_bytes=1))


def test_bare_records_of_one_time_may_be_far_apart() -> None:
    """x has neither key nor value: what equals it is no copy of it for that alone."""
    source = "p@0 a@1 x@2 b@3 c@4 e@5 f@6 g@7 h@8 x'@2 d@9"
    assert_passes_nothing(BareLogs(source, "p@0 x'@2 d@9"))


def test_a_short_stretch_that_is_equal_is_no_chain() -> None:
    """b and c again and again, of which one b is left out and two come again: two equal records
    in a row do not tell where these stand."""
    source = "b c c' b' b'' c'' b''' c'''"
    target = "b c c' b' c'' b''' c''' [b' c'']"
    assert_passes_nothing(Logs(source, target))


def test_the_lowest_copy_counts_among_equal_records() -> None:
    """The header of the second c says that it is the first: for the second c, nothing lies
    behind the first one."""
    assert_passes_nothing(Logs("a b b' c c' a'", "b'=2 c=3 c'=3 a'=5"))


def test_a_copy_that_is_not_the_lowest_of_its_content_is_no_repeat_for_that() -> None:
    """Of the four that stand side by side each is the first copy of its own: a walk that passes
    one has passed what the group has read."""
    Logs("a a' b a'' c c' d", "a a' b a'' c c' d").assert_all_safe()


def test_an_earlier_equal_record_that_was_not_read_is_counted() -> None:
    """For b the log's start answers, a copy of a: of which of the two is beyond the budget."""
    logs = Logs("a b d a'", "a")
    settings = TranslationSettings(budget=1, scan_bytes=100)
    for committed in range(5):
        logs.assert_safe(committed, logs.outcome(committed, settings=settings))


def test_equal_records_beyond_the_budget_are_not_told_by_the_ends() -> None:
    """Begun at d and set back to a: for the first a the second one's copy is none."""
    settings = TranslationSettings(budget=8, scan_bytes=1)
    assert_passes_nothing(Logs("a a' d e", "-d | e [a a' d e] [e]"), settings)


def test_a_distance_to_a_pair_proves_no_place_by_itself() -> None:
    """The cleaner took d and f from the middle of repeats: the e at 5 is as far from a pair as its
    original is, and f lies before it alone."""
    assert_passes_nothing(Logs("b d e f g", "-b | e f [e] [-d e -f g]"))


def test_of_an_equal_record_that_the_source_lost_copies_are_left() -> None:
    """Compaction took the first e1, c1 and c2 from the source: their copies stand before those of
    e1' and c2'. The copy of the lost c2 is taken for that of c2', which bounds nothing
    (`excuse_bound`) and passes nothing."""
    logs = Logs("-e1 -c1 -c2 e1' c2' c3", "e1 c1 c2 e1' c2' c3 [e1 c1 c2 e1' c2' c3]")
    for committed in (0, 1, 2, 3, 5, 6):
        logs.assert_safe(committed, logs.outcome(committed))
    assert_passes_nothing(logs)


def test_counting_does_not_mistake_records_of_others() -> None:
    """As many records as on the source, since one of others stands among them."""
    assert_none_passed_together(Logs("a a' b a'' b' d", "a' b z0 a'' b' d"), 1)


def test_counting_needs_a_record_behind_the_commit_that_stands_alone() -> None:
    """The first c1 on the target may be the third: what is counted up to there is nothing."""
    assert_passes_nothing(Logs("c1 a1 a1' c1' c1'' a1'' b1", "c1'' a1'' b1"))


def test_counting_needs_a_source_that_is_known() -> None:
    """Begun at c and set back: between j and what is known of the source is more than budget."""
    settings = TranslationSettings(budget=2, scan_bytes=200)
    logs = Logs("j c a d", "c a [j c a d]")
    for committed in range(5):
        logs.assert_safe(committed, logs.outcome(committed, settings=settings, identity=True))


def test_a_copy_further_along_the_walk_has_to_be_in_its_place() -> None:
    """Records that were written again, stale headers, and copies that compaction took: the next
    copy on the walk is no neighbour of what was reached, and stands behind what C has to read."""
    source = "a b c d e b' a' d' f b''"
    logs = Logs(source, "b''=9 c=2 -d=3 e=1 -b'=5 a'=6 d'=4 f=5 b''=9")
    logs.assert_loses_no_content(5, logs.outcome(5))


def test_behind_the_frontier_nothing_is_passed_from_a_record_before_it() -> None:
    """Written again with old times, stale headers, ends inside a repeat: F is above C, so that
    what lies behind its copy is a repeat of what C has to read."""
    source = "a@0 b@1 c@2 d@3 e@4 f@5 g@1 a'@0 b'@1 c'@2"
    copies = "a@0=0 b@1=0 c@2=2 d@3=3 e@4=4 f@5=5 g@1=6 a'@0=6 b'@1=5 c'@2=7"
    outcome = (logs := Logs(source, f"{copies} [a@0=0 b@1=1 | c@2=2 d@3=0]")).outcome(8)
    assert isinstance(outcome, Translated)
    assert outcome.target_offset <= logs.true_position(8)


def test_an_earlier_equal_of_the_first_record_is_counted() -> None:
    """Trimmed to the second or third of three equal records: which one is not seen."""
    logs = Logs("d1 d1' d1'' c2", "d1 d1' d1'' c2")
    logs.target.delete_records(1)
    for committed in range(5):
        logs.assert_safe(committed, logs.outcome(committed))


def test_an_earlier_equal_of_a_pair_above_is_counted() -> None:
    """Nothing but one pair is found, and its copy may be that of an earlier equal record."""
    settings = TranslationSettings(budget=1, scan_bytes=200)
    logs = Logs("a b a' b' c", "a b b' c")
    logs.assert_safe(3, logs.outcome(3, settings=settings, identity=True))


# --- ends -----------------------------------------------------------------------------------


def test_at_the_mirrors_end_an_earlier_equal_counts() -> None:
    """The log ends with c, which was written again: what lies between the two is to come."""
    settings = TranslationSettings(budget=2, scan_bytes=300)
    logs = Logs("a b c d e b' c' d'", "a b c", target_from=1)
    logs.assert_safe(8, logs.outcomes(*range(9), settings=settings)[8])


def test_copies_behind_the_frontier_that_are_older_than_the_commit_are_passed() -> None:
    """F is h, and behind its copy c..e come again: for a group at k none of that is new."""
    logs = Logs("a b c d e f g h i j k l", "a b c d e f g h [c d e]")
    outcome = logs.outcome(8, identity=True)
    assert isinstance(outcome, Translated)
    assert (outcome.target_offset, outcome.precision) == (11, Precision.FRONTIER)


def test_a_log_end_is_no_answer_below_an_equal_of_the_frontier() -> None:
    """The z at 2 may be either's: for what lies between both the end is none."""
    logs = Logs("a b z c d z'", "a b z' [b]")
    for asked in logs.everyone():
        for committed, outcome in logs.outcomes(*asked).items():
            logs.assert_loses_no_content(committed, outcome)


def test_what_is_left_of_a_trimmed_target_is_looked_at_before_pairs_are_sought() -> None:
    """Nothing that e1's group has read is left there: the log's start answers within a budget
    that no pair would."""
    source, settings = "e1 e2 a1 b1 a2 b2", TranslationSettings(budget=2, scan_bytes=1)
    logs = Logs(source, "e1 e2 a1 b1 [e1 e2 a1 b1 a2 b2] [a2 b2]")
    logs.target.delete_records(7)
    outcome = logs.outcome(1, settings=settings)
    assert isinstance(outcome, Translated), outcome
    assert outcome.target_offset == 7


def test_in_failback_the_lowest_of_equal_records_counts() -> None:
    """The original lost what the replica was made of; of three c2 that are left the group has read
    one, so that e2 between them is still to be read."""
    logs = Logs("e1@0 c1@1 | c2@2 c2'@2", "-e1 -c1 -c2 c2'@2 e2@3 c2''@2 c2'''@2")
    work = PartitionWork(SOURCE, TARGET, (0, 1, 2, 3, 4), is_remote_topic=False, failback=True)
    positions = translate_partitions(flow(), logs.source_cluster, logs.target_cluster, [work])
    [outcome] = [it.translation.outcome for it in positions if it.offset == 4]
    assert not isinstance(outcome, Translated) or outcome.target_offset <= 4


def assert_passes_nothing_in_failback(
    logs: Logs, true: Callable[[int], int], *, is_known: bool = True
) -> None:
    """No position of the replica resumes on the original behind `true`, asked alone and with all
    others; `is_known` says whether the flow's names tell that it goes back."""
    for asked in logs.everyone():
        work = PartitionWork(SOURCE, TARGET, asked, is_remote_topic=False, failback=is_known)
        for it in translate_partitions(flow(), logs.source_cluster, logs.target_cluster, [work]):
            outcome = it.translation.outcome
            if isinstance(outcome, Translated):
                assert outcome.target_offset <= true(it.offset), (it.offset, outcome, asked)


def test_in_failback_an_equal_written_later_is_no_copy() -> None:
    """The first x is lost on the original, and nobody has read d and e before the other."""
    logs = Logs("a@2 b@3 c@4 x@1", "a b c -x d@5 e@6 f@7 x'@1")
    assert_passes_nothing_in_failback(logs, lambda committed: committed)


def test_in_failback_that_no_name_tells_of_the_lowest_of_equal_records_counts() -> None:
    """The replica ends with h, of which the original has another one, behind c and d."""
    logs = Logs("a@1 b@2 h@3", "a@1 b@2 h@3 c@4 d@5 h'@3")
    assert_passes_nothing_in_failback(logs, lambda committed: committed, is_known=False)


def test_in_failback_a_replica_is_seen_to_be_set_back_behind_records_of_others() -> None:
    """It began at e, was set back to a, and has come to f again; what others wrote comes first and
    last. The original has lost x."""
    logs = Logs("y@90 e@5 x@6 f@7 a@1 b@2 c@3 e x f z@91", "a b c e -x f")
    assert_passes_nothing_in_failback(logs, lambda committed: max(0, committed - 4))


# --- offset headers -------------------------------------------------------------------------


def test_headers_that_content_contradicts_are_believed_no_more() -> None:
    """The header of the first copy names a: then it says nothing of which a the others are."""
    logs = Logs("a b c a' b' c' a'' a''' d", "b=0 c=2 a'=3 b'=3 a''=6 a'''=7 [b=0]")
    logs.assert_safe(6, logs.outcome(6))


def test_headers_tell_copies_of_equal_records_apart() -> None:
    """The second e1 is the one whose header says so, though the source lost the first."""
    Logs("-e1 e1' e1'' a1 a2 b1 a2'", "e1=0 e1'=1 e1''=2 a1=3").assert_exact(2, 2)


def test_a_header_names_the_copy_among_equal_ones() -> None:
    """Three records twice in one millisecond, and twice again; some headers are stale."""
    source = "a@0 b@0 c@0 a'@0 b'@0 c'@0"
    target = "a@0=0 b@0=0 c@0=0 a'@0=3 b'@0=2 c'@0=5 [a@0=0 b@0=1 c@0=2 a'@0=0 b'@0=1 c'@0=5]"
    outcome = (logs := Logs(source, target)).outcome(1)
    assert isinstance(outcome, Translated)
    assert outcome.target_offset <= logs.true_position(1)


# --- what the proofs rest on ----------------------------------------------------------------


def test_a_record_without_a_timestamp_is_not_told_of_by_lookups() -> None:
    """x bears no time, and lies before the copy of a: a does not answer behind it."""
    assert_passes_nothing(Logs("a@5 x@- b@6", "x@- | a@5"))


def test_the_record_right_behind_counts_by_time() -> None:
    """x alone lies before the copy of a."""
    assert_passes_nothing(Logs("a@5 x@3 b@9", "x@3 | a@5"))


def test_what_compaction_took_before_a_restart_was_the_lowest_copy() -> None:
    """The first a1 and b1 are gone: a2 and b2 lie before the copies that are left. The source's
    log has holes, so that no more offsets lie between the beginning and these on the target."""
    z = [f"z{n}@{n}" for n in range(20)]
    holes = _gone(_at([f"x{n}" for n in range(30)], 20))
    logs = Logs(
        f"{' '.join(z)} {holes} a1@60 b1@61 a2@52 b2@53 c@70",
        f"{' '.join(z)} -a1@60 -b1@61 a2@52 b2@53 | {' '.join(z[2:])} a1 b1",
    )
    for committed in (50, 51):
        outcome = logs.outcome(committed)
        if isinstance(outcome, Translated):
            assert outcome.target_offset <= logs.true_position(committed), (committed, outcome)


def test_an_earlier_equal_at_the_end_of_both_logs_shows_nothing() -> None:
    """The target ends with x, which equals the source's last record: u lies before a."""
    assert_passes_nothing(Logs("a x@9 u x'", "u | a x@9"))


@pytest.mark.parametrize("others", ["", "y0@90"])
def test_an_equal_record_feigns_no_beginning_where_the_source_has_holes(others: str) -> None:
    """The target begins with s5', which equals s5, and late records, or one of others. u0 to u3 lie
    before the copies of s0 to s8; and no more offsets lie between the beginning and these than on
    the source, which has holes."""
    s, late = [f"s{n}@{100 + n}" for n in range(9)], _at([f"u{n}" for n in range(4)], 10)
    holes = _gone(_at([f"x{n}" for n in range(20)], 107))
    apart = _at([f"d{n}" for n in range(9)], 150)
    logs = Logs(
        f"{' '.join(s[:7])} {holes} {' '.join(s[7:])} {apart} s5' {late} z9@1000",
        f"s5'@105 {others} {late} [{' '.join(s)}]",
    )
    for committed in (7, 27, 28, 29):
        outcome = logs.outcome(committed)
        if isinstance(outcome, Translated):
            assert outcome.target_offset <= logs.true_position(committed), (committed, outcome)


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
@pytest.mark.parametrize("scan_bytes", [1, 60, 150, 300, 600])
def test_what_is_not_known_of_the_first_record_is_counted(budget: int, scan_bytes: int) -> None:
    """Begun at e and set back to a, which the budget may not reach."""
    logs = Logs("a b c d e f g h", "e f g h [a b c d e f g h]")
    settings = TranslationSettings(budget=budget, scan_bytes=scan_bytes)
    for asked in logs.everyone():
        for committed, outcome in logs.outcomes(*asked, settings=settings).items():
            logs.assert_safe(committed, outcome)


class _Meanwhile:
    """A cluster that changes right after each call of this name."""

    def __init__(self, cluster: MemoryCluster, call: str, change: Callable[[], object]) -> None:
        self._cluster, self._call, self._change = cluster, call, change

    def __getattr__(self, name: str) -> object:
        method = getattr(self._cluster, name)
        if name != self._call:
            return method

        def answer(*words: object) -> object:
            answered = method(*words)
            self._change()
            return answered

        return answer


def test_the_end_of_the_target_is_read_before_that_of_the_source() -> None:
    """b is written and copied once one of the ends was read: C = 1 resumes before it."""
    logs = Logs("a", "a")
    written: list[str] = []

    def write_and_copy() -> None:
        if not written:
            written.append("b")
            for log in (logs.source, logs.target):
                log.append([Message(LATER_MS, b"b", b"b")])

    source = _Meanwhile(logs.source_cluster, "log_ranges", write_and_copy)
    target = _Meanwhile(logs.target_cluster, "log_ranges", write_and_copy)
    work = PartitionWork(SOURCE, TARGET, (1,), is_remote_topic=True)
    [found] = translate_partitions(flow(), cast(Cluster, source), cast(Cluster, target), [work])
    outcome = found.translation.outcome
    assert isinstance(outcome, Translated)
    assert outcome.target_offset == 1
