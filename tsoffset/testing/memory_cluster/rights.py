"""The rights in a cluster in memory, like an authorizer's."""

from dataclasses import dataclass, field

from tsoffset.model import Failed, FailureKind, Operation, Resource

_EVERY_NAME = "*"
_ALL = frozenset(Operation)
_KNOWN = {
    Resource.TOPIC: _ALL,
    Resource.GROUP: _ALL,
    Resource.CLUSTER: _ALL - {Operation.READ},
}


@dataclass(slots=True)
class MemoryRights:
    """Everything is allowed until it is restricted. READ includes DESCRIBE, as in Kafka."""

    restricted: dict[tuple[Resource, str], frozenset[Operation]] = field(default_factory=dict)

    def restrict(self, resource: Resource, name: str, *operations: Operation) -> None:
        """Allow only these operations. The name `*` stands for the cluster itself, or for all
        topics or groups that have no restriction of their own."""
        implied = {Operation.DESCRIBE} if Operation.READ in operations else set()
        self.restricted[resource, name] = frozenset({*operations, *implied})

    def on(self, resource: Resource, name: str = _EVERY_NAME) -> frozenset[Operation]:
        """The operations that brokers report as allowed: without DESCRIBE, none."""
        everywhere = self.restricted.get((resource, _EVERY_NAME), _KNOWN[resource])
        allowed = self.restricted.get((resource, name), everywhere)
        return allowed if Operation.DESCRIBE in allowed else frozenset()

    def refusal(
        self, resource: Resource, name: str, operation: Operation, what: str
    ) -> Failed | None:
        """Why it is refused; None if it is allowed."""
        if operation in self.on(resource, name):
            return None
        return Failed(
            FailureKind.AUTHORIZATION,
            f"{what}: not authorized for the {resource}; grant {operation.upper()} on it to this "
            "principal",
        )
