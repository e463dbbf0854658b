"""How much is under way at once, what a limit leaves, and the time that a call has."""

import time

import pytest

from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.rate_limit import Rate, Window


@pytest.mark.parametrize(
    ("limit", "rate", "answers", "sizes"),
    [
        # It begins carefully, since it is not known how large answers are, and opens to its limit.
        (64, Rate(), [(10_000, 64)], [16, 64]),
        # Where the user allows for few it is no larger from the start.
        (3, Rate(), [(1, 1)], [3, 3]),
        # What is under way takes memory: about 16 MB, whatever the size of batches, but one.
        (64, Rate(), [(1_000_000, 100), (90_000_000, 1_000)], [16, 16, 1]),
        # With a limit on bytes it is one at first; then what the limit allows for a quarter second.
        (64, Rate(1_000_000), [(50_000, 100), (2_000_000, 1_000)], [1, 5, 1]),
    ],
)
def test_how_much_is_under_way(limit, rate, answers, sizes):
    """At first, and after each of these runs of answers: their bytes, and how many there are."""
    window = Window(limit, rate)
    found = [window.size]
    for size, count in answers:
        for _ in range(count):
            window.note_answer(size)
        found.append(window.size)
    assert found == sizes


def test_after_a_throttle_one_thing_is_asked_for_at_a_time():
    """And with each answer one more, until the broker holds back again."""
    window = Window(64, Rate())
    window.note_throttling()
    assert window.size == 1
    window.note_answer(100)
    window.note_answer(100)
    assert window.size == 3
    window.note_throttling()
    assert window.size == 1


def test_bytes_are_paid_for_one_after_the_other():
    """Answers that come together are paid for in turn, so that no second gets more than its
    share; without a limit nothing is paid."""
    rate = Rate(1_000)
    rate.spend(5_000_000)
    until = rate.free_at
    assert until > time.monotonic()
    rate.spend(500)
    assert rate.free_at - until == pytest.approx(0.5)
    free = Rate()
    free.spend(10**12)
    assert free.free_at == 0


def test_rests_of_several_brokers_at_once_count_once():
    """What a call was told to wait is no part of its time, and is not given twice."""
    deadline = Deadline.after(1_000)
    ends = deadline.ends
    moment = time.monotonic() + 1_000
    deadline.rest_until(moment)
    longer = deadline.ends - ends
    assert 0 < longer <= 1_000
    deadline.rest_until(moment)
    deadline.rest_until(moment - 500)
    assert deadline.ends - ends == longer
    deadline.rest_until(moment + 10)
    assert deadline.ends - ends == pytest.approx(longer + 10)


@pytest.mark.parametrize(
    ("limit", "clients", "share"),
    [(None, 4, None), (1_000, 1, 1_000), (1_000, 4, 250), (10, 3, 3), (2, 5, 1)],
)
def test_a_limit_is_shared_by_those_who_read_at_once(limit, clients, share):
    """Together they stay within it, as far as it can be divided; each gets a share."""
    settings = ClusterSettings(
        "A", ("localhost:9092",), fetch_max_bytes_per_second=limit, fetch_max_in_flight=limit
    )
    assert settings.shared_by(clients).fetch_max_bytes_per_second == share
    assert settings.shared_by(clients).fetch_max_in_flight == share
