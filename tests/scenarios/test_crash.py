"""MirrorMaker 2 killed in the middle of its work, and killed again while it repeats itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pytest

from tests.producing import Contents, numbered
from tests.scenarios.flows import Flows, Rows, prepare_mirror
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

TOPIC = "crashed"
REMOTE = f"P.{TOPIC}"
FLOW = "P->Q"
RECORDS, TRIMMED = 8_000, 100
# Before the first kill, and in the repeat before the second.
FIRST_COPIED, REPEATED = 3_000, 1_000
STAGES = ("killed", "repeating", "done")
POSITIONS = (TRIMMED, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, RECORDS - 1, RECORDS)


@dataclass(frozen=True, slots=True)
class Crashed:
    """The rows of a sync in each stage, and what they are judged by when all is copied.

    `copied` is how many records the first run had copied when it was killed.
    """

    rows: Mapping[str, Rows]
    copied: int
    logs: Logs


@pytest.fixture(scope="module")
def crashed(
    source: Contents, target: Contents, tmp_path_factory: pytest.TempPathFactory
) -> Crashed:
    """A mirror that notes what it has copied once an hour, so that it begins anew whenever it
    is killed; synced after the first kill, after one inside the repeat, and at the end."""
    clusters = {"P": source, "Q": target}
    overrides = {
        "Q.offset.flush.interval.ms": "3600000",
        # One batch at a time, so that there is a middle to be killed in.
        "P->Q.source.consumer.max.partition.fetch.bytes": "1",
    }
    folder = tmp_path_factory.mktemp("crash")
    mirror = prepare_mirror(folder, clusters, {FLOW: [TOPIC]}, overrides)
    flows = Flows(clusters, mirror)
    source.create_topic(TOPIC)
    source.produce(TOPIC, numbered(RECORDS), batch=5)
    source.delete_records(TOPIC, TRIMMED)
    rows = {}

    def sync(stage: str) -> None:
        for position in POSITIONS:
            source.commit_offsets(f"{stage}-{position}", {(TOPIC, 0): position})
        rows[stage] = flows.sync(FLOW, f"{stage}-.*")

    def copied(at_least: int) -> bool:
        return target.log_range(REMOTE)[1] >= at_least

    try:
        at_least = FIRST_COPIED
        for stage in STAGES[:2]:
            mirror.start()
            mirror.wait_for_topic(target.bootstrap, REMOTE)
            wait_until(partial(copied, at_least), f"{at_least} records are copied")
            mirror.kill()
            at_least = target.log_range(REMOTE)[1] + REPEATED
            sync(stage)
        values = [record.value for record in target.read(REMOTE)]
        mirror.start()
        flows.wait_until_mirrored(FLOW, TOPIC)
    finally:
        mirror.stop()
    # The second run repeated what the first had copied, and came less far.
    again = values.index(values[0], 1)
    assert FIRST_COPIED <= again < len(values) < 2 * again
    assert values[again:] == values[: len(values) - again]
    sync("done")
    logs = Logs(flows, FLOW, TOPIC)
    assert not logs.not_mirrored
    return Crashed(rows, again, logs)


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_skipped_and_no_more_is_reread_than_stated(crashed: Crashed, stage: str) -> None:
    """Whenever it was synced, a group's consumer gets every record that the group had not
    processed, and of the others as many as the row says at most; what it gets a second time
    only because the mirror brought it twice is not counted."""
    rows = [row for row in crashed.rows[stage].all if row.outcome is OutcomeKind.COMMITTED]
    assert rows
    for row in rows:
        crashed.logs.resumed(row)


@pytest.mark.parametrize("stage", STAGES)
def test_what_was_copied_is_found_exactly(crashed: Crashed, stage: str) -> None:
    """A crash, a repeat that has not ended, and one that has: groups at records that the
    target has got resume exactly at the first copy, or at the log's end if they have read all.
    Once the mirror is complete, any copy has all that follows behind it, and a later one spares
    the consumer what was repeated."""
    logs = crashed.logs
    lies_at = {logs.written[value]: copies for value, copies in logs.copies.items()}
    there = RECORDS if stage == "done" else TRIMMED + crashed.copied - 1
    for position in POSITIONS:
        if position > there:
            continue
        row = crashed.rows[stage].of(f"{stage}-{position}", TOPIC)
        assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
        copies = lies_at.get(position, [logs.target_range[1]])
        assert row.target_offset in (copies if stage == "done" else copies[:1]), row
