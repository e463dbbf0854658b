"""The consumer groups of the demo, and where each of them stands when the source is left."""

from collections.abc import Sequence
from dataclasses import dataclass

from tsoffset.demo.topics import (
    ACCOUNTS,
    CLICKS,
    ORDERS,
    PARTITIONS,
    PAYMENTS,
    Entry,
    Topic,
)


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a partition has been processed: all but `left` records, or `done` ones."""

    left: int | None = None
    done: int | None = None

    def stop(self, log: Sequence[Entry]) -> int | None:
        """The offset of the first record that is not processed; None if all are."""
        at = self.done if self.left is None else len(log) - self.left
        assert at is not None
        return log[at].offset if at < len(log) else None


@dataclass(frozen=True, slots=True)
class Group:
    """A group that reads one topic.

    `depths` are those of the partitions. An `early` group stops before the source deletes and
    compacts what it holds by then. `on_target` is how far the group has read there before the
    sync; `member` says that its consumer is still there then.
    """

    name: str
    topic: Topic
    stands: str
    depths: tuple[Depth, ...]
    early: bool = False
    metadata: str = ""
    on_target: tuple[Depth, ...] | None = None
    member: bool = False


def _left(*records: int) -> tuple[Depth, ...]:
    """All partitions alike, or one number for each."""
    each = records * PARTITIONS if len(records) == 1 else records
    return tuple(Depth(left=number) for number in each)


def _done(records: int) -> tuple[Depth, ...]:
    return (Depth(done=records),) * PARTITIONS


GROUPS = (
    Group("billing", ORDERS, "caught up", _left(0), metadata="invoice run 2041"),
    Group("shipping", ORDERS, "10 records behind", _left(10)),
    Group("invoices", ORDERS, "1, 50, 500 and 2,500 behind", _left(1, 50, 500, 2_500)),
    Group("analytics", ORDERS, "at less than half", _left(3_000)),
    Group("archive", ORDERS, "at records deleted since", _done(150), early=True),
    Group(
        "alerts",
        ORDERS,
        "has a consumer on the target",
        _left(200),
        on_target=_done(1_000),
        member=True,
    ),
    Group("sessions", CLICKS, "caught up", _left(0)),
    Group("ranking", CLICKS, "among equal timestamps", _left(123, 456, 789, 1_011)),
    Group("fraud", CLICKS, "far back, at equal timestamps", _left(3_333)),
    Group("pricing", CLICKS, "is further on the target", _left(1_000), on_target=_left(100)),
    Group("profiles", ACCOUNTS, "caught up", _left(0)),
    Group("search", ACCOUNTS, "at records compacted since", _done(310), early=True),
    Group("ledger", PAYMENTS, "caught up, behind a marker", _left(0)),
    Group("refunds", PAYMENTS, "before an aborted transaction", _left(325)),
    Group("reporting", PAYMENTS, "at offset 0", _done(0)),
)
