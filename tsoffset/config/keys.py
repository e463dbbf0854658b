"""What a key is, and the keys of clusters and of the file as a whole.

`tsoffset.config.flow_keys` has those of a flow, `tsoffset.config.accepted` what belongs to
MirrorMaker 2 and Connect alone. The table in docs/configuration.md is made of all three.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from tsoffset.config import values

T = TypeVar("T")


class Use(StrEnum):
    """What tsoffset does with a key."""

    USED = "used"
    LATER = "no effect yet"


class Level(StrEnum):
    """What a key is a setting of, and with that where it may stand.

    A flow's: top level or `A->B.`; a cluster's: top level, `A.` or, for one flow,
    `A->B.source.cluster.`; the file's: top level alone.
    """

    FILE = "file"
    CLUSTER = "cluster"
    FLOW = "flow"


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A key with the reader of its value.

    `read` raises ValueError with a sentence of what is allowed; `default` is the value where
    the key is absent, `shown_default` the same as a user would write it.
    """

    name: str
    default: T
    read: Callable[[str], T]
    shown_default: str
    meaning: str
    level: Level = Level.FLOW
    use: Use = Use.USED


def _client(
    name: str, read: Callable[[str], str], shown_default: str, meaning: str
) -> Key[str | None]:
    return Key(name, None, values.optional(read), shown_default, meaning, Level.CLUSTER)


# --- a cluster's ------------------------------------------------------------------------

BOOTSTRAP: Key[tuple[str, ...]] = Key(
    "bootstrap.servers",
    (),
    values.addresses,
    "required",
    "Addresses of a few brokers, `host:port` with commas between.",
    Level.CLUSTER,
)
SECURITY_PROTOCOL = _client(
    "security.protocol",
    values.as_text(values.one_of("plaintext")),
    "PLAINTEXT",
    "Nothing else is supported yet: it and every `sasl.*` and `ssl.*` key are errors.",
)
_MILLISECONDS = values.as_text(values.integer(0))
_BUFFER = values.as_text(values.integer(-1))

CLIENT_KEYS: tuple[Key[str | None], ...] = (
    _client("client.id", values.text, "tsoffset", "Name under which brokers see us."),
    _client("request.timeout.ms", _MILLISECONDS, "30000", "Longest wait for one answer."),
    _client("metadata.max.age.ms", _MILLISECONDS, "300000", "Age at which leaders are asked anew."),
    _client(
        "connections.max.idle.ms",
        values.as_text(values.idle),
        "540000",
        "Idle time that ends a connection; -1: none does.",
    ),
    _client("retry.backoff.ms", _MILLISECONDS, "100", "First wait before a call is repeated."),
    _client("retry.backoff.max.ms", _MILLISECONDS, "1000", "Longest wait between repetitions."),
    _client("reconnect.backoff.ms", _MILLISECONDS, "50", "First wait before connecting again."),
    _client("reconnect.backoff.max.ms", _MILLISECONDS, "1000", "Longest such wait."),
    _client(
        "socket.connection.setup.timeout.ms",
        _MILLISECONDS,
        "10000",
        "First limit on making a connection.",
    ),
    _client(
        "socket.connection.setup.timeout.max.ms", _MILLISECONDS, "30000", "Largest such limit."
    ),
    _client("send.buffer.bytes", _BUFFER, "the system's", "Size of a socket's send buffer."),
    _client("receive.buffer.bytes", _BUFFER, "the system's", "Size of its receive buffer."),
    _client(
        "client.dns.lookup",
        values.one_of("default", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "use_all_dns_ips",
        "How names of brokers become addresses.",
    ),
)
CLUSTER_KEYS: tuple[Key[Any], ...] = (BOOTSTRAP, SECURITY_PROTOCOL, *CLIENT_KEYS)

# --- the file's -------------------------------------------------------------------------

CLUSTERS: Key[tuple[str, ...]] = Key(
    "clusters",
    (),
    values.aliases,
    "required; absent in a Connect configuration",
    "Aliases of the clusters.",
    Level.FILE,
)
PROVIDERS: Key[tuple[str, ...]] = Key(
    "config.providers",
    (),
    values.names,
    "env, file, dir",
    "Further names for Kafka's providers of `${name:...}`; not needed for the three defaults.",
    Level.FILE,
)
PROVIDER_CLASSES: Key[str | None] = Key(
    "config.providers.*",
    None,
    values.optional(values.text),
    "none",
    "`config.providers.<name>.class` is one of Kafka's three providers; their parameters have no"
    " effect.",
    Level.FILE,
)
SPARK: Key[str | None] = Key(
    "spark.*",
    None,
    values.optional(values.text),
    "Spark's own",
    "Handed to Spark as it stands; `spark.master` (default `local[*]`) is where Spark runs.",
    Level.FILE,
)
STATE_DIR: Key[str | None] = Key(
    "state.dir",
    None,
    values.optional(values.text),
    "none",
    "Directory for what a cycle learns that saves the next one work, a file a flow; may be lost"
    " at any time.",
    Level.FILE,
)
HISTORY_DIR: Key[str | None] = Key(
    "history.dir",
    None,
    values.optional(values.text),
    "none",
    "Directory for the results of past cycles.",
    Level.FILE,
    Use.LATER,
)
LISTENERS: Key[tuple[str, ...]] = Key(
    "listeners",
    (),
    values.names,
    "none",
    "Addresses at which `run` serves metrics, API and status page.",
    Level.FILE,
    Use.LATER,
)
STATUS_URLS: Key[tuple[str, ...]] = Key(
    "status.remote.urls",
    (),
    values.names,
    "none",
    "Other instances whose state the status page shows.",
    Level.FILE,
    Use.LATER,
)
FILE_KEYS: tuple[Key[Any], ...] = (
    CLUSTERS,
    PROVIDERS,
    PROVIDER_CLASSES,
    SPARK,
    STATE_DIR,
    HISTORY_DIR,
    LISTENERS,
    STATUS_URLS,
)
