"""Small logs that one guard of the rule each is for: without it they are answered wrongly
(`tests.mutants` removes guards). Written as those of `tests.rule.test_frontier_examples`."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.memory_flows import after_each
from tests.random_logs import NOW_MS
from tests.rule.test_frontier_examples import LATER_MS, Logs, run
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Precision, Translated
from tsoffset.testing.memory_cluster import Message


def _at(words: Iterable[str], first_ms: int) -> str:
    """The words with times that rise by one."""
    return " ".join(f"{word}@{at}" for at, word in enumerate(words, first_ms))


def _gone(words: str) -> str:
    return " ".join(f"-{word}" for word in words.split())


def _budget(budget: int, scan_bytes: int) -> TranslationSettings:
    return TranslationSettings(budget=budget, scan_bytes=scan_bytes)


# --- where the frontier is sought -----------------------------------------------------------

# More records than are looked for above the last one: compaction took what stood between.
# So many are not copied yet: more than are looked for from the end of the source.
LAG = _at([f"{chr(108 + n)}9" for n in range(12)], 200)
OLD, NEW = [f"{key}1" for key in "abcdefghijk"], [f"{key}2" for key in "abcdefghijk"]
EARLY, NEXT = _at([f"{key}1" for key in "abcdefghij"], 50), _at([*"lmnopqrs"], 61)
# A clock that was set back: the next eight after c1 are gone, and c1 is the youngest of all that is
# left. Only the target's first, a2, tells.
ONLY_THE_FIRST_TELLS = (
    f"p@0 {_at(OLD, 50)} {_at(NEW, 10)} x@30 {LAG}",
    f"-p@0 {_gone(_at(OLD, 50))} {_at(NEW, 10)} x@30 [p@0 {_at(OLD[:3], 50)}]",
)
# A clock that runs backwards, and a log that ends inside a repeat: only the next records tell,
# eight and again eight.
BACKWARDS = " ".join(f"{chr(97 + n)}@{40 - n}" for n in range(20))
LAG_BACKWARDS = " ".join(f"{chr(97 + n)}9@{20 - n}" for n in range(12))
RUNS_BACKWARDS = f"{BACKWARDS} {LAG_BACKWARDS}", f"{BACKWARDS} [a@40 b@39]"


@pytest.mark.parametrize(
    ("source", "target", "settings"),
    [
        # The next eight after k1 are gone, and the first ones that are younger than k1 were written
        # before it: only the youngest, t, tells that the mirror had come further.
        pytest.param(
            f"{EARLY} k1@20 {NEXT} t@69 {LAG}",
            f"{' '.join(EARLY.split()[:9])} -j1@59 -k1@20 {_gone(NEXT)} t@69 [{EARLY} k1@20]",
            None,
            id="the youngest tells",
        ),
        # The next eight after c1 are gone, o is the target's first, and p1 its youngest: only a2,
        # the first one younger than c1, tells.
        pytest.param(
            f"o@0 p1@100 {_at(OLD, 2)} {_at(NEW, 14)} p2@40 x@41 {LAG}",
            f"o@0 -p1@100 {_gone(_at(OLD, 2))} {_at(NEW, 14)} p2@40 x@41"
            f" [o@0 p1@100 {_at(OLD[:3], 2)}]",
            None,
            id="the first younger one tells",
        ),
        pytest.param(*ONLY_THE_FIRST_TELLS, None, id="the first tells"),
        pytest.param(*ONLY_THE_FIRST_TELLS, _budget(1, 600), id="the first is beyond the budget"),
        pytest.param(*RUNS_BACKWARDS, None, id="the next ones tell"),
        *(
            pytest.param(*RUNS_BACKWARDS, _budget(*given), id=f"the next ones, budget {given}")
            for given in [(2, 1), (3, 1), (1, 150), (2, 150), (2, 500), (4, 300)]
        ),
        # The youngest is of others, and hides u and v from time lookups.
        pytest.param(
            _at([f"{chr(97 + n)}1" for n in range(26)], 1),
            "a1 y9@99 u1 v1 [a1 b1 c1]",
            None,
            id="records of others are the youngest",
        ),
        # A retried batch, a and b, and x before their copies is not read for the budget's sake.
        pytest.param(
            "p@0 q@1 a@3 b@5 x@4 a' b' y@7 z@8",
            "p q x a' b' y z",
            _budget(3, 1),
            id="what could not be read before a series may be later",
        ),
        # b and c repeatedly; one b was not copied, and two were copied again: two equal records
        # in a row do not tell where these stand.
        pytest.param(
            "b c c' b' b'' c'' b''' c'''",
            "b c c' b' c'' b''' c''' [b' c'']",
            None,
            id="a short series that is equal is no chain",
        ),
        # The header of the second c says that it is the first: for the second c, nothing lies
        # behind the first one.
        pytest.param(
            "a b b' c c' a'", "b'=2 c=3 c'=3 a'=5", None, id="the lowest copy among equals counts"
        ),
        # Begun at d and set back to a: for the first a the second one's copy is none.
        pytest.param(
            "a a' d e", "-d | e [a a' d e] [e]", _budget(8, 1), id="equals beyond the budget"
        ),
        # The cleaner took d and f from the middle of repeats: the e at 5 is as far from a pair as
        # its original is, and f lies before it alone.
        pytest.param(
            "b d e f g", "-b | e f [e] [-d e -f g]", None, id="a distance proves no place by itself"
        ),
        # The first c1 on the target may be the third: what is counted up to there is nothing.
        pytest.param(
            "c1 a1 a1' c1' c1'' a1'' b1",
            "c1'' a1'' b1",
            None,
            id="counting needs a record behind the commit that stands alone",
        ),
        # Of the equal records that the source lost, copies are left before those of their equals.
        pytest.param(
            "-e1 -c1 -c2 e1' c2' c3",
            "e1 c1 c2 e1' c2' c3 [e1 c1 c2 e1' c2' c3]",
            None,
            id="copies are left of equals that the source lost",
        ),
        # x bears no time, and lies before the copy of a: a does not answer behind it.
        pytest.param("a@5 x@- b@6", "x@- | a@5", None, id="lookups tell nothing without a time"),
        # x alone lies before the copy of a.
        pytest.param("a@5 x@3 b@9", "x@3 | a@5", None, id="the record right behind counts by time"),
        # The target ends with x, which equals the source's last record: u lies before a.
        pytest.param("a x@9 u x'", "u | a x@9", None, id="an earlier equal at both ends"),
    ],
)
def test_nothing_is_passed(source, target, settings):
    """No position resumes behind what it has to read, asked alone and with all others."""
    Logs(source, target).assert_skips_nothing(settings=settings)


BETWEEN = "c@3 e@4 f@5 g@6 h@7 i@8"


@pytest.mark.parametrize(
    ("source", "target", "committed"),
    [
        # The last record on the target may be of x or of x', and behind the copy of x' are j and k.
        (
            f"x@5 a@10 b@11 c@12 d@13 e@14 f@15 g@16 h@17 i@18 x'@5 j@3 k@2 {LAG}",
            "x'@5 j@3 k@2 [x@5]",
            (11, 12),
        ),
        # x, b and c are left out. The x at 1 is the second's: behind it the second does not come.
        ("a x b c x' d", "a x' d", (2, 3)),
        # From a on: the x at 1 may be the one behind b, which the group has yet to read.
        ("a x b x' c", "a x' c", (2,)),
        # As many records as on the source, since one of others stands among them.
        ("a a' b a'' b' d", "a' b z0 a'' b' d", (1,)),
    ],
)
def test_known_equals_are_no_copies(source, target, committed):
    """These positions do not resume behind what they have to read, where all are asked: then the
    equal records are known, which bear times of others."""
    logs = Logs(source, target)
    *_, everyone = logs.everyone()
    outcomes = logs.outcomes(*everyone)
    for offset in committed:
        logs.assert_passes_nothing(offset, outcomes[offset])


@pytest.mark.parametrize(
    ("source", "target", "target_from"),
    [
        # The broker answers a, which was deleted, as the youngest.
        ("a@9 b@1 c@2 d@3", "a@9 b@1 c@2", 1),
        # The x on the target may be a later one within one millisecond: the run is read to its end.
        ("a@0 x@1 b@1 c@1 e@1 f@1 g@1 x'@1 d@9", "a@0 x'@1 d@9", 0),
        # x was written again with its old time, far away, and that alone is there: the record of
        # others before it is younger.
        (f"a@0 x@1 b@2 {BETWEEN} x'@1 d@9", "a@0 z@5 x'@1 d@9", 0),
        # a before x is younger, so that the next one of its time may be anywhere.
        (f"p@0 a@5 x@1 b@6 {BETWEEN} x'@1 d@9", "p@0 x'@1 d@9", 0),
        # Nothing lies before the x on the target: its place is not seen.
        (f"a@0 x@1 b@2 {BETWEEN} x'@1 d@9", "x'@1 d@9", 0),
        # A retried batch, a and b: before their copies lies one of others', and x before that.
        ("p@0 q@1 a@3 b@5 x@4 a' b' y@7 z@8", "p q x z0@4 a' b' y z", 0),
        # Of the four that stand side by side each is the first copy of its own: a walk that passes
        # one has passed what the group has read.
        ("a a' b a'' c c' d", "a a' b a'' c c' d", 0),
    ],
)
def test_equal_records_cost_no_safety(source, target, target_from):
    """Every answer is safe and keeps its bound."""
    Logs(source, target, target_from=target_from).assert_all_safe()


@pytest.mark.parametrize(
    ("logs", "committed", "settings", "identity"),
    [
        # For b the log's start answers, a copy of a: of which of the two is beyond the budget.
        (Logs("a b d a'", "a"), range(5), _budget(1, 100), False),
        # Compaction took the first e1, c1 and c2 from the source: their copies stand before those
        # of e1' and c2'. For C = 4 the copy of the lost c2 is taken for that of c2', which bounds
        # nothing (`excuse_bound`) and passes nothing.
        (
            Logs("-e1 -c1 -c2 e1' c2' c3", "e1 c1 c2 e1' c2' c3 [e1 c1 c2 e1' c2' c3]"),
            (0, 1, 2, 3, 5, 6),
            None,
            False,
        ),
        # Begun at c and set back: between j and what is known of the source is more than budget.
        (Logs("j c a d", "c a [j c a d]"), range(5), _budget(2, 200), True),
        # Trimmed to the second or third of three equal records: which one is not seen.
        (Logs("d1 d1' d1'' c2", "d1 d1' d1'' c2", target_from=1), range(5), None, False),
        # Nothing but one pair is found, and its copy may be that of an earlier equal record.
        (Logs("a b a' b' c", "a b b' c"), (3,), _budget(1, 200), True),
        # Begun at g, set back to d, and then to a: c is to come, and a and b lie behind the rest.
        (Logs("a b c d e f g h", "g h [d e f g h] [a b]"), (5, 6), None, True),
        # Begun at x', set back to a. The log seems to begin at x, which x' equals.
        (
            Logs("a b c d x f g h b' d' x' l m n", "x' l m n [a b c d x f g h x' l m n]"),
            (7, 8, 9, 11, 12, 13),
            None,
            True,
        ),
        # The same, and c to f are yet to come.
        (Logs("a b x d e f x' g h", "x' g h [a b x d e]"), (4, 5, 7, 8, 9), None, True),
        # The header of the first copy names a: it says nothing of which a the others are.
        (
            Logs("a b c a' b' c' a'' a''' d", "b=0 c=2 a'=3 b'=3 a''=6 a'''=7 [b=0]"),
            (6,),
            None,
            False,
        ),
    ],
)
def test_earlier_equals_are_counted(logs, committed, settings, identity):
    """Positions that are asked alone: what an equal record hides is in the bound."""
    for offset in committed:
        logs.assert_safe(offset, logs.outcome(offset, settings=settings, identity=identity))


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
@pytest.mark.parametrize("scan_bytes", [1, 60, 150, 300, 600])
def test_what_is_not_known_of_the_first_record_is_counted(budget, scan_bytes):
    """Begun at e and set back to a, which the budget may not reach."""
    logs = Logs("a b c d e f g h", "e f g h [a b c d e f g h]")
    logs.assert_all_safe(settings=_budget(budget, scan_bytes))


class BareLogs(Logs):
    """Logs whose x have neither key nor value."""

    def as_written(self, message: Message) -> Message:
        return replace(message, key=None, value=None) if message.key == b"x" else message


def test_bare_records_of_one_time_may_be_far_apart():
    """What equals x, which is empty, is no copy of it for that alone."""
    source = "p@0 a@1 x@2 b@3 c@4 e@5 f@6 g@7 h@8 x'@2 d@9"
    BareLogs(source, "p@0 x'@2 d@9").assert_skips_nothing()


# --- written again later --------------------------------------------------------------------

# More than a scan for the original of a late record reads.
PLAIN = run("s", 0, 39, at=100)
NEWER = run("r", 0, 5, at=300)
OLDER = run("r", 0, 5, at=10)


def _written_again_behind(records: int) -> tuple[str, str]:
    """Eight records, so many of a clock that was set back, and the eight again."""
    words = [f"x{n}" for n in range(8)]
    again = " ".join(f"{word}'" for word in words)
    older = run("r", 0, records, at=10)
    written = f"{PLAIN} {_at(words, 200)} {older} {again}"
    return f"{written} d@399 z@400", f"{written} z@400"


def _written_again(records: int) -> tuple[str, str]:
    """So many records, others, and the same again. Compaction took the first ones from the target.
    A filter leaves d out, so that no pair behind tells where these are."""
    words = [f"x{n}" for n in range(records)]
    again = " ".join(f"{word}'" for word in words)
    first = _at(words, 200)
    target = f"{PLAIN} {_gone(first)} {NEWER} {again} z@400"
    return f"{PLAIN} {first} {NEWER} {again} d@399 z@400", target


@pytest.mark.parametrize(
    ("source", "target", "target_from", "committed"),
    [
        # More than are compared within a position's budget, and more than ever are.
        pytest.param(*_written_again(5), 0, (43,), id="a batch"),
        pytest.param(*_written_again(20), 0, (49, 56, 58), id="a long batch"),
        pytest.param(
            f"{PLAIN} x1@200 p@201 x2@202 q@203 x3@204 {NEWER} x1' x2' x3' d@399 z@400",
            f"{PLAIN} -x1@200 p@201 -x2@202 q@203 -x3@204 {NEWER} x1' x2' x3' z@400",
            0,
            (42, 43),
            id="others' records lay between the first ones",
        ),
        pytest.param(
            f"x1@1 x2@2 x3@3 {PLAIN} x1' p@150 x2' x3' {NEWER} x1'' x2'' x3'' d@399 z@400",
            f"-x1@1 -x2@2 -x3@3 {PLAIN} -x1' p@150 -x2' -x3' {NEWER} x1'' x2'' x3'' z@400",
            0,
            (44, 45, 46),
            id="a third time, so that the second was out of order, too",
        ),
        # No lookup finds y, which lies right before the copy of x'.
        pytest.param(
            f"{PLAIN} x@139 r@140 y@5 x' d0@150 d1@151 d2@152 z@160",
            f"{PLAIN} -x@139 y@5 x' z@160",
            0,
            (39, 40, 41),
            id="behind a late record",
        ),
        pytest.param(
            f"{PLAIN} x@138 w@139 r@140 y@- x' w' d0@150 d1@151 d2@152 z@160",
            f"{PLAIN} x@138 w@139 y@- x' w' z@160",
            41,
            (39, 40, 41),
            id="behind a record without a timestamp, on a trimmed target",
        ),
        # No lookup leads to the original of a record before x1'.
        pytest.param(
            f"{PLAIN} x1@200 x2@201 x3@202 {OLDER} x1' x2' x3' d@399 z@400",
            f"{PLAIN} x1@200 x2@201 x3@202 {OLDER} x1' x2' x3' z@400",
            42,
            (39, 40, 41),
            id="behind records of a clock that was set back, on a trimmed target",
        ),
        # More than are compared.
        pytest.param(*_written_again_behind(5), 47, (45, 46), id="a batch, behind a clock"),
        pytest.param(*_written_again_behind(120), 47, (45, 46), id="a batch, far behind a clock"),
    ],
)
def test_the_copies_of_records_written_again_are_not_those_of_the_first(
    source, target, target_from, committed
):
    """What the group has to read lies before them."""
    logs = Logs(source, target, target_from=target_from, padding=3_000)
    logs.assert_skips_nothing(*committed)


class KeylessLogs(Logs):
    """Logs without keys."""

    def as_written(self, message: Message) -> Message:
        return replace(message, key=None)


def test_records_without_what_is_compared_may_be_far_apart():
    """The replicator changes values, and there are no keys: what has the time of x is no copy of it
    for that alone."""
    logs = KeylessLogs("p@0 a@1 x@2 b@3 c@4 e@5 f@6 g@7 h@8 y@2 d@9", "p@0 y@2 d@9")
    settings = TranslationSettings(match=frozenset({"timestamp", "key"}))
    logs.assert_skips_nothing(settings=settings)


# --- single positions -----------------------------------------------------------------------


def test_a_clock_that_was_set_back_hides_no_copy():
    """The lookup of x's time answers the first of 1,500 younger records: that x is not among these
    does not tell that it is not there."""
    many = [f"r{n}@{100 + n}" for n in range(1_500)]
    logs = Logs(" ".join([*many, "x@5", "y@6"]), " ".join([*many, "x@5", "[", many[1495], "]"]))
    outcome = logs.translated(1_500)
    assert outcome.target_offset <= 1_500


def test_a_copy_further_along_the_walk_has_to_be_in_its_place():
    """Records that were written again, stale headers, and copies that compaction took: the next
    copy on the walk is not adjacent to what was reached, and lies behind what C has to read."""
    source = "a b c d e b' a' d' f b''"
    logs = Logs(source, "b''=9 c=2 -d=3 e=1 -b'=5 a'=6 d'=4 f=5 b''=9")
    logs.assert_loses_no_content(5, logs.outcome(5))


def test_behind_the_frontier_nothing_is_passed_from_a_record_before_it():
    """Written again with old times, stale headers, ends inside a repeat: F is above C, so that
    what lies behind its copy is a repeat of what C has to read."""
    source = "a@0 b@1 c@2 d@3 e@4 f@5 g@1 a'@0 b'@1 c'@2"
    copies = "a@0=0 b@1=0 c@2=2 d@3=3 e@4=4 f@5=5 g@1=6 a'@0=6 b'@1=5 c'@2=7"
    logs = Logs(source, f"{copies} [a@0=0 b@1=1 | c@2=2 d@3=0]")
    outcome = logs.translated(8)
    logs.assert_passes_nothing(8, outcome)


def test_at_the_mirrors_end_an_earlier_equal_counts():
    """The log ends with c, which was written again: what lies between the two is to come."""
    logs = Logs("a b c d e b' c' d'", "a b c", target_from=1)
    logs.assert_safe(8, logs.outcomes(*range(9), settings=_budget(2, 300))[8])


def test_at_the_mirrors_end_an_earlier_equal_that_was_not_read_counts():
    """The mirror has reached c. Of the source only the last batch is read, with c again."""
    logs = Logs("a b c d e f", "a b c")
    c = dict(logs.source.messages())[2]
    logs.source.append([c, Message(NOW_MS + 6, b"g", b"g")])
    logs.assert_safe(8, logs.outcome(8))


def test_copies_behind_the_frontier_that_are_older_than_the_commit_are_passed():
    """F is h, and behind its copy c..e come again: for a group at k none of that is new."""
    logs = Logs("a b c d e f g h i j k l", "a b c d e f g h [c d e]")
    outcome = logs.translated(8, identity=True)
    assert (outcome.target_offset, outcome.precision) == (11, Precision.FRONTIER)


def test_a_log_end_is_no_answer_below_an_equal_of_the_frontier():
    """The z at 2 may be either's: for what lies between both the end is none."""
    logs = Logs("a b z c d z'", "a b z' [b]")
    for asked in logs.everyone():
        for committed, outcome in logs.outcomes(*asked).items():
            logs.assert_loses_no_content(committed, outcome)


def test_what_is_left_of_a_trimmed_target_is_looked_at_before_pairs_are_sought():
    """Nothing that e1's group has read is left there: the log's start answers within a budget
    that no pair would."""
    logs = Logs("e1 e2 a1 b1 a2 b2", "e1 e2 a1 b1 [e1 e2 a1 b1 a2 b2] [a2 b2]", target_from=7)
    outcome = logs.translated(1, settings=_budget(2, 1))
    assert outcome.target_offset == 7


@pytest.mark.parametrize(
    ("replica", "original", "is_known"),
    [
        # The first x is lost on the original, and no group has read d and e before the other x.
        ("a@2 b@3 c@4 x@1", "a b c -x d@5 e@6 f@7 x'@1", True),
        # No name tells of the failback. The replica ends with h, of which the original has another
        # one, behind c and d.
        ("a@1 b@2 h@3", "a@1 b@2 h@3 c@4 d@5 h'@3", False),
        # The replica began at e, was set back to a, and has come to f again; what others wrote
        # comes first and last. The original has lost x.
        ("y@90 e@5 x@6 f@7 a@1 b@2 c@3 e x f z@91", "a b c e -x f", True),
    ],
)
def test_in_failback_nothing_is_passed(replica, original, is_known):
    """No position of the replica resumes on the original behind what the group has to read."""
    Logs(replica, original, failback=True).assert_skips_nothing(identity=not is_known)


def test_in_failback_the_lowest_of_equal_records_counts():
    """The original lost what the replica was made of; of three c2 that are left the group has read
    one, so that e2 between them is still to be read."""
    logs = Logs("e1@0 c1@1 | c2@2 c2'@2", "-e1 -c1 -c2 c2'@2 e2@3 c2''@2 c2'''@2", failback=True)
    outcome = logs.outcomes(*range(5))[4]
    assert not isinstance(outcome, Translated) or outcome.target_offset <= 4


# --- offset headers -------------------------------------------------------------------------


def test_headers_tell_copies_of_equal_records_apart():
    """The second e1 is the one whose header says so, though the source lost the first."""
    Logs("-e1 e1' e1'' a1 a2 b1 a2'", "e1=0 e1'=1 e1''=2 a1=3").assert_exact(2, 2)


def test_a_header_names_the_copy_among_equal_ones():
    """Three records twice in one millisecond, and twice again; some headers are stale."""
    source = "a@0 b@0 c@0 a'@0 b'@0 c'@0"
    target = "a@0=0 b@0=0 c@0=0 a'@0=3 b'@0=2 c'@0=5 [a@0=0 b@0=1 c@0=2 a'@0=0 b'@0=1 c'@0=5]"
    outcome = (logs := Logs(source, target)).translated(1)
    logs.assert_passes_nothing(1, outcome)


# --- what the proofs rest on ----------------------------------------------------------------


def test_what_compaction_took_before_a_restart_was_the_lowest_copy():
    """The first a1 and b1 are gone: a2 and b2 lie before the copies that are left. The source's
    log has holes, so that no more offsets lie between the beginning and these on the target."""
    z = [f"z{n}@{n}" for n in range(20)]
    holes = _gone(run("x", 0, 30, at=20))
    logs = Logs(
        f"{' '.join(z)} {holes} a1@60 b1@61 a2@52 b2@53 c@70",
        f"{' '.join(z)} -a1@60 -b1@61 a2@52 b2@53 | {' '.join(z[2:])} a1 b1",
    )
    logs.assert_skips_nothing(50, 51)


@pytest.mark.parametrize("others", ["", "y0@90"])
def test_an_equal_record_feigns_no_beginning_where_the_source_has_holes(others):
    """The target begins with s5', which equals s5, and late records, or one of others. u0 to u3 lie
    before the copies of s0 to s8; and no more offsets lie between the beginning and these than on
    the source, which has holes."""
    s, late = run("s", 0, 9, at=100).split(), run("u", 0, 4, at=10)
    holes = _gone(run("x", 0, 20, at=107))
    apart = run("d", 0, 9, at=150)
    logs = Logs(
        f"{' '.join(s[:7])} {holes} {' '.join(s[7:])} {apart} s5' {late} z9@1000",
        f"s5'@105 {others} {late} [{' '.join(s)}]",
    )
    logs.assert_skips_nothing(7, 27, 28, 29)


def test_the_end_of_the_target_is_read_before_that_of_the_source():
    """b is written and copied once one of the ends was read: C = 1 resumes before it."""
    logs = Logs("a", "a")

    def write_and_copy(_: object) -> None:
        if logs.source.end == 1:
            for log in (logs.source, logs.target):
                log.append([Message(LATER_MS, b"b", b"b")])

    for cluster in (logs.source_cluster, logs.target_cluster):
        after_each(cluster, "log_ranges", write_and_copy)
    outcome = logs.translated(1)
    assert outcome.target_offset == 1
