"""Reads MirrorMaker 2's configuration, in whatever form it has."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tsoffset.commands.migrate.setup import (
    Connector,
    ConnectorRole,
    InputKind,
    MirrorSetting,
    Setup,
    setup_of_connectors,
)
from tsoffset.commands.migrate.strimzi import RESOURCE, setup_of_resources
from tsoffset.commands.migrate.yaml_parts import documents
from tsoffset.config import keys
from tsoffset.config.findings import Entry, Findings
from tsoffset.config.source import ConfigFormat, parse, read_text
from tsoffset.errors import UsageError

_CLASS = "connector.class"
_ROLES = {role.value: role for role in ConnectorRole}
# The `kind` line of a resource, or of a list of resources.
_KIND = re.compile(
    rf"^[ \t-]*+[\"']?kind[\"']?[ \t]*+:[ \t]*+[\"']?({RESOURCE}|List)\b", re.MULTILINE
)
_YAML = (".yaml", ".yml")


def read_setup(files: Sequence[str], findings: Findings) -> Setup | None:
    """Read the files: one MirrorMaker 2 file, one Strimzi resource, or connectors.

    None if they are none of these; `findings` has the reasons. Raises ConfigurationError for a file
    that cannot be read, UsageError for several that do not belong together.
    """
    connectors: list[Connector] = []
    for file in files:
        text = read_text(file)
        suffix = Path(file).suffix.lower()
        if suffix in _YAML or (suffix != ".properties" and _KIND.search(text)):
            _require_one(file, files)
            return setup_of_resources(documents(text, file, findings), file, findings)
        if suffix == ".json" or (suffix != ".properties" and text.lstrip()[:1] in ("{", "[")):
            connectors += _in_json(text, file, findings)
            continue
        entries = parse(text, ConfigFormat.PROPERTIES, file, findings)
        if any(entry.key == _CLASS for entry in entries):
            connectors += _connector("", entries, file, findings)
            continue
        _require_one(file, files)
        return _dedicated_setup(entries, file, findings)
    if findings.problems:
        return None
    return setup_of_connectors(InputKind.CONNECTORS, " and ".join(files), connectors, findings)


def _require_one(file: str, files: Sequence[str]) -> None:
    if len(files) > 1:
        raise UsageError(
            f"{file} is complete by itself, so no further file can go with it; several files are"
            " for connectors, one in each"
        )


def _dedicated_setup(entries: Sequence[Entry], file: str, findings: Findings) -> Setup | None:
    listed = next((entry for entry in entries if entry.key == keys.CLUSTERS.name), None)
    if listed is None:
        findings.problem_in_file(
            keys.CLUSTERS.name,
            "must list the aliases of the clusters, as in a MirrorMaker 2 file; a connector's"
            f" configuration has {_CLASS}, a Strimzi resource the kind {RESOURCE}",
            file,
        )
        return None
    try:
        clusters = keys.CLUSTERS.read(listed.text)
    except ValueError as error:
        findings.problem(listed, str(error))
        return None
    if "$" in listed.text:
        findings.problem(listed, "must be written out here: other keys contain the aliases")
        return None
    settings = tuple(
        MirrorSetting(entry, entry.key, entry.text) for entry in entries if entry is not listed
    )
    return Setup(InputKind.DEDICATED, file, tuple(dict.fromkeys(clusters)), settings)


def _in_json(text: str, file: str, findings: Findings) -> list[Connector]:
    """The connectors of a file: one as Connect's REST API takes it, with or without its name; or
    several, as a list or as the answer to `/connectors?expand=info`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        parse(text, ConfigFormat.JSON, file, findings)
        return []
    several = _several(document)
    if several is None:
        whole = parse(text, ConfigFormat.JSON, file, findings)
        return _connector(_name(document), whole, file, findings)
    found: list[Connector] = []
    for one in several:
        # The lines within the file are not known.
        inner = json.dumps(one.get("config", one) if isinstance(one, dict) else one)
        entries = [
            replace(entry, line=None) for entry in parse(inner, ConfigFormat.JSON, file, findings)
        ]
        found += _connector(_name(one), entries, file, findings)
    return found


def _several(document: object) -> list[object] | None:
    """The objects in which the connectors are; None if the file is one connector."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict) and document:
        if "config" in document and document.keys() - {"name", "config"}:
            return [document]
        infos = [one.get("info") if isinstance(one, dict) else None for one in document.values()]
        if all(isinstance(info, dict) for info in infos):
            return infos
    return None


def _name(document: object) -> str:
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""


def _connector(
    name: str, entries: Sequence[Entry], file: str, findings: Findings
) -> list[Connector]:
    """The connector, in a list; an empty list if it is none of MirrorMaker 2's."""
    found = {entry.key: entry for entry in entries}
    if _CLASS not in found:
        if entries:
            findings.problem_in_file(_CLASS, "must name the connector", file)
        return []
    simple = found[_CLASS].text.strip().rpartition(".")[2]
    role = _ROLES.get(simple) or _ROLES.get(f"{simple}Connector")
    if role is None:
        findings.problem(found[_CLASS], f"must be one of MirrorMaker 2's: {', '.join(_ROLES)}")
        return []
    named = name or (found["name"].text if "name" in found else Path(file).stem)
    settings = tuple(MirrorSetting(entry, entry.key, entry.text) for entry in entries)
    return [Connector(named, role, found[_CLASS], settings)]
