"""Resolved settings: what a configuration file comes to for each flow.

`tsoffset.config` makes these from MirrorMaker 2 properties or Connect JSON; the rest of
the program sees nothing of files, aliases or inheritance. Units are in the names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tsoffset.model import Isolation
from tsoffset.policy import GroupFilter, ReplicationPolicy, TopicFilter


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How to reach one cluster.

    `bootstrap_servers` are `host:port`; `client` holds further client settings of Kafka
    (`client.id`, `request.timeout.ms`, ...) as text, resolved. `admin_timeout_ms` is the
    total deadline of one call with its retries; `poll_timeout_ms` how long one fetch may
    wait for a log that has more than it answered.
    """

    alias: str
    bootstrap_servers: tuple[str, ...]
    client: Mapping[str, str] = field(default_factory=dict)
    admin_timeout_ms: int = 60_000
    poll_timeout_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """How translations are proven (docs/design.md section 1).

    `match` names what must be equal for two records to be images: a subset of timestamp,
    key, value. `budget` bounds the fetches per position on each side; `scan_bytes` the
    bytes that a partition's scans may read on each side. `floor` is `none` or `log_start`.
    """

    proof: str = "content"
    match: frozenset[str] = frozenset({"timestamp", "key", "value"})
    budget: int = 8
    scan_bytes: int = 8_000_000
    floor: str = "none"


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """One direction, `A->B`, with all that a cycle needs.

    `sync_enabled` is None where `sync.group.offsets.enabled` is absent (we commit);
    `tasks_max` is None where `tasks.max` is absent (chosen from the work).
    `isolation` is what the replicator reads the source with.
    """

    source: ClusterSettings
    target: ClusterSettings
    policy: ReplicationPolicy
    group_filter: GroupFilter
    topic_filter: TopicFilter
    enabled: bool = True
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    refresh_groups_enabled: bool = True
    refresh_groups_interval_seconds: int = 600
    sync_enabled: bool | None = None
    sync_interval_seconds: int = 60
    tasks_max: int | None = None
    translation: TranslationSettings = field(default_factory=TranslationSettings)

    @property
    def name(self) -> str:
        """`A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def commits(self) -> bool:
        """False where the user turned syncing off: the flow is planned, never committed."""
        return self.sync_enabled is not False
