"""An exactly-once mirror of transactions that ended either way, with an aborted one of its own."""

from functools import partial
from pathlib import Path

import javaproperties

from tests.producing import numbered
from tests.scenarios.corner_cases.corners import EXACTLY_ONCE, FLOWS, Corners
from tests.scenarios.corner_cases.holdings import PAID, TRIMMED, on_first_node
from tests.waiting import wait_until
from tsoffset.lab.embedded import MirrorMaker

# How many records each transaction on the source has, and whether it is committed.
TRANSACTIONS = ((40, True), (30, False), (60, True), (1, False), (1, True), (25, False), (80, True))
BOUNDARY_MS = 3_000


def abort_by_a_crash(corners: Corners, folder: Path) -> None:
    """Fill the source, and let MirrorMaker 2 copy it in transactions that last seconds until
    it is killed inside one: the next one aborts that, and copies its records again."""
    source, target = corners.sides(EXACTLY_ONCE)
    source.create_topic(PAID, replicas=on_first_node())
    source.produce(PAID, numbered(TRIMMED))
    first = write_transactions(corners, TRIMMED, name="before")
    source.delete_records(PAID, TRIMMED)
    remote = corners.remote(EXACTLY_ONCE, PAID)

    def ends() -> tuple[int, int]:
        """Where what is committed ends on the target, and where all ends."""
        (_, committed) = target.log_range(remote, isolation="read_committed")
        (_, everything) = target.log_range(remote)
        return committed, everything

    def is_open(committed: int) -> bool:
        return ends()[1] >= committed + 100

    mirror_maker = _with_long_transactions(corners, folder)
    try:
        mirror_maker.start()
        mirror_maker.wait_until_mirrored(
            source.bootstrap, target.bootstrap, {PAID: remote}, source_isolation="read_committed"
        )
        while True:
            first = write_transactions(corners, first, name=f"open-{first}")
            wait_until(partial(is_open, ends()[0]), "a transaction is open")
            mirror_maker.kill()
            # It may have committed between the look and the kill.
            committed, everything = ends()
            if committed + 50 <= everything:
                break
            mirror_maker.start()
    finally:
        mirror_maker.kill()
    write_transactions(corners, first, name="after")


def write_transactions(corners: Corners, first: int, *, name: str) -> int:
    """Write one of each, numbered from `first`; the number that comes next."""
    source, _ = corners.sides(EXACTLY_ONCE)
    for number, (count, commit) in enumerate(TRANSACTIONS):
        transaction = source.begin_transaction(f"{PAID}-{name}-{number}")
        transaction.add(PAID, numbered(count, first=first), batch=10)
        if commit:
            transaction.commit()
        else:
            transaction.abort()
        first += count
    return first


def _with_long_transactions(corners: Corners, folder: Path) -> MirrorMaker:
    """The MirrorMaker 2 of that flow alone, which commits every few seconds only."""
    wanted = dict(javaproperties.loads(corners.mirror_maker.properties_path.read_text()))
    wanted |= {f"{flow}.enabled": str(flow == EXACTLY_ONCE).lower() for flow in FLOWS}
    wanted |= {
        f"{EXACTLY_ONCE}.transaction.boundary": "interval",
        f"{EXACTLY_ONCE}.transaction.boundary.interval.ms": str(BOUNDARY_MS),
    }
    path = folder / "mm2.properties"
    path.write_text(javaproperties.dumps(wanted, timestamp=None))
    return MirrorMaker(path, folder, name="exactly-once")
