"""The consumer groups of the demo, and where each of them stands when the source is left."""

from dataclasses import dataclass

from tsoffset.demo.topics import ACCOUNTS, CLICKS, ORDERS, PAYMENTS, Topic

Stand = int | tuple[int, ...] | None
"""Which record of a log is the first that is not processed, counted from the beginning or (below
0) from the end, in all partitions or in each; None where all are."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group that reads one topic.

    `at` is where it stands, `stands` says so. An `early` group stops before the source deletes
    and compacts what it holds by then. `on_target` is where the group stands there before the
    sync, if it has read there; `member` says that its consumer is still there then.
    """

    name: str
    topic: Topic
    stands: str
    at: Stand
    early: bool = False
    metadata: str = ""
    on_target: Stand = None
    member: bool = False


GROUPS = (
    Group("billing", ORDERS, "caught up", None, metadata="invoice run 2041"),
    Group("shipping", ORDERS, "10 records behind", -10),
    Group("invoices", ORDERS, "1, 50, 500 and 2,500 behind", (-1, -50, -500, -2_500)),
    Group("analytics", ORDERS, "at less than half", -3_000),
    Group("archive", ORDERS, "at records that were deleted later", 150, early=True),
    Group("alerts", ORDERS, "has a consumer on the target", -200, on_target=1_000, member=True),
    Group("sessions", CLICKS, "caught up", None),
    Group("ranking", CLICKS, "among equal timestamps", (-123, -456, -789, -1_011)),
    Group("fraud", CLICKS, "far back, at equal timestamps", -3_333),
    Group("pricing", CLICKS, "is further on the target", -1_000, on_target=-100),
    Group("profiles", ACCOUNTS, "caught up", None),
    Group("search", ACCOUNTS, "at records that were compacted later", 310, early=True),
    Group("ledger", PAYMENTS, "caught up, behind a marker", None),
    Group("refunds", PAYMENTS, "before an aborted transaction", -325),
    Group("reporting", PAYMENTS, "at offset 0", 0),
)
