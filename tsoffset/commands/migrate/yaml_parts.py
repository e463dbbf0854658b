"""YAML values that know their path and line.

Nothing is constructed: tags create no objects, and an alias is the node that it refers to, so a
small file cannot expand to a huge one. PyYAML's C parser overflows the stack on deeply nested
lists; the Python parser raises an error.
"""

from collections.abc import Sequence

import yaml

from tsoffset.commands.migrate.setup import MirrorSetting
from tsoffset.config.findings import Entry, Findings

# etcd takes 1.5 MiB at most, and a resource written by hand has a few KiB.
_MOST_CHARACTERS = 1 << 20
_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "timestamp"))
_BOOLEAN, _NULL = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"
_TRUE = ("yes", "true", "on")


class YamlValue:
    """A value of a document, with its `path` (`spec.mirrors[0].source`); false if it is absent or
    null.

    A value of another type than requested is reported in `findings`, and taken for empty.
    """

    def __init__(self, node: yaml.Node | None, path: str, file: str, findings: Findings) -> None:
        self.path = path
        self._node = node
        self._file = file
        self._findings = findings

    def __bool__(self) -> bool:
        return self._node is not None

    @property
    def line(self) -> int | None:
        return None if self._node is None else int(self._node.start_mark.line) + 1

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    def entry(self, text: str = "") -> Entry:
        """The value as an entry of a configuration, with its path as key."""
        return Entry(self.path, text, self._file, self.line)

    def setting(self, name: str) -> MirrorSetting:
        text = self.text()
        return MirrorSetting(self.entry(text), name, text)

    def refuse(self, allowed: str) -> None:
        self._findings.problem_in_file(self.path or "YAML", allowed, self._file, self.line)

    def members(self) -> dict[str, "YamlValue"]:
        """The members of a mapping by name, without those that are null."""
        if self._node is None:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            self.refuse("must be a mapping, with `name: value` lines")
            return {}
        found: dict[str, YamlValue] = {}
        for key, value in self._node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            part = self._part(value, f"{self.path}.{name}" if self.path else name)
            if not name or name == "<<":
                self._part(key, self.path).refuse(
                    "has a name that is no plain word; write it out, and render a template first"
                    " (helm template)"
                )
            elif name in found:
                part.refuse("is given twice; keep one")
            elif value.tag != _NULL:
                found[name] = part
        return found

    def get(self, name: str) -> "YamlValue":
        return self.members().get(name) or self._part(None, f"{self.path}.{name}")

    def member_text(self, name: str, default: str = "") -> str:
        member = self.get(name)
        return member.text() if member else default

    def required_text(self, name: str) -> str:
        if not (text := self.member_text(name)):
            self.refuse(f"must have `{name}`")
        return text

    def items(self) -> list["YamlValue"]:
        if self._node is None:
            return []
        if not isinstance(self._node, yaml.SequenceNode):
            self.refuse("must be a list, with `- ` before each item")
            return []
        return [
            self._part(node, f"{self.path}[{index}]") for index, node in enumerate(self._node.value)
        ]

    def text(self) -> str:
        """A scalar as text: numbers as written, booleans as true and false."""
        if isinstance(self._node, yaml.ScalarNode):
            value: str = self._node.value
            if self._node.tag == _BOOLEAN:
                return "true" if value.lower() in _TRUE else "false"
            if self._node.tag in _SCALARS:
                return value
        self.refuse("must be text, a number, true or false")
        return ""

    def _part(self, node: yaml.Node | None, path: str) -> "YamlValue":
        return YamlValue(node, path, self._file, self._findings)


def documents(text: str, file: str, findings: Findings) -> Sequence[YamlValue]:
    """The documents of the text; none if it cannot be parsed, which is reported in `findings`."""
    if len(text) > _MOST_CHARACTERS:
        why = "is larger than 1 MiB; give the KafkaMirrorMaker2 resource alone"
        findings.problem_in_file("YAML", why, file)
        return ()
    line = None
    try:
        nodes = yaml.compose_all(text, Loader=yaml.SafeLoader)
        return [YamlValue(node, "", file, findings) for node in nodes]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, why = mark and mark.line + 1, error.problem or error.context
    except RecursionError:
        why = "nested too deeply"
    except yaml.YAMLError as error:
        why = str(error).splitlines()[0]
    except (ValueError, OverflowError):
        # From PyYAML, for `\UFFFFFFFF` and for a version with thousands of digits.
        why = "it has a number out of range, as in `\\U00110000`"
    hint = "; render a template first (helm template)" if "{{" in text else ""
    findings.problem_in_file("YAML", f"cannot be parsed: {why}{hint}", file, line)
    return ()
