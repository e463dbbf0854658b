"""The consumer groups of the demo, and their offsets when the source is left."""

from dataclasses import dataclass

from tsoffset.lab.demo.topics import ACCOUNTS, CLICKS, ORDERS, PAYMENTS, DemoTopic

Stand = int | tuple[int, ...] | None
"""The first record of a log that is not processed, counted from the beginning or (below 0) from the
end, in all partitions or in each; None if all are processed."""


@dataclass(frozen=True, slots=True)
class DemoGroup:
    """A group that reads one topic.

    `at` is its offset, and `stands` describes it. An `early` group stops before the source deletes
    and compacts its records. `on_target` is its offset on the target before the sync, if it has
    read there; `member` says that its consumer is still there then.
    """

    name: str
    topic: DemoTopic
    stands: str
    at: Stand
    early: bool = False
    metadata: str = ""
    on_target: Stand = None
    member: bool = False


GROUPS = (
    DemoGroup("billing", ORDERS, "caught up", None, metadata="invoice run 2041"),
    DemoGroup("shipping", ORDERS, "10 records behind", -10),
    DemoGroup("invoices", ORDERS, "1, 50, 500 and 2,500 records behind", (-1, -50, -500, -2_500)),
    DemoGroup("analytics", ORDERS, "3,000 records behind", -3_000),
    DemoGroup("archive", ORDERS, "at records that were deleted later", 150, early=True),
    DemoGroup("alerts", ORDERS, "has a consumer on the target", -200, on_target=1_000, member=True),
    DemoGroup("sessions", CLICKS, "caught up", None),
    DemoGroup("ranking", CLICKS, "among equal timestamps", (-123, -456, -789, -1_011)),
    DemoGroup("fraud", CLICKS, "far behind, at equal timestamps", -3_333),
    DemoGroup("pricing", CLICKS, "is ahead on the target", -1_000, on_target=-100),
    DemoGroup("profiles", ACCOUNTS, "caught up", None),
    DemoGroup("search", ACCOUNTS, "at records that were compacted later", 310, early=True),
    DemoGroup("ledger", PAYMENTS, "caught up, after a marker", None),
    DemoGroup("refunds", PAYMENTS, "before an aborted transaction", -325),
    DemoGroup("reporting", PAYMENTS, "at offset 0", 0),
)
