"""From a configuration's text to its settings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tsoffset.config import keys
from tsoffset.config.findings import Entry, Findings
from tsoffset.config.flows import (
    FlowSource,
    fields_of,
    flow_settings,
    read,
    review_of_classes,
    review_of_offset_syncs,
)
from tsoffset.config.overrides import Overrides
from tsoffset.config.providers import Resolver, Unresolved
from tsoffset.config.review import check_setting
from tsoffset.config.scopes import (
    ScopedKey,
    Setting,
    has_precedence,
    merge_settings,
    scoped_key,
    sort_by_precedence,
)
from tsoffset.config.security import warn_of_unused
from tsoffset.config.source import ConfigFormat, format_of, parse, read_text
from tsoffset.errors import ConfigurationError
from tsoffset.flow.patterns import split_list
from tsoffset.flow.security import keeps_secrets
from tsoffset.flow.settings import (
    FlowSettings,
    HistorySettings,
    MetricsSettings,
    ServerSettings,
    Settings,
    reverse_of,
)

_SPARK = "spark."
_PROVIDER_CLASS = re.compile(rf"{re.escape(keys.PROVIDERS.name)}\.(?P<name>.+)\.class")
# Keys that show that a file without `clusters` is a connector's configuration.
_CONNECTOR_NAMES = ("connector.class", "source.cluster.bootstrap.servers")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration file's text, with `${...}` unresolved.

    Spark's workers get this, and each process resolves it for itself, so that secrets are only in
    the processes that use them. `overrides` are the changes made by `tsoffset lists`, by flow.
    `strict` makes unknown keys errors, as `config.unknown.keys = error` does.
    """

    path: str
    text: str = field(repr=False)
    format: ConfigFormat = ConfigFormat.PROPERTIES
    overrides: Mapping[str, Overrides] = field(default_factory=dict)
    strict: bool = False

    @classmethod
    def read(cls, path: str | Path, *, strict: bool = False) -> Self:
        """Read the file. Raises ConfigurationError."""
        name = str(path)
        text = read_text(name)
        return cls(name, text, format_of(name, text), strict=strict)

    def resolve(self) -> Settings:
        """The settings, with `${...}` resolved in this process. Raises ConfigurationError with all
        problems."""
        findings = Findings()
        settings = settings_of(parse(self.text, self.format, self.path, findings), self, findings)
        if findings.problems:
            raise ConfigurationError(findings.problems, findings.warnings)
        return settings


def settings_of(
    entries: Sequence[Entry],
    origin: Configuration,
    findings: Findings,
    *,
    load_classes: bool = True,
) -> Settings:
    """The settings of these entries. Problems are added to `findings`; defaults replace what is
    wrong. With `load_classes` false, classes that the entries name are not loaded."""
    resolver = Resolver(_provider_classes(entries))
    listed = next((entry for entry in entries if entry.key == keys.CLUSTERS.name), None)
    dedicated = listed is not None
    clusters = () if listed is None else _aliases(listed, resolver, findings)
    by_scope = _by_scope(entries, clusters, findings)
    strict = origin.strict or _is_strict(by_scope.get(ScopedKey(keys.UNKNOWN_KEYS.name)), resolver)
    settings = {
        scoped: replace(
            setting,
            usable=setting.usable
            and check_setting(
                scoped,
                setting,
                dedicated=dedicated,
                findings=findings,
                entries=by_scope,
                strict=strict,
            ),
        )
        for scoped, entry in by_scope.items()
        for setting in (_resolve(entry, resolver, findings),)
    }
    top = {scoped.name: setting for scoped, setting in settings.items() if scoped.top}
    of_pairs: dict[tuple[str, str], Mapping[str, Setting]] = {}
    if dedicated:
        pairs = _pairs(settings, top, clusters)
        of_pairs = {pair: merge_settings(settings, *pair) for pair in pairs}
    elif (pair := _connect_pair(top, origin, findings)) is not None:
        clusters, of_pairs = pair, {pair: top}
    secrets = resolver.substituted
    sources = [
        _overridden(FlowSource(*pair, own, origin.path, dedicated, secrets, load_classes), origin)
        for pair, own in of_pairs.items()
    ]
    flows = tuple(flow_settings(source, findings) for source in sources)
    review_of_classes(sources, findings, strict=strict)
    review_of_offset_syncs(sources, findings)
    if dedicated:
        if keys.STATE_DIR.name not in top:
            _warn_of_both_directions(sources, flows, findings)
        secured = [side.security for flow in flows for side in (flow.source, flow.target)]
        warn_of_unused(top, secured, findings)
    server = ServerSettings(**fields_of(ServerSettings, keys.FILE_KEYS, top))
    if (server.token or server.read_token) and not all(map(keeps_secrets, server.listeners)):
        findings.warning(
            top["listeners"].entry,
            "clients send bearer tokens to it unencrypted; use https, or allow connections only "
            "from a proxy that encrypts",
        )
    return Settings(
        flows=flows,
        clusters=clusters,
        spark={name: s.value for name, s in top.items() if name.startswith(_SPARK)},
        state_dir=read(keys.STATE_DIR, top.get(keys.STATE_DIR.name)),
        server=server,
        history=HistorySettings(**fields_of(HistorySettings, keys.FILE_KEYS, top)),
        metrics=MetricsSettings(**fields_of(MetricsSettings, keys.FILE_KEYS, top)),
        warnings=findings.warnings,
    )


def _warn_of_both_directions(
    sources: Sequence[FlowSource], flows: Sequence[FlowSettings], findings: Findings
) -> None:
    """One warning, for the first enabled flow whose reverse flow is enabled, too."""
    for source, flow in zip(sources, flows, strict=True):
        reverse = reverse_of(flow, flows)
        if flow.enabled and reverse is not None and flow.commits and reverse.commits:
            findings.warning(
                source.settings[keys.ENABLED.name].entry,
                f"{flow.name} and {reverse.name} are both enabled without state.dir: if a group is"
                " reset on one cluster only, the flow from the other cluster moves it forward"
                " again, past records that it has not read; set state.dir",
            )
            return


def _overridden(source: FlowSource, origin: Configuration) -> FlowSource:
    overrides = origin.overrides.get(source.name)
    if overrides is None:
        return source
    return replace(source, settings=overrides.apply_to(source.settings, origin.path))


def _provider_classes(entries: Sequence[Entry]) -> dict[str, str]:
    """Java classes by their names in `config.providers.<name>.class`."""
    found = ((_PROVIDER_CLASS.fullmatch(entry.key), entry.text) for entry in entries)
    return {match["name"]: text for match, text in found if match is not None}


def _resolve(entry: Entry, resolver: Resolver, findings: Findings) -> Setting:
    try:
        return Setting(entry, resolver.resolve(entry.text).strip())
    except Unresolved as error:
        for reason in error.reasons:
            findings.problem(entry, reason)
        return Setting(entry, "", usable=False)


def _is_strict(entry: Entry | None, resolver: Resolver) -> bool:
    # `check_setting` reports a wrong value.
    return entry is not None and _resolve(entry, resolver, Findings()).value.lower() == "error"


def _aliases(listed: Entry, resolver: Resolver, findings: Findings) -> tuple[str, ...]:
    """The clusters' aliases; none if the list is wrong."""
    try:
        aliases = keys.CLUSTERS.read(_resolve(listed, resolver, findings).value)
    except ValueError:
        # `check_setting` reports the wrong value.
        return ()
    if "spark" in aliases:
        findings.problem(listed, "must not have the alias spark: Spark's own keys begin with it")
    if len(set(aliases)) < len(aliases):
        findings.warning(listed, "names a cluster twice")
    return tuple(dict.fromkeys(aliases))


def _by_scope(
    entries: Sequence[Entry], clusters: Sequence[str], findings: Findings
) -> dict[ScopedKey, Entry]:
    """The entries by scope and name. Two spellings of one key must not contradict each other."""
    by_scope: dict[ScopedKey, Entry] = {}
    for entry in sort_by_precedence(entries):
        scoped = scoped_key(entry.key, clusters)
        earlier = by_scope.get(scoped)
        if (
            earlier is not None
            and not has_precedence(entry, earlier)
            and split_list(entry.text) != split_list(earlier.text)
        ):
            findings.problem(entry, f"contradicts {earlier.key} ({earlier.location}); keep one")
        by_scope[scoped] = entry
    return by_scope


def _pairs(
    settings: Mapping[ScopedKey, Setting], top: Mapping[str, Setting], clusters: Sequence[str]
) -> list[tuple[str, str]]:
    """The flows that keys name; with `enabled` at the top level, all possible flows."""
    named = {scoped.flow for scoped in settings}
    all_on = read(keys.ENABLED, top.get(keys.ENABLED.name))
    return [
        (source, target)
        for source in clusters
        for target in clusters
        if source != target and (all_on or (source, target) in named)
    ]


def _connect_pair(
    top: Mapping[str, Setting], origin: Configuration, findings: Findings
) -> tuple[str, str] | None:
    """Source and target of a connector's configuration; None if it is not one."""
    source = read(keys.SOURCE_ALIAS, top.get(keys.SOURCE_ALIAS.name))
    target = read(keys.TARGET_ALIAS, top.get(keys.TARGET_ALIAS.name))
    if source is None:
        if keys.SOURCE_ALIAS.name in top or (not top and findings.problems):
            return None
        if origin.format is ConfigFormat.JSON or any(name in top for name in _CONNECTOR_NAMES):
            findings.problem_in_file(keys.SOURCE_ALIAS.name, "must name the source", origin.path)
        else:
            findings.problem_in_file(
                keys.CLUSTERS.name,
                "must list the aliases of the clusters, as in a MirrorMaker 2 file;"
                f" a connector's configuration has {keys.SOURCE_ALIAS.name}",
                origin.path,
            )
        return None
    if source == target:
        findings.problem(
            top.get(keys.TARGET_ALIAS.name, top[keys.SOURCE_ALIAS.name]).entry,
            "source and target must have different aliases",
        )
    return source, target
