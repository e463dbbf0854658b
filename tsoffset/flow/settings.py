"""Resolved settings: the values that a configuration file gives each flow.

`tsoffset.config` makes these from MirrorMaker 2 properties or Connect JSON; the rest of the program
knows nothing of files, aliases or inheritance. Units are in the names. The last functions find the
topics that two flows would mirror in a loop.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tsoffset.errors import NoFlowEnabled, UsageError
from tsoffset.flow.policy import GroupFilter, ReplicationPolicy, TopicFilter, target_topic
from tsoffset.flow.security import Security
from tsoffset.model import Isolation
from tsoffset.records import ALL, OffsetHeader

# The value of `translation.expect`.
SAME_OFFSETS = "same-offsets"

LOOP_REMEDY = (
    "leave each topic to one direction (topics, topics.exclude), or use a replication policy that "
    "renames"
)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How to reach one cluster.

    `bootstrap_servers` are `host:port`. `client` has further client settings of Kafka (`client.id`,
    `request.timeout.ms`, ...) as resolved text, except those in `security`. `admin_timeout_ms` is
    the total deadline of one call with its retries, and `poll_timeout_ms` how long one fetch may
    wait for the rest of a log. `offset_header` is the header in which this cluster's records have
    the offsets of their originals. `fetch_max_bytes_per_second` limits the bytes of fetches (None:
    no limit), and `fetch_max_in_flight` the fetches in flight at each broker (None: the default of
    each client). Both hold for one client, or for all clients of `shared_by`.
    """

    alias: str
    bootstrap_servers: tuple[str, ...] = field(repr=False)
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    security: Security = field(default_factory=Security, repr=False)
    admin_timeout_ms: int = 60_000
    poll_timeout_ms: int = 1_000
    offset_header: OffsetHeader | None = None
    fetch_max_bytes_per_second: int | None = None
    fetch_max_in_flight: int | None = None

    def shared_by(self, clients: int) -> "ClusterSettings":
        """The same for one of several clients that read at the same time: each has its part of the
        limits, and at least one byte and one fetch."""
        return replace(
            self,
            fetch_max_bytes_per_second=_part(self.fetch_max_bytes_per_second, clients),
            fetch_max_in_flight=_part(self.fetch_max_in_flight, clients),
        )


def _part(limit: int | None, clients: int) -> int | None:
    return None if limit is None else max(1, limit // max(1, clients))


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """How translations are proven (docs/design.md section 1).

    `match` names what must be equal in a record and its copy: a subset of timestamp, key, value.
    `budget` bounds the fetches per source offset on each side, `scan_bytes` the bytes of a
    partition's scans on each side. `floor` is `none` or `log_start`. `offset_header` names a header
    in which the replicator kept the source offset, and `expect` is `SAME_OFFSETS` if the mirror is
    said to keep offsets; both are None if absent.
    """

    proof: str = "content"
    match: frozenset[str] = ALL
    budget: int = 8
    scan_bytes: int = 8_000_000
    floor: str = "none"
    offset_header: OffsetHeader | None = None
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """One direction, `A->B`, with everything that a cycle needs.

    `sync_enabled` is None if `sync.group.offsets.enabled` is absent (tsoffset commits); `tasks_max`
    is None if `tasks.max` is absent (the work decides). `isolation` is what the replicator reads
    the source with. `cycle_limit_seconds` is None if the limit follows from the interval
    (`longest_cycle_seconds`). With `leader_election` one of several instances runs the flow.
    `lists` are `groups`, `topics` and their excludes as configured.
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
    cycle_limit_seconds: int | None = None
    leader_election: bool = False
    tasks_max: int | None = None
    translation: TranslationSettings = field(default_factory=TranslationSettings)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def election_group(self) -> str:
        """The group on the target in which instances elect the one that runs the flow."""
        return f"tsoffset-{self.name}"

    @property
    def longest_cycle_seconds(self) -> int:
        """The time limit of a cycle: by default ten intervals, and at least five minutes, because
        one silent broker may delay a cycle that long."""
        if self.cycle_limit_seconds is not None:
            return self.cycle_limit_seconds
        return max(10 * self.sync_interval_seconds, 300)

    @property
    def commits(self) -> bool:
        """False if syncing is turned off: the flow is planned, never committed."""
        return self.sync_enabled is not False

    def reads_source_with(self, *, is_remote_topic: bool, failback: bool) -> Isolation:
        """The isolation level with which a source partition is read."""
        if self.omits_aborted(is_remote_topic=is_remote_topic, failback=failback):
            return Isolation.READ_UNCOMMITTED
        return self.source_isolation(failback=failback)

    def source_isolation(self, *, failback: bool) -> Isolation:
        """The isolation level whose records count as read by a group. In failback, the source is
        the replica, and a group may have passed aborted copies there without reading them."""
        return Isolation.READ_COMMITTED if failback else self.isolation

    def omits_aborted(self, *, is_remote_topic: bool, failback: bool) -> bool:
        """Whether aborted records of a source partition are omitted, but those of open transactions
        read: names do not tell whether it is the replica. See `tsoffset.cycle.two_readings`."""
        by_content = self.translation.proof == "content" and self.translation.expect is None
        return by_content and not (is_remote_topic or failback)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where and how `run` serves metrics, API and status page.

    `listeners` are `http://host:port` or `https://host:port`; empty serves nothing. `hosts` are the
    names under which they answer, by default this machine's. `key_store` is a PEM file with a
    private key and its certificates, for https. Requests with `token` may change something (None:
    no request may), requests with `read_token` may read (None: all may). `remote_urls` are other
    instances that the page shows, too.
    """

    listeners: tuple[str, ...] = ("http://127.0.0.1:8083",)
    hosts: tuple[str, ...] = ()
    key_store: str | None = None
    key_password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    read_token: str | None = field(default=None, repr=False)
    remote_urls: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """What is kept of past cycles: `directory` is a path or a URI, None if nothing is kept.

    Every `full_every`-th cycle is kept whole, and only changes of the others, for `retention_days`.
    """

    directory: str | None = field(default=None, repr=False)
    full_every: int = 60
    retention_days: int = 365


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """How many groups and source topics of a flow have their own metrics; the others are only in
    sums."""

    groups_max: int = 1_000
    topics_max: int = 1_000


@dataclass(frozen=True, slots=True)
class Settings:
    """All values of a configuration.

    `flows` are those that the file names (or implies), in the order of `clusters`, including
    disabled ones. `spark` holds every `spark.*` key, `spark.master` included. `state_dir` is None
    if the file does not set it. `warnings` are sentences that name file, line and key, never a
    value.
    """

    flows: tuple[FlowSettings, ...]
    clusters: tuple[str, ...]
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    state_dir: str | None = field(default=None, repr=False)
    server: ServerSettings = field(default_factory=ServerSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    warnings: tuple[str, ...] = ()

    def flow(self, name: str) -> FlowSettings:
        """The flow of that name, enabled or not. Raises UsageError for an unknown one."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        cut = "; quote the flow as 'A->B', since a shell takes > for a redirection"
        hint = cut if name.endswith("-") else ""
        raise UsageError(f"there is no flow {name}; {self._flows_in_words()}{hint}")

    def select(self, names: Sequence[str] = ()) -> tuple[FlowSettings, ...]:
        """The named flows, or all enabled ones if none is named.

        Raises UsageError if none is left, or one is unknown or not enabled: naming a flow does not
        enable it.
        """
        if not names:
            enabled = tuple(flow for flow in self.flows if flow.enabled)
            if enabled:
                return enabled
            raise NoFlowEnabled(f"no flow is enabled; {self._flows_in_words()}")
        chosen = tuple(self.flow(name) for name in dict.fromkeys(names))
        for flow in chosen:
            if not flow.enabled:
                raise UsageError(
                    f"flow {flow.name} is not enabled; set {flow.name}.enabled = true"
                    " (`enabled` in a Connect configuration)"
                )
        return chosen

    def competing_flows_of(self, flow: FlowSettings) -> tuple[FlowSettings, ...]:
        """The other flows that commit on the same target cluster.

        One cluster may have two aliases: a common bootstrap address shows it.
        """
        addresses = set(flow.target.bootstrap_servers)
        return tuple(
            other
            for other in self.flows
            if other.name != flow.name
            and other.enabled
            and other.commits
            and (
                other.target.alias == flow.target.alias
                or addresses.intersection(other.target.bootstrap_servers)
            )
        )

    def _flows_in_words(self) -> str:
        if not self.flows:
            example = "->".join(self.clusters[:2]) if len(self.clusters) > 1 else "A->B"
            return f"the configuration names none; add for example {example}.enabled = true"
        states = ", ".join(
            flow.name if flow.enabled else f"{flow.name} (not enabled)" for flow in self.flows
        )
        remedy = (
            ""
            if any(flow.enabled for flow in self.flows)
            else f"; set for example {self.flows[0].name}.enabled = true"
            " (`enabled` in a Connect configuration)"
        )
        return f"the configuration has {states}{remedy}"


def reverse_of(flow: FlowSettings, flows: Iterable[FlowSettings]) -> FlowSettings | None:
    """The enabled flow of `flows` in the other direction."""
    for other in flows:
        there_and_back = (other.target.alias, other.source.alias)
        if other.enabled and there_and_back == (flow.source.alias, flow.target.alias):
            return other
    return None


def looped_topics(
    flow: FlowSettings, reverse: FlowSettings | None, topics: Iterable[str]
) -> tuple[str, ...]:
    """The source's topics that the flow and its `reverse` both select without renaming, sorted.

    A replicator of both flows copies each of their records for ever: IdentityReplicationPolicy
    knows no source of a topic, so no name shows where a record came from.
    """
    if reverse is None:
        return ()
    return tuple(
        topic for topic in sorted(topics) if _keeps(flow, topic) and _keeps(reverse, topic)
    )


def _keeps(flow: FlowSettings, topic: str) -> bool:
    if not flow.topic_filter.should_replicate_topic(topic):
        return False
    renaming = target_topic(flow.policy, flow.source.alias, flow.target.alias, topic)
    return renaming is not None and renaming.topic == topic and not renaming.failback
