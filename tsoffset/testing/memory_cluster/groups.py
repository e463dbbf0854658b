"""Consumer groups of a cluster in memory, and when a commit for them is accepted."""

from dataclasses import dataclass, field

from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupListing,
    GroupOffsets,
    GroupType,
    TopicPartition,
)

# `Failed.retry_seconds` of an answer that a retry may change, as with real brokers.
RETRY_SECONDS = 2.5


@dataclass(slots=True)
class MemoryGroup:
    """One group: its type, its state as ListGroups names it, its committed offsets.

    Offsets in `pending` were committed in a transaction that is still open. The offsets of a share
    group are share-partition start offsets, and `acknowledged` is how many records the group has
    acknowledged after each of them.
    """

    group: str
    type: GroupType = GroupType.CLASSIC
    state: str = "Empty"
    protocol_type: str = "consumer"
    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    pending: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    acknowledged: dict[TopicPartition, int] = field(default_factory=dict)

    def listing(self, coordinator: int | None) -> GroupListing:
        return GroupListing(self.group, self.type, self.state, self.protocol_type, coordinator)

    def committed(self, alias: str, *, require_stable: bool) -> GroupOffsets:
        """Its offsets; with `require_stable` a `Failed(COORDINATOR)` for each pending one."""
        answer: dict[TopicPartition, CommittedOffset | Failed] = {
            partition: one for partition, one in self.offsets.items() if one.offset >= 0
        }
        if require_stable:
            for partition in self.pending:
                answer[partition] = Failed(
                    FailureKind.COORDINATOR,
                    f"read committed offset, group {self.group}, {partition}, cluster {alias}: "
                    "a transaction with this offset is open; try again once it has ended",
                    retry_seconds=RETRY_SECONDS,
                )
        return answer

    def refusal(self, alias: str, *, as_share_group: bool) -> Failed | None:
        """Why a commit from outside the group is refused now; None if it is accepted.

        The rules are the group coordinator's for generation -1 and an empty member id.
        """
        what = f"commit offsets, group {self.group}, cluster {alias}"
        if (self.type is GroupType.SHARE) != as_share_group:
            return Failed(
                FailureKind.COORDINATOR,
                f"{what}: this is a group of type {self.type}; exclude it from the flow's groups",
            )
        if self.state == "Dead":
            return Failed(FailureKind.COORDINATOR, f"{what}: the group is being removed; try again")
        if self.state != "Empty":
            return Failed(
                FailureKind.COORDINATOR,
                f"{what}: the group has members (state {self.state}); stop its consumers first",
                group_active=True,
            )
        return None

    def end_transaction(self) -> None:
        """Commit the pending offsets."""
        self.offsets.update(self.pending)
        self.pending.clear()


def not_sent(group: str, alias: str) -> Failed:
    """The answer to a commit that `may_send` refused."""
    return Failed(
        FailureKind.TIMEOUT,
        f"commit offsets, group {group}, cluster {alias}: not sent; read its offsets and try again",
        retry_seconds=RETRY_SECONDS,
    )


def metadata_length(metadata: str) -> int:
    """Its length as the broker compares it with `offset.metadata.max.bytes`: in UTF-16 units, not
    bytes (OffsetMetadataManager compares a Java string's length)."""
    return len(metadata.encode("utf-16-le")) // 2
