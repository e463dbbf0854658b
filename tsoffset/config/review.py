"""Checking each entry by itself: is its key known in its scope, and is its value valid."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from tsoffset.config.accepted import ACCEPTED_NAMES, CLIENT_NAMES, accepted_key
from tsoffset.config.findings import Entry, Findings
from tsoffset.config.key_table import Key
from tsoffset.config.keys import CLUSTER_KEYS, ENABLED, FILE_KEYS, FLOW_KEYS, ISOLATION
from tsoffset.config.scopes import (
    CLIENT_PREFIX,
    CLUSTER_PREFIX,
    TOP_NAMES,
    ScopedKey,
    Setting,
    is_ignored_isolation,
)
from tsoffset.config.security_keys import SECURITY_KEYS

# An unknown security key is always an error: connections would not be secured as intended.
# (Transformations, reporters and others have such settings of their own, behind longer prefixes.)
_SECURITY = re.compile(
    r"(?:[^.]+\.)?(?:(?:cluster|admin|consumer|producer)\.)?"
    r"(?:sasl\.|ssl\.|security\.(?:protocol|providers)$)"
)
_PROVIDER_PARAMETER = re.compile(r"config\.providers\..+\.param\.")
_TRANSFORMATION = re.compile(r"(?:transforms|predicates)(?:\.|$)")
_UNTRANSFORMED = (
    "has no effect: tsoffset applies no transformations. If those of the replicator rename topics, "
    "set replication.policy.class; if they change keys or values, set translation.match"
)
# Prefixes of the settings of users' own policies and filters.
POLICY_FAMILY, GROUP_FILTER_FAMILY, TOPIC_FILTER_FAMILY = CLASS_FAMILIES = (
    "replication.policy.",
    "group.filter.",
    "topic.filter.",
)
# How similar an unknown key must be to a known one to be a likely typo, where unknown keys are
# allowed.
_SLIP = 0.85
_BARE_ISOLATION = "isolation.level"
_OF_A_SOURCE = f"A.{ISOLATION.name}, where A is the source"

_FAMILIES = tuple(name.removesuffix("*") for name in FILE_KEYS if name.endswith(".*"))
_CLIENT = CLIENT_NAMES | CLUSTER_KEYS.keys()


class UnknownKey(str):
    """A sentence about a key that is unknown in its scope; `near` is the key that may be meant."""

    near: str | None = None


# A key that is read; a sentence about one that is not; None if there is nothing to say.
Known = Key[Any] | str | None


def check_setting(
    scoped: ScopedKey,
    setting: Setting,
    *,
    dedicated: bool,
    findings: Findings,
    entries: Mapping[ScopedKey, Entry],
    strict: bool,
) -> bool:
    """Report problems and warnings of one setting; returns False if it is wrong.

    `dedicated` is true for a file with `clusters`. A Connect configuration has only the top level,
    and settings of a cluster need a prefix there. `entries` are all entries of the file. If it is
    `strict`, unknown keys are wrong.
    """
    slip = _flow_slip(scoped, setting) if dedicated else None
    if slip is not None:
        findings.problem(setting.entry, slip)
        return False
    key = find_key(scoped, setting.value, dedicated=dedicated)
    if not isinstance(key, Key):
        if key is not None and _SECURITY.match(scoped.name):
            findings.problem(setting.entry, key, with_value=False)
            return False
        if isinstance(key, UnknownKey):
            told = key + _in_effect(scoped, key.near, entries)
            if strict:
                findings.problem(setting.entry, told, with_value=False)
                return False
            findings.warning(setting.entry, told)
        elif key is not None:
            findings.warning(setting.entry, key)
        return True
    try:
        key.read(setting.value)
    except ValueError as error:
        findings.problem(setting.entry, str(error), with_value=not _SECURITY.match(scoped.name))
        return False
    return True


def _in_effect(scoped: ScopedKey, near: str | None, entries: Mapping[ScopedKey, Entry]) -> str:
    """The current value of the key that may be meant: a misspelled list changes what is synced."""
    key = None if near is None else (FLOW_KEYS | FILE_KEYS).get(near)
    if key is None:
        return ""
    own = entries.get(replace(scoped, name=key.name)) or entries.get(ScopedKey(key.name))
    if own is not None:
        return f" It has no effect: `{key.name}` is what {own.location} says"
    return f" It has no effect: `{key.name}` is now `{key.shown_default}`, its default"


def _flow_slip(scoped: ScopedKey, setting: Setting) -> str | None:
    """What is wrong with a key that enables a flow without effect; None if nothing is."""
    if scoped.top and setting.value.startswith("->"):
        return "a space ends a key; write A->B.name = value without spaces around the arrow"
    on = setting.value.lower() == "true"
    if scoped.top and on and "->" in scoped.name and scoped.name.endswith(f".{ENABLED.name}"):
        return "enables a flow between clusters that are not both in `clusters`"
    if on and scoped.flow is not None and scoped.flow[0] == scoped.flow[1]:
        return "a flow leads from one cluster to another" if scoped.name == ENABLED.name else None
    return None


def find_key(scoped: ScopedKey, value: str, *, dedicated: bool) -> Known:
    """The key that is read; a sentence about one that is not; or None if there is nothing to say.
    `dedicated` as for `check_setting`."""
    if value and _TRANSFORMATION.match(scoped.name):
        return _UNTRANSFORMED
    return _find_key(scoped, dedicated)


def _find_key(scoped: ScopedKey, dedicated: bool) -> Known:
    """`find_key` for other keys than transformations."""
    name = scoped.name
    of_file = is_of_file(name)
    if of_file and not scoped.top:
        return UnknownKey(f"has no effect: it applies to the whole file; write {name}")
    if scoped.cluster is not None:
        return _find_cluster_key(name, scoped.cluster)
    if dedicated and is_ignored_isolation(scoped):
        both = f"remove it, or write {_OF_A_SOURCE}, for both tools"
        return UnknownKey(f"has no effect, as in MirrorMaker 2: {both}")
    if name in FLOW_KEYS:
        return FLOW_KEYS[name]
    if prefix := CLUSTER_PREFIX.match(name):
        return _cluster_setting(name[prefix.end() :], _flow_prefix(scoped) + prefix.group())
    if (prefix := CLIENT_PREFIX.match(name)) and name not in ACCEPTED_NAMES:
        return _client_setting(name[prefix.end() :], prefix, _flow_prefix(scoped))
    if _PROVIDER_PARAMETER.match(name):
        return "has no effect: providers read any file or variable that the configuration names"
    if of_file:
        return FILE_KEYS.get(name)
    # `A->B.client.id` is for MirrorMaker 2's worker, not for a cluster's client.
    if name == _BARE_ISOLATION or (name in CLUSTER_KEYS and (scoped.top or name != "client.id")):
        return _cluster_setting(name, "") if scoped.top and dedicated else _bare_advice(name)
    if _is_accepted(name):
        return None
    if scoped.flow is not None:
        near = _nearest(name, {*FLOW_KEYS, *ACCEPTED_NAMES}, _flow_prefix(scoped))
    elif dedicated and "->" in name:
        return UnknownKey(
            "has no effect: it belongs to a flow between clusters that are not in `clusters`"
        )
    elif dedicated and (alias := _alias_before(name)) is not None:
        return UnknownKey(f"has no effect: {alias} is not among `clusters`")
    else:
        near = _nearest(name, TOP_NAMES | CLUSTER_KEYS.keys(), "")
    # `flows.review_of_classes` checks the settings of classes.
    return None if may_be_of_a_class(name) else near


def _find_cluster_key(name: str, alias: str) -> Known:
    """`find_key` for keys after `A.`."""
    if name in FLOW_KEYS and name != ISOLATION.name:
        advice = f"write {name}, or {alias}->B.{name} for one flow"
        return UnknownKey(f"has no effect: it belongs to a flow; {advice}")
    if prefix := CLIENT_PREFIX.match(name):
        return _client_setting(name[prefix.end() :], prefix, f"{alias}.")
    return _cluster_setting(name, f"{alias}.")


def is_of_file(name: str) -> bool:
    return name in FILE_KEYS or name.startswith(_FAMILIES)


def may_be_of_a_class(name: str) -> bool:
    """True for a key that a user's own policy or filter may read, and that is not a likely typo."""
    return (
        name.startswith(CLASS_FAMILIES)
        and name not in FLOW_KEYS
        and not difflib.get_close_matches(name, FLOW_KEYS, n=1, cutoff=_SLIP)
    )


def _is_accepted(name: str) -> bool:
    return name in _CLIENT or name.startswith(_FAMILIES) or accepted_key(name) is not None


def _bare_advice(name: str) -> str:
    if name == _BARE_ISOLATION:
        of_connector = f"in a connector's configuration {ISOLATION.name}"
        return f"has no effect here; it belongs to a consumer: write {_OF_A_SOURCE}; {of_connector}"
    at_a_side = f"source.cluster.{name} or target.cluster.{name}"
    return f"has no effect here; it belongs to a cluster: write {at_a_side}"


def _cluster_setting(rest: str, prefix: str) -> Known:
    if rest == _BARE_ISOLATION:
        return _bare_advice(rest)
    if rest in CLUSTER_KEYS:
        return CLUSTER_KEYS[rest]
    return None if _is_accepted(rest) else _nearest(rest, _CLIENT, prefix)


def _client_setting(rest: str, prefix: re.Match[str], before: str) -> Known:
    """Settings of one kind of client. tsoffset reads all settings of the admin client; of the
    consumer it reads the security settings and, on the source, the isolation level. `before` is the
    prefix of the alias or flow."""
    of_ours: Mapping[str, Key[Any]] = {"admin": CLUSTER_KEYS, "consumer": SECURITY_KEYS}.get(
        prefix["client"], {}
    )
    if rest in of_ours:
        return of_ours[rest]
    if prefix["client"] == "consumer" and prefix["side"] != "target" and rest == _BARE_ISOLATION:
        return ISOLATION
    if rest in _CLIENT or accepted_key(prefix.group() + rest) is not None:
        return None
    close = difflib.get_close_matches(rest, sorted(_CLIENT), n=1, cutoff=_SLIP)
    if close:
        return UnknownKey(f"unknown key. Did you mean `{before}{prefix.group()}{close[0]}`?")
    return UnknownKey(f"unknown to Kafka's {prefix['client']} clients; it has no effect here")


def _flow_prefix(scoped: ScopedKey) -> str:
    return "" if scoped.flow is None else f"{'->'.join(scoped.flow)}."


def _alias_before(name: str) -> str | None:
    ends = [f".{key}" for key in CLUSTER_KEYS if name.endswith(f".{key}")]
    return name.removesuffix(max(ends, key=len)) if ends else None


def _nearest(name: str, candidates: Collection[str], prefix: str) -> str:
    close = difflib.get_close_matches(name, sorted(candidates), n=1)
    if not close:
        return UnknownKey("unknown key; it has no effect")
    found = UnknownKey(f"unknown key. Did you mean `{prefix}{close[0]}`?")
    found.near = close[0]
    return found
