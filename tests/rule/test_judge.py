"""The judge of random worlds excuses nothing that a reader of both logs could tell.

Each excuse of `World.excuse` with its smallest log, and one beside it that has none. Logs are
written as in `tests.rule.test_frontier_examples`; the answers are made up.
"""

from dataclasses import replace

import pytest

from tests.random_logs import Kind
from tests.replication_model import World
from tests.rule.test_frontier_examples import Logs
from tsoffset.model import Basis, Precision, Proof, Safety, Translated


def without(logs: Logs, *gone: int) -> World:
    """The same after the source has lost these offsets."""
    world = logs.world
    logs.source.remove(gone)
    world.forget()
    return world


def answer(offset: int, *pairs: tuple[int, int]) -> Translated:
    return Translated(offset, Precision.EXACT, 0, offset, offset, pairs=pairs)


def test_a_record_of_its_own_content_that_is_passed_is_excused_by_nothing():
    """Whoever reads both logs sees x below the answer and not behind it."""
    world = Logs("a b c x@0", "a b c x [b c]").world
    assert not world.is_safe(3, 6)
    assert world.excuse(3, answer(6, (2, 2))) is None


@pytest.mark.parametrize("committed", [1, 2])
def test_what_equals_what_the_group_has_read_is_no_loss(committed):
    """a' is passed; the group has read a."""
    world = Logs("a b a' c", "b a' c").world
    assert world.excuse(committed, answer(2)) == ("equal" if committed == 2 else None)


def test_what_equals_what_the_group_will_read_is_no_loss():
    """x is passed, and x' lies behind the answer."""
    world = Logs("a x b x' c", "a x b x' c").world
    assert world.excuse(1, answer(3, (1, 3))) is None  # b is passed, too
    world = Logs("a x x' c", "a x x' c").world
    assert world.excuse(1, answer(2, (1, 2))) == "equal"


def test_what_equals_what_the_source_has_lost_is_not_read():
    """The group may have read a, but the source no longer has it."""
    assert without(Logs("a b a' c", "b a' c"), 0).excuse(2, answer(2)) is None


def test_a_lost_record_is_taken_for_its_equal():
    """The source has lost x', whose copy is taken for that of x: b lies between the two. c does
    not, nor does b where the answer rests on another pair."""
    logs = Logs("a x b c x'", "a b c x'")
    world = without(logs, 4)
    assert world.excuse(1, answer(3, (1, 3))) == "lost_equal"
    assert world.excuse(1, answer(3, (0, 0))) is None
    assert Logs("a x b c x'", "a b c x'").world.excuse(1, answer(3, (1, 3))) is None


def test_a_record_of_others_is_taken_for_a_copy():
    """Somebody else wrote what equals x, before x was copied; the answer rests on that, or it does
    not."""
    world = Logs("a b x c", "a b x c x'").world
    world.life.equal_to_ours.append(4)
    assert world.excuse(2, answer(4, (2, 4))) == "foreign_equal"
    assert world.excuse(2, answer(4, (1, 1))) is None


def test_what_was_copied_before_the_mirror_was_set_back_below_the_source_may_be_very_late():
    """The source has lost z, with which the target begins: where x, which is older than all that
    the source begins with, was copied from there is not seen. It is where z is there."""
    logs = ("b@5 c@6 z@7 x@0", "z x [b c]")
    assert without(Logs(*logs), 2).excuse(3, answer(4, (1, 3))) == "very_late"
    assert Logs(*logs).world.excuse(3, answer(4, (1, 3))) is None
    younger = Logs("b@5 c@6 z@7 x@8", "z x [b c]")
    assert without(younger, 2).excuse(3, answer(4, (1, 3))) is None


def test_what_is_still_to_come_below_the_beginning_is_seen_by_copies_that_are_left():
    """Begun at c, set back to a: that b is to come is told by the copy of a, and by nothing once a
    cleaner took that."""
    logs = Logs("a b c d", "c d a")
    assert logs.world.certain_rereads(3, 1) == 2
    logs = Logs("a b c d", "c d a z")
    logs.target.remove([2])
    assert logs.world.certain_rereads(3, 1) == 0


def test_a_restart_before_the_beginning_excuses_no_other_bound():
    """Begun at c, set back to a: a and b come again, which a reader may not see. That d does is
    seen."""
    world = Logs("a b c d e", "c d e [a b c d e]").world
    assert world.certain_rereads(4, 1) == 3
    assert world.excuse_bound(4, replace(answer(1), reread_bound=1)) == "set_back"
    assert world.excuse_bound(4, answer(1)) is None


def test_no_premise_excuses_a_proof_by_time():
    """It holds for whatever replicator, two that write at once too."""
    world = Logs("a b c", "c a b").world
    world.kind = Kind(two_at_once=True)
    by_first_copy = replace(answer(3, (1, 2)), basis=Basis.NEXT_RECORD)
    assert world.excuse(2, by_first_copy) == "premise"
    by_time = replace(by_first_copy, safety=Safety(Proof.TIME))
    assert world.excuse(2, by_time) is None
    assert world.excuse(2, replace(by_first_copy, basis=Basis.ALL_READ)) is None
