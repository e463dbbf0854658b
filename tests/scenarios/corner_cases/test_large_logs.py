"""Logs far larger than what one scan can read, whose timestamps tell nothing."""

import pytest

from tests.scenarios.corner_cases.answers import judged, logs_of
from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    LARGE_FUTURE,
    LARGE_ONE_TIME,
    LARGE_VALUE,
    TRIMMED,
)

pytestmark = pytest.mark.integration

DEPTHS = (0.0, 0.02, 0.3, 0.5, 0.77, 0.98, 0.99999, 1.0)
# What a batch of ours or of MirrorMaker 2's takes at most, and what one wide read does.
BATCH_BYTES, WIDE_BYTES = 120_000, 1_100_000


@pytest.mark.parametrize("topic", [LARGE_FUTURE, LARGE_ONE_TIME])
def test_large_log_costs_its_budget_and_gets_a_proven_answer(corners: Corners, topic: str) -> None:
    """Fifty megabytes with one timestamp, or behind a record of the far future: no more is
    read than the budget of each position and what a partition's scans may take, nothing is
    skipped, and what may be read twice is stated."""
    translation = corners.settings.flow(PLAIN).translation
    logs = logs_of(corners, PLAIN, topic)
    logs_bytes = 2 * len(logs.source) * LARGE_VALUE
    assert logs_bytes >= 100_000_000
    positions = {TRIMMED + round(depth * (logs.end - TRIMMED)) for depth in DEPTHS}
    answers = judged(corners, PLAIN, topic, positions, logs, may_lack_proof=True)
    assert logs.end not in answers.unproven
    assert answers.exact >= 1
    cost = answers.cost
    fetches = translation.budget * answers.positions
    scans = translation.scan_bytes // BATCH_BYTES
    assert cost.source_fetches <= fetches + scans
    assert cost.target_fetches <= fetches + scans
    # Each side's scans may go over by the last read; other fetches bring one batch.
    assert cost.bytes_read <= 2 * (translation.scan_bytes + WIDE_BYTES + fetches * BATCH_BYTES)
    assert cost.bytes_read < logs_bytes / 2
