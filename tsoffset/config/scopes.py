"""The scope of a key in a MirrorMaker 2 file: a flow (`A->B.`), a cluster (`A.`), or all (top
level).

The narrower scope wins, as in MirrorMakerConfig.connectorBaseConfig and clusterProps.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tsoffset.config.accepted import ACCEPTED_NAMES
from tsoffset.config.findings import Entry
from tsoffset.config.keys import CLUSTER_KEYS, FILE_KEYS, FLOW_KEYS, ISOLATION

CLIENT_PREFIX = re.compile(r"(?:(?P<side>source|target)\.)?(?P<client>consumer|producer|admin)\.")
CLUSTER_PREFIX = re.compile(r"(?:source|target)\.cluster\.")

# At the top level, Cloudera's files have this prefix before settings of connectors.
_CONNECTORS = "connectors."
_ALSO_WRITTEN = {
    "group": "groups",
    "groups.blacklist": "groups.exclude",
    "topics.blacklist": "topics.exclude",
}
# Keys that are at the top level even if they begin with an alias.
TOP_NAMES = FLOW_KEYS.keys() | FILE_KEYS.keys() | ACCEPTED_NAMES


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A key without its prefix, and its scope: a flow, a cluster, or neither (top level)."""

    name: str
    cluster: str | None = None
    flow: tuple[str, str] | None = None

    @property
    def top(self) -> bool:
        return self.cluster is None and self.flow is None


@dataclass(frozen=True, slots=True)
class Setting:
    """An entry with its resolved value, without blanks around it. If it is not `usable`, that has
    been reported, and its key's default applies. `changed`: by `tsoffset lists`, so that the value
    is not the one of the entry's line."""

    entry: Entry
    value: str = field(repr=False)
    usable: bool = True
    changed: bool = False


def scoped_key(key: str, clusters: Collection[str]) -> ScopedKey:
    """The scope and name of `key`. A key with an alias that is not in `clusters` is at the top
    level."""
    plain = _ALSO_WRITTEN.get(key, key)
    if plain in TOP_NAMES:
        return ScopedKey(plain)
    prefixes: list[tuple[str, str | None, tuple[str, str] | None]] = []
    for alias in clusters:
        if key.startswith(f"{alias}."):
            prefixes.append((f"{alias}.", alias, None))
        elif key.startswith(f"{alias}->"):
            prefixes.extend(
                (f"{alias}->{target}.", None, (alias, target))
                for target in clusters
                if key.startswith(f"{alias}->{target}.")
            )
    if prefixes:
        # Aliases may contain dots: of `us` and `us.west`, use the longer one.
        prefix, cluster, flow = max(prefixes, key=lambda found: len(found[0]))
        name = key.removeprefix(prefix)
        return ScopedKey(name if flow is None else _ALSO_WRITTEN.get(name, name), cluster, flow)
    plain = key.removeprefix(_CONNECTORS)
    return ScopedKey(_ALSO_WRITTEN.get(plain, plain))


def sort_by_precedence(entries: Collection[Entry]) -> list[Entry]:
    """The entries in an order in which the later of two for one key wins: `connectors.x` before
    `x`."""
    return sorted(entries, key=lambda entry: not entry.key.startswith(_CONNECTORS))


def has_precedence(later: Entry, earlier: Entry) -> bool:
    """True if `later` wins over `earlier` without a contradiction."""
    return earlier.key.startswith(_CONNECTORS) and not later.key.startswith(_CONNECTORS)


def is_ignored_isolation(scoped: ScopedKey) -> bool:
    """True for a consumer's isolation level at the top level. MirrorMaker 2 ignores it, so tsoffset
    must not use it: records of open transactions are copied, and would not count as copied."""
    return scoped.top and scoped.name.removeprefix("source.") == ISOLATION.name


def merge_settings(
    settings: Mapping[ScopedKey, Setting], source: str, target: str
) -> dict[str, Setting]:
    """The settings of the flow `source->target` under a connector's names: settings of a cluster
    are `source.cluster.x`, those of one of its clients `source.consumer.x`. Later assignments have
    the narrower scope."""
    top = {
        scoped.name: setting
        for scoped, setting in settings.items()
        if scoped.top and not is_ignored_isolation(scoped)
    }
    result: dict[str, Setting] = {}
    for name in top.keys() & CLUSTER_KEYS.keys():
        result[f"source.cluster.{name}"] = result[f"target.cluster.{name}"] = top[name]
    result |= top
    for side, alias in (("source", source), ("target", target)):
        for scoped, setting in settings.items():
            if scoped.cluster == alias:
                is_client = CLIENT_PREFIX.match(scoped.name) is not None
                prefix = side if is_client else f"{side}.cluster"
                result[f"{prefix}.{scoped.name}"] = setting
    for scoped, setting in settings.items():
        if scoped.flow == (source, target):
            result[scoped.name] = setting
    return result


def first_of(settings: Mapping[str, Setting], *names: str) -> Setting | None:
    return next((settings[name] for name in names if name in settings), None)


def client_names(side: str, name: str) -> tuple[str, str, str]:
    """The keys of a client setting of a cluster, the narrowest first. Settings of MirrorMaker 2's
    admin client apply to tsoffset, too."""
    return f"{side}.admin.{name}", f"admin.{name}", f"{side}.cluster.{name}"


def consumer_names(side: str, name: str) -> tuple[str, str]:
    """The keys of a setting of the consumers of that cluster, the narrowest first."""
    return f"{side}.consumer.{name}", f"consumer.{name}"
