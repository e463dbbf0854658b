"""Every small log, and a sample of those that are too many: no answer skips a record.

`tests.small_logs` says what is in them; `python -m tests.small_logs` asks for more.
"""

from collections.abc import Iterable
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import pytest

from tests.random_examples import scaled
from tests.small_logs import SmallLog, every, judge, some
from tests.translating import Way
from tsoffset.flow.settings import TranslationSettings

# As all random tests (tests/conftest.py).
pytestmark = pytest.mark.no_cover

THOROUGH = (pytest.mark.thorough, pytest.mark.timeout(1_800))
LONG = (pytest.mark.long, pytest.mark.timeout(14_400))
# With which a position sees next to nothing beside what it asks for first.
NO_BUDGET = TranslationSettings(budget=1, scan_bytes=1)


def assert_nothing_is_skipped(
    logs: Iterable[SmallLog],
    alone: float,
    settings: TranslationSettings | None = None,
    held: int = Way.held,
) -> None:
    """Nothing is passed but what equals a record that the group has read or will read; the logs
    that show otherwise are printed as examples."""
    judged = judge(logs, alone=alone, settings=settings, held=held)
    print(judged)  # noqa: T201 (for docs/accuracy.md, with -s)
    assert not judged.wrong, "\n".join([str(judged), *judged.wrong[:10]])


def every_third(records: int, **among: Any) -> Iterable[SmallLog]:
    """Another third in each run."""
    return islice(every(records, **among), Random().randrange(3), None, 3)


@pytest.mark.parametrize(
    ("logs", "alone"),
    [
        pytest.param(partial(every, 0), 0.1, id="0"),
        pytest.param(partial(every, 1), 0.1, id="1"),
        pytest.param(
            partial(every, 2, jumps=1, compacted=False),
            0.1,
            id="2, one jump",
            marks=pytest.mark.slow,
        ),
        pytest.param(partial(every, 2), 0.05, id="2", marks=THOROUGH),
        pytest.param(
            partial(every_third, 3, jumps=1, compacted=False),
            0.05,
            id="a third of 3, one jump",
            marks=THOROUGH,
        ),
        pytest.param(
            partial(every, 3, jumps=1, compacted=False), 0.05, id="3, one jump", marks=LONG
        ),
        pytest.param(partial(every, 3, compacted=False), 0.02, id="3, two jumps", marks=LONG),
    ],
)
def test_every_log_is_answered_safely(logs, alone):
    """All there is in logs of so many records."""
    assert_nothing_is_skipped(logs(), alone)


@pytest.mark.parametrize(
    ("records", "seed", "number", "alone", "settings"),
    [
        *((records, 0, scaled(2_000), 0.1, None) for records in (3, 4, 5)),
        # Where next to nothing is read, nothing is concluded from what is not seen.
        (5, 1, scaled(1_000), 0.5, NO_BUDGET),
        *(
            pytest.param(records, 2, 4_000, 0.1, settings, marks=THOROUGH)
            for records in (3, 4, 5)
            for settings in (None, NO_BUDGET)
        ),
        *(pytest.param(records, 3, 300_000, 0.02, None, marks=LONG) for records in (3, 4, 5, 6)),
    ],
)
def test_a_sample_is_answered_safely(records, seed, number, alone, settings):
    """The same ones each time, by their seed."""
    assert_nothing_is_skipped(islice(some(records, seed=seed), number), alone, settings)


@pytest.mark.parametrize("records", [4, 5])
def test_a_sample_is_answered_safely_in_little_memory(records):
    """What is known of a partition stays right when the records that it was seen from are
    dropped."""
    assert_nothing_is_skipped(islice(some(records, seed=7), scaled(1_000)), 0.0, held=1)
