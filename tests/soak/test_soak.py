"""A daemon that runs for long holds no more at the end than in the middle."""

import random

import pytest

from tests.soak.soaking import soak
from tests.soak.verdict import Tolerance, growing, growth, growths

MINUTES = [float(number) for number in range(31)]


def test_leak_is_seen_through_noise():
    """What grows by a little all the time grows, whatever a few samples say."""
    chance = random.Random(3)
    values = [100 + at + chance.uniform(-3, 3) for at in MINUTES]
    values[20:22] = [20, 400]
    found = growth(MINUTES, values)
    assert 11 < found.grown < 19
    assert not Tolerance(0.03, 4).allows(found)


def test_start_is_no_leak():
    """What grows in the first half and stays there is flat; noise and outliers are no growth."""
    chance = random.Random(4)
    values = [min(100.0, 10 * at) + chance.uniform(-3, 3) for at in MINUTES]
    values[-1] = 900
    assert Tolerance(0.03, 4).allows(growth(MINUTES, values))


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_three_minutes(tmp_path):
    """For three minutes with restarts of brokers and of MirrorMaker 2: no commit skips a record or
    steps back, the API never fails, and nothing grows."""
    found = soak(tmp_path, 180)
    assert {*found.requests} == {"200"}
    assert not [one for one in found.events if one["level"] == "error"]
    assert not growing({**growths(found.samples), **growths(found.heaps)})
