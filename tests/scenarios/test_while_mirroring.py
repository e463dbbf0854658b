"""What comes while MirrorMaker 2 runs: more records, transactions that end, syncs in between."""

from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.producing import numbered
from tests.scenarios.estate import Estate
from tests.scenarios.flows import Rows
from tests.scenarios.holdings import RECORDS, STREAMING, TRIMMED, UNDECIDED
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision
from tsoffset.testing.embedded import MirrorMaker

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def running(estate: Estate, mirror_maker: MirrorMaker) -> Iterator[MirrorMaker]:
    """MirrorMaker 2, started again."""
    with mirror_maker:
        yield mirror_maker


def test_syncs_in_the_middle_of_the_stream_skip_nothing(
    estate: Estate, running: MirrorMaker
) -> None:
    """While records are written and mirrored without a pause, groups that are caught up, or
    nearly, are synced again and again: whatever the clusters answered one after the other, a
    group's consumer gets all that the group had not processed."""
    source = estate.contents["A"]
    done = Event()
    written: list[int] = []

    def stream() -> None:
        first = RECORDS
        while not done.is_set():
            written.extend(estate.produce("A", STREAMING, numbered(20, first=first), batch=20))
            first += 20

    writer = Thread(target=stream)
    cycles: list[Rows] = []
    writer.start()
    try:
        for number in range(8):
            wait_until(lambda: bool(written), "records are written")
            (_, end) = source.log_range(STREAMING)
            for behind in (0, 1, 30):
                group = f"streaming-{number}-{behind}"
                source.commit_offsets(group, {(STREAMING, 0): end - behind})
            cycles.append(estate.sync("A->B", f"streaming-{number}-.*"))
    finally:
        done.set()
        writer.join()
    estate.wait_until_mirrored("A->B", STREAMING)

    logs = Logs(estate, "A->B", STREAMING)
    assert not logs.not_mirrored
    rows = [row for cycle in cycles for row in cycle.all if row.outcome is OutcomeKind.COMMITTED]
    assert rows
    for row in rows:
        logs.resumed(row)


@pytest.mark.parametrize(
    ("topic", "commit"), [*zip(UNDECIDED, (True, False), strict=True)], ids=["committed", "aborted"]
)
def test_open_transaction_is_not_taken_for_the_end(
    estate: Estate, running: MirrorMaker, topic: str, commit: bool
) -> None:
    """A mirror that reads committed records waits before an open transaction. Groups that
    stand in it or behind it wait at the frontier, and resume exactly when it has ended; none
    of them skips what the transaction then turns out to hold."""
    source = estate.contents["X"]
    transaction = source.begin_transaction(topic)
    records = numbered(30, first=RECORDS)
    offsets = transaction.add(topic, records)
    estate.remember("X", topic, records, offsets)
    estate.produce("X", topic, numbered(10, first=RECORDS + 30))
    assert source.log_range(topic, isolation="read_committed") == (TRIMMED, RECORDS)
    assert source.log_range(topic) == (TRIMMED, RECORDS + 40)
    positions = (RECORDS - 1, RECORDS, RECORDS + 15, RECORDS + 30, RECORDS + 40)
    # Those of the first kind are synced once, while the transaction is open.
    for position in positions:
        for kind in ("once", "again"):
            source.commit_offsets(f"{topic}-{kind}-{position}", {(topic, 0): position})
    while_open = estate.sync("X->Y", f"{topic}-.*")
    if commit:
        transaction.commit()
    else:
        transaction.abort()
    estate.wait_until_mirrored("X->Y", topic)
    after = estate.sync("X->Y", f"{topic}-again-.*")

    logs = Logs(estate, "X->Y", topic)
    assert not logs.not_mirrored
    for position in positions:
        row = while_open.of(f"{topic}-once-{position}", topic)
        frontier = position >= RECORDS
        assert row.outcome is OutcomeKind.COMMITTED
        assert row.precision is (Precision.FRONTIER if frontier else Precision.EXACT), row
        assert row.target_offset == min(position, RECORDS) - TRIMMED
        logs.resumed(row)

        row = after.of(f"{topic}-again-{position}", topic)
        assert row.precision is Precision.EXACT, row
        assert logs.resumed(row).reread == (), row
