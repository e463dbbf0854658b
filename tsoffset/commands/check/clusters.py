"""Findings on connections, brokers, a flow's settings, and this machine."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.errors import ClusterUnreachable, EmbeddedError
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.java import java_version
from tsoffset.model import ClusterDescription
from tsoffset.terminal.output import plural

_OLDEST, _OLDEST_NAME = (2, 8), "2.8"


def connection(
    flow: str, settings: ClusterSettings, description: ClusterDescription
) -> Iterator[Finding]:
    at = Scope(flow, settings.alias)
    versions = Counter(one.version for one in description.brokers if one.version is not None)
    found = f"cluster id {description.cluster_id or 'unknown'}"
    found += f", {plural(len(description.brokers), 'broker')}"
    if versions:
        found += ", Kafka " + ", ".join(
            f"{one} ({number})" for one, number in sorted(versions.items())
        )
    yield at.ok("connection", found)
    for address in description.dead_addresses:
        yield at.warning(
            f"address {address}",
            "does not answer, or belongs to another cluster; another bootstrap address works",
            f"remove it from {settings.alias}.bootstrap.servers or repair it",
        )
    yield from _brokers(at, description)


def same_cluster(
    flow: FlowSettings, source: ClusterDescription, target: ClusterDescription
) -> Iterator[Finding]:
    if not is_same(source, target):
        return
    at, source_alias, target_alias = Scope(flow.name), flow.source.alias, flow.target.alias
    what = f"{source_alias} and {target_alias} are the same cluster ({source.cluster_id})"
    if flow.policy.format_remote_topic(source_alias, "orders") == "orders":
        yield at.error(
            "cluster ids",
            f"{what}, and the replication policy keeps topic names, so each topic would be a copy"
            " of itself",
            f"correct {source_alias}.bootstrap.servers or {target_alias}.bootstrap.servers",
        )
    else:
        yield at.warning(
            "cluster ids",
            f"{what}; only topic names distinguish copies from source topics",
            "correct bootstrap.servers of one of them, unless this is intended",
        )


def settings_of(flow: FlowSettings) -> Iterator[Finding]:
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


def is_same(
    one: ClusterDescription | ClusterUnreachable, other: ClusterDescription | ClusterUnreachable
) -> bool:
    """Whether both are known to be one cluster."""
    if isinstance(one, ClusterUnreachable) or isinstance(other, ClusterUnreachable):
        return False
    return one.cluster_id is not None and one.cluster_id == other.cluster_id


def lacks_max_timestamp(description: ClusterDescription | ClusterUnreachable) -> bool:
    """Whether a broker cannot look up a log's largest timestamp (KIP-734)."""
    brokers = () if isinstance(description, ClusterUnreachable) else description.brokers
    return any(one.version is not None and _is_older(one.version, (3, 0)) for one in brokers)


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
        elif broker.unspoken:
            yield at.error(
                subject,
                f"Kafka {broker.version} at {where} does not support the versions of these"
                f" requests that tsoffset uses: {', '.join(broker.unspoken)}",
                f"upgrade it to Kafka {_OLDEST_NAME} or later",
            )
        elif _is_older(broker.version, _OLDEST):
            yield at.warning(
                subject,
                f"Kafka {broker.version} at {where} is older than {_OLDEST_NAME}, the oldest"
                " version that tsoffset supports",
                "upgrade it, or check the results of the first cycles",
            )


# Each of these may provide tsoffset to executors.
_PROVIDES_PACKAGES = (
    "spark.archives",
    "spark.kubernetes.container.image",
    "spark.kubernetes.executor.container.image",
    "spark.pyspark.python",
    "spark.yarn.dist.archives",
)
_ARCHIVES = ("spark.archives", "spark.yarn.dist.archives")
_SCHEME = re.compile(r"(?:file|local):(?://)?(?=/)")


def machine(spark: Mapping[str, str]) -> Iterator[Finding]:
    """Report Java and Spark on this machine, and whether remote executors can import tsoffset.
    Starts nothing. `spark` are the user's `spark.*` keys."""
    at = Scope(None)
    versions = []
    try:
        versions.append(f"PySpark {version('pyspark')}")
    except PackageNotFoundError:
        yield at.error("PySpark", "is not installed", "pip install tsoffset")
    try:
        versions.append(f"Java {java_version()}")
    except EmbeddedError as error:
        cause, step = cause_and_step(str(error))
        yield at.error("Java", f"{cause}: sync, plan and run start Spark, which needs Java", step)
    master = spark.get("spark.master", "local[*]")
    if len(versions) == 2:
        yield at.ok("Spark", f"{' on '.join(versions)}, spark.master {master}")
    if not master.startswith("local") and not any(map(spark.get, _PROVIDES_PACKAGES)):
        yield at.warning(
            "executors",
            f"no setting tells the executors of {master} where to import tsoffset from",
            "set spark.archives to a packed environment (examples/pack-environment.sh), or"
            " spark.kubernetes.container.image, unless tsoffset is installed on each executor",
        )
    for key in _ARCHIVES:
        for archive in filter(None, map(str.strip, spark.get(key, "").split(","))):
            path = _SCHEME.sub("", archive.partition("#")[0])
            if "://" not in path and not Path(path).exists():
                yield at.error(
                    key, f"{path} does not exist", "create it with examples/pack-environment.sh"
                )
