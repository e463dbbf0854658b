"""Logs far larger than what one scan can read, whose timestamps tell nothing."""

import pytest

from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    LARGE_FUTURE,
    LARGE_ONE_TIME,
    LARGE_VALUE,
    TRIMMED,
)
from tests.scenarios.judging import Logs

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

DEPTHS = (0.0, 0.02, 0.3, 0.5, 0.77, 0.98, 0.99999, 1.0)
# What a batch of ours or of MirrorMaker 2's takes at most, and what one wide read does.
BATCH_BYTES, WIDE_BYTES = 120_000, 1_100_000


@pytest.mark.parametrize("topic", [LARGE_FUTURE, LARGE_ONE_TIME])
def test_large_log_costs_its_budget_and_gets_a_proven_answer(corners: Corners, topic: str) -> None:
    """Fifty megabytes with one timestamp, or behind a record of the far future: by the clients'
    own counters no more is fetched than the budget of each position and what a partition's
    scans may take. Nothing is skipped, what may be read twice is stated, and what the budget
    does not prove is not committed."""
    translation = corners.settings.flow(PLAIN).translation
    logs = Logs(corners, PLAIN, topic)
    assert len(logs.source) * LARGE_VALUE >= 50_000_000
    positions = {TRIMMED + round(depth * (logs.end - TRIMMED)) for depth in DEPTHS}
    answers = logs.judged(positions, may_lack_proof=True)
    # The ends of the log are always found.
    assert not {TRIMMED, logs.end} & {*answers.unproven}, answers
    assert answers.exact > 0, answers
    cost = answers.translations
    fetches = translation.budget * len(positions)
    scans = translation.scan_bytes // BATCH_BYTES
    assert cost.source_fetches <= fetches + scans
    assert cost.target_fetches <= fetches + scans
    # Each side's scans may go over by the last read; other fetches bring one batch.
    assert cost.bytes_read <= 2 * (translation.scan_bytes + WIDE_BYTES + fetches * BATCH_BYTES)
