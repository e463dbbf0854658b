"""Replaces secrets by references, in a file that others may read."""

import re
from dataclasses import replace
from pathlib import Path

from tsoffset.commands.migrate.setup import InputKind, MirrorSetting, Setup
from tsoffset.config import security_keys
from tsoffset.config.jaas import jaas_text, login_module
from tsoffset.config.keys import CLUSTER_KEYS, FILE_KEYS, FLOW_KEYS
from tsoffset.printable import names_secret

_REFERENCE = re.compile(r"\$\{(?:[^$}]|\$(?!\{))*+\}")
_JAAS = security_keys.JAAS.name
_IN_FILE = "The input has it in plain text; tsoffset reads it from there, not from a copy."
_SECRETS = frozenset(
    key.name
    for key in (
        security_keys.TRUST_PASSWORD,
        security_keys.OWN_PASSWORD,
        security_keys.OWN_KEY,
        security_keys.OWN_KEY_PASSWORD,
        security_keys.TOKEN_SECRET,
    )
) | {name for name in FILE_KEYS if names_secret(name)}
_NO_SECRETS = (CLUSTER_KEYS.keys() | FLOW_KEYS.keys() | FILE_KEYS.keys()) - _SECRETS


def without_secret(setting: MirrorSetting, setup: Setup) -> MirrorSetting:
    """The setting, with a reference in place of a secret that the input has in plain text.

    The reference is to MirrorMaker 2's own file, which stays, or else to an environment variable,
    which a person has to set.
    """
    name = _bare(setting.key)
    variable = re.sub(r"[^0-9A-Z]+", "_", setting.key.upper()).strip("_")
    in_part = _jaas_without_secrets(setting.text, variable) if name == _JAAS else None
    is_secret = name in _SECRETS or (name not in _NO_SECRETS and names_secret(name))
    if in_part == setting.text or not (_is_plain(setting.text) and (is_secret or name == _JAAS)):
        return setting
    if setup.kind is InputKind.DEDICATED and "$" not in setting.text:
        path, key = Path(setup.file).absolute(), setting.entry.key
        if path.is_file() and not (set(":}") & set(str(path)) or "}" in key):
            return _in_place(setting, f"${{file:{path}:{key}}}", _IN_FILE)
    what = "it" if in_part is None else "the secret"
    return _in_place(
        setting,
        in_part or f"${{env:{variable}}}",
        f"The input has {what} in plain text, which is not copied: set the environment variable,"
        " or write ${file:path:key} or ${dir:path:file}.",
    )


def _in_place(setting: MirrorSetting, text: str, sentence: str) -> MirrorSetting:
    change = " ".join(filter(None, (setting.change, sentence)))
    return replace(setting, text=text, change=change)


def _bare(key: str) -> str:
    """The name of a client's setting without the prefixes of flow, cluster and client."""
    ends = (name for name in CLUSTER_KEYS if key.endswith(f".{name}") and key not in FILE_KEYS)
    return max(ends, key=len, default=key)


def _is_plain(text: str) -> bool:
    return bool(_REFERENCE.sub("", text).strip())


def _jaas_without_secrets(text: str, variable: str) -> str | None:
    """The text with a reference to an environment variable for each secret; the text itself if it
    has none, and None if it cannot be parsed, so that it may hold one."""
    try:
        module = login_module(text)
    except ValueError:
        return None
    prefix = variable.removesuffix("_JAAS_CONFIG")
    secrets = {
        name: f"${{env:{prefix}_{name.upper()}}}"
        for name, value in module.options.items()
        if names_secret(name) and _is_plain(value)
    }
    return jaas_text(module.name, {**module.options, **secrets}) if secrets else text
