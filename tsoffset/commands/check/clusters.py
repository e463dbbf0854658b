"""What the clusters say of themselves, and what a flow's settings mean (pure)."""

import re
from collections import Counter
from collections.abc import Iterator

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import ClusterDescription
from tsoffset.terminal.output import counted

OLDEST_TESTED = (2, 8)
_CLOCKS_APART_MS = 5_000


def unreachable(flow: str, cluster: str, message: str) -> Finding:
    """A cluster that cannot be reached at all."""
    return Scope(flow, cluster).error("connection", *cause_and_step(message))


def connection(
    flow: str,
    settings: ClusterSettings,
    description: ClusterDescription,
    clock_ahead_ms: int | None = None,
) -> Iterator[Finding]:
    """How a cluster was reached: its addresses, its brokers, their versions, its clock."""
    at = Scope(flow, settings.alias)
    versions = Counter(one.version for one in description.brokers if one.version is not None)
    told = f"cluster id {description.cluster_id or 'unknown'}"
    told += f", {counted(len(description.brokers), 'broker')}"
    if versions:
        told += ", Kafka " + ", ".join(
            f"{one} ({number})" for one, number in sorted(versions.items())
        )
    if clock_ahead_ms is not None and abs(clock_ahead_ms) < _CLOCKS_APART_MS:
        told += ", clock in sync with this host"
    yield at.ok("connection", told)
    yield from _clock(at, clock_ahead_ms)
    for address in description.dead_addresses:
        yield at.warning(
            f"address {address}",
            "does not answer, but another bootstrap address does",
            f"remove it from {settings.alias}.bootstrap.servers or repair it",
        )
    yield from _brokers(at, description)


def _clock(at: Scope, ahead_ms: int | None) -> Iterator[Finding]:
    if ahead_ms is not None and abs(ahead_ms) >= _CLOCKS_APART_MS:
        way = "ahead of" if ahead_ms > 0 else "behind"
        yield at.warning(
            "clock",
            f"the controller's is {abs(ahead_ms) / 1000:.0f} s {way} this machine's: ages that "
            "are told (of the last cycle, of checkpoints) are wrong by as much",
            "synchronize both clocks by NTP",
        )


def same_cluster(
    flow: FlowSettings, source: ClusterDescription, target: ClusterDescription
) -> Iterator[Finding]:
    """Source and target that are one cluster: only names keep copies and originals apart."""
    if source.cluster_id is None or source.cluster_id != target.cluster_id:
        return
    at, here, there = Scope(flow.name), flow.source.alias, flow.target.alias
    what = f"{here} and {there} are the same cluster ({source.cluster_id})"
    if flow.policy.format_remote_topic(here, "orders") == "orders":
        yield at.error(
            "cluster ids",
            f"{what}, and the replication policy keeps topic names, so each topic would be a copy"
            " of itself",
            f"correct {here}.bootstrap.servers or {there}.bootstrap.servers",
        )
    else:
        yield at.warning(
            "cluster ids",
            f"{what}; only topic names distinguish copies from source topics",
            "correct bootstrap.servers of one of them, unless this is intended",
        )


def settings_of(flow: FlowSettings) -> Iterator[Finding]:
    """What the settings of a flow mean for its commits."""
    at = Scope(flow.name)
    if not flow.commits:
        yield at.warning(
            "sync.group.offsets.enabled",
            "is false: `sync` and `run` only plan this flow and commit nothing",
            "set it to true, or remove it",
        )
    if flow.translation.proof == "timestamps":
        yield at.warning(
            "translation.proof",
            "is timestamps: translations are not proven, and consumers may skip or re-read records",
            "set it to content, or remove it",
        )


def untold_youngest(description: ClusterDescription) -> bool:
    """Whether a broker cannot tell its logs' youngest records (KIP-734)."""
    versions = (broker.version for broker in description.brokers)
    return any(version is not None and _is_older(version, (3, 0)) for version in versions)


def _is_older(version: str, than: tuple[int, int]) -> bool:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return bool(numbers) and numbers < than


def _brokers(at: Scope, description: ClusterDescription) -> Iterator[Finding]:
    for broker in description.brokers:
        subject = f"broker {broker.node_id}"
        where = f"{broker.host}:{broker.port}"
        if broker.version is None:
            yield at.error(
                subject,
                f"does not answer at its advertised address {where}",
                "start it, or set its advertised.listeners to an address that this host can reach",
            )
            continue
        if broker.unspoken:
            yield at.error(
                subject,
                f"Kafka {broker.version} at {where} does not support the versions of these"
                f" requests that tsoffset uses: {', '.join(broker.unspoken)}",
                f"upgrade it to Kafka {'.'.join(map(str, OLDEST_TESTED))} or later",
            )
            continue
        if _is_older(broker.version, OLDEST_TESTED):
            yield at.warning(
                subject,
                f"Kafka {broker.version} at {where} is older than"
                f" {'.'.join(map(str, OLDEST_TESTED))}, the oldest version that tsoffset supports",
                "upgrade it, or check the results of the first cycles",
            )
