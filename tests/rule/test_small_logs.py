"""Every small log, and a sample of those that are too many: no answer skips a record.

`tests.small_logs` says what is in them; `python -m tests.small_logs` asks for more.
"""

from collections.abc import Iterable
from itertools import islice

import pytest

from tests.random_examples import scaled
from tests.small_logs import Judged, SmallLog, every, judge, some
from tests.translating import silence_logs
from tsoffset.flow.settings import TranslationSettings

# As all random tests (tests/conftest.py).
pytestmark = pytest.mark.no_cover

# With which a position sees next to nothing beside what it asks for first.
NO_BUDGET = TranslationSettings(budget=1, scan_bytes=1)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    silence_logs()


def assert_nothing_is_skipped(
    logs: Iterable[SmallLog], alone: float, settings: TranslationSettings | None = None
) -> Judged:
    """Nothing is passed but what equals a record that the group has read or will read; the logs
    that show otherwise are printed as examples."""
    judged = judge(logs, alone=alone, settings=settings)
    print(judged)  # noqa: T201 (for docs/accuracy.md, with -s)
    assert not judged.wrong, "\n".join([str(judged), *judged.wrong[:10]])
    return judged


def test_every_log_of_one_or_two_records_is_answered_safely() -> None:
    """Those of two with one jump back and without compaction; the others take longer."""
    for logs in (every(0), every(1), every(2, jumps=1, compacted=False)):
        assert_nothing_is_skipped(logs, alone=0.1)


@pytest.mark.parametrize("records", [3, 4, 5])
def test_a_sample_of_larger_ones_is_answered_safely(records: int) -> None:
    """The same ones each time."""
    assert_nothing_is_skipped(islice(some(records, seed=0), scaled(2_000)), alone=0.1)


def test_a_sample_is_answered_safely_without_a_budget() -> None:
    """Where next to nothing is read, nothing is concluded from what is not seen."""
    assert_nothing_is_skipped(islice(some(5, seed=1), scaled(1_000)), alone=0.5, settings=NO_BUDGET)


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
def test_every_log_of_two_records_with_two_jumps_is_answered_safely() -> None:
    """All there is in logs of two records."""
    assert_nothing_is_skipped(every(2), alone=0.05)


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
def test_every_log_of_three_records_with_a_jump_is_answered_safely() -> None:
    """Without compaction."""
    assert_nothing_is_skipped(every(3, jumps=1, compacted=False), alone=0.05)


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("settings", [None, NO_BUDGET], ids=["", "no budget"])
@pytest.mark.parametrize("records", [3, 4, 5])
def test_a_larger_sample_is_answered_safely(
    records: int, settings: TranslationSettings | None
) -> None:
    """The same ones each time, others than in the small sample."""
    logs = islice(some(records, seed=2), 4_000)
    assert_nothing_is_skipped(logs, alone=0.1, settings=settings)


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_every_log_of_three_records_with_two_jumps_is_answered_safely() -> None:
    """Without compaction."""
    assert_nothing_is_skipped(every(3, compacted=False), alone=0.02)


@pytest.mark.long
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("records", [3, 4, 5, 6])
def test_a_very_large_sample_is_answered_safely(records: int) -> None:
    """The same ones each time."""
    assert_nothing_is_skipped(islice(some(records, seed=3), 300_000), alone=0.02)
