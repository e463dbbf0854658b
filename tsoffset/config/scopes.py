"""Where a key stands in a MirrorMaker 2 file, and what that comes to for one flow.

The hierarchy is that of MirrorMakerConfig.connectorBaseConfig and clusterProps: what stands
at the top level holds for all, `A.` for one cluster, `A->B.` for one flow; the narrower wins.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tsoffset.config.findings import Entry
from tsoffset.config.keys import CLUSTER_KEYS

CLIENT_PREFIX = re.compile(r"(?:(?P<side>source|target)\.)?(?P<client>consumer|producer|admin)\.")
CLUSTER_PREFIX = re.compile(r"(?:source|target)\.cluster\.")

# Cloudera's form of the file has connectors' settings under this prefix at the top level.
_CONNECTORS = "connectors."
_ALSO_WRITTEN = {
    "group": "groups",
    "groups.blacklist": "groups.exclude",
    "topics.blacklist": "topics.exclude",
}


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A key without its prefix, and whose it is: a flow's, a cluster's, or everybody's."""

    name: str
    cluster: str | None = None
    flow: tuple[str, str] | None = None

    @property
    def top(self) -> bool:
        """True at the top level."""
        return self.cluster is None and self.flow is None


@dataclass(frozen=True, slots=True)
class Setting:
    """An entry with its value resolved and without blanks around it.

    One that is not `usable` has been reported; its key's default stands in for it.
    """

    entry: Entry
    value: str = field(repr=False)
    usable: bool = True


def scoped_key(key: str, clusters: Collection[str], top_names: Collection[str]) -> ScopedKey:
    """The place of `key`; a key with an alias that is not in `clusters` stays at the top.

    `top_names` are known keys that mean themselves even where they begin like an alias.
    """
    plain = _ALSO_WRITTEN.get(key, key)
    if plain in top_names:
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
        # An alias may hold dots: of `us` and `us.west` the longer one is meant.
        prefix, cluster, flow = max(prefixes, key=lambda found: len(found[0]))
        name = key.removeprefix(prefix)
        return ScopedKey(name if flow is None else _ALSO_WRITTEN.get(name, name), cluster, flow)
    plain = key.removeprefix(_CONNECTORS)
    return ScopedKey(_ALSO_WRITTEN.get(plain, plain))


def ranked(entries: Collection[Entry]) -> list[Entry]:
    """The entries so that of two with one place the later holds: `connectors.x` before `x`."""
    return sorted(entries, key=lambda entry: not entry.key.startswith(_CONNECTORS))


def outranks(later: Entry, earlier: Entry) -> bool:
    """True where two entries of one place do not contradict each other, since one is weaker."""
    return earlier.key.startswith(_CONNECTORS) and not later.key.startswith(_CONNECTORS)


def merged(settings: Mapping[ScopedKey, Setting], source: str, target: str) -> dict[str, Setting]:
    """The settings of the flow `source->target`, named as a connector's are.

    A cluster's own settings are `source.cluster.x`, those of one kind of client
    `source.consumer.x`. Later assignments are the narrower ones.
    """
    top = {place.name: setting for place, setting in settings.items() if place.top}
    result: dict[str, Setting] = {}
    for name in top.keys() & CLUSTER_KEYS.keys():
        result[f"source.cluster.{name}"] = result[f"target.cluster.{name}"] = top[name]
    result |= top
    for side, alias in (("source", source), ("target", target)):
        for place, setting in settings.items():
            if place.cluster == alias:
                is_client = CLIENT_PREFIX.match(place.name) is not None
                prefix = side if is_client else f"{side}.cluster"
                result[f"{prefix}.{place.name}"] = setting
    for place, setting in settings.items():
        if place.flow == (source, target):
            result[place.name] = setting
    return result


def first_of(settings: Mapping[str, Setting], *names: str) -> Setting | None:
    """The setting of the first of `names` that is there."""
    return next((settings[name] for name in names if name in settings), None)


def client_names(side: str, name: str) -> tuple[str, str, str]:
    """Where a cluster's client setting may stand, the narrowest first.

    What MirrorMaker 2 gives its admin client on that side holds for us too.
    """
    return f"{side}.admin.{name}", f"admin.{name}", f"{side}.cluster.{name}"


def consumer_names(side: str, name: str) -> tuple[str, str]:
    """Where a setting of the consumers on that side may stand, the narrowest first."""
    return f"{side}.consumer.{name}", f"consumer.{name}"
