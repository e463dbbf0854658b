"""Loading replication policies and filters by their class names.

Java names of MirrorMaker 2's own classes mean tsoffset's classes. Other names are Python classes:
an entry point, `package.module:Class` or `package.module.Class`.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, Generic, TypeVar

from tsoffset.config.keys import MIRROR_PACKAGE
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    GroupFilter,
    IdentityReplicationPolicy,
    InvalidSetting,
    ReplicationPolicy,
    TopicFilter,
)

T = TypeVar("T")

# Common beginnings of Java packages, which Python packages hardly ever have.
_JAVA_ROOTS = ("com.", "io.", "net.", "org.")
# The similarity of a name that has a mistyped letter or two.
_SLIP = 0.95


class UnusablePlugin(ValueError):
    """A class cannot be used; the text says why, and what to write."""


@dataclass(frozen=True, slots=True)
class Plugin(Generic[T]):
    """A kind of class that users can write. `own` are tsoffset's classes by their Java names."""

    noun: str
    entry_point_group: str
    own: Mapping[str, Callable[[], T]]
    methods: tuple[str, ...]


IDENTITY_POLICY = f"{MIRROR_PACKAGE}IdentityReplicationPolicy"
POLICY_PLUGIN: Plugin[ReplicationPolicy] = Plugin(
    "replication policy",
    "tsoffset.replication_policies",
    {
        f"{MIRROR_PACKAGE}DefaultReplicationPolicy": DefaultReplicationPolicy,
        IDENTITY_POLICY: IdentityReplicationPolicy,
    },
    ("configure", "format_remote_topic", "topic_source", "upstream_topic"),
)
GROUP_FILTER_PLUGIN: Plugin[GroupFilter] = Plugin(
    "group filter",
    "tsoffset.group_filters",
    {f"{MIRROR_PACKAGE}DefaultGroupFilter": DefaultGroupFilter},
    ("configure", "should_replicate_group"),
)
TOPIC_FILTER_PLUGIN: Plugin[TopicFilter] = Plugin(
    "topic filter",
    "tsoffset.topic_filters",
    {f"{MIRROR_PACKAGE}DefaultTopicFilter": DefaultTopicFilter},
    ("configure", "should_replicate_topic"),
)


def check_plugin(plugin: Plugin[T], name: str, settings: Mapping[str, str]) -> T | None:
    """As `load_plugin`, but runs no code of a user's class, and returns None for it. Raises
    UnusablePlugin if its package does not exist."""
    if name in plugin.own:
        return load_plugin(plugin, name, settings)
    if _entry_point(plugin, name) is None:
        module_name, _ = _module_and_attribute(plugin, name)
        root = module_name.partition(".")[0]
        try:
            # Only the root: finding a module inside a package imports the package.
            there = find_spec(root)
        except (ImportError, ValueError):
            there = None
        if there is None:
            raise _no_module(plugin, name, root)
    return None


def python_class(plugin: Plugin[T], name: str) -> str | None:
    """The Python class that `name` means, as `module:Class`; None for one of MirrorMaker 2."""
    if name in plugin.own:
        return None
    entry_point = _entry_point(plugin, name)
    return name if entry_point is None else entry_point.value


def load_plugin(plugin: Plugin[T], name: str, settings: Mapping[str, str]) -> T:
    """A configured instance of the class called `name`.

    Raises UnusablePlugin for the class, also for any error that it raises, and InvalidSetting for
    another key.
    """
    make: Callable[[], Any] | None = plugin.own.get(name)
    if make is None:
        make = _users_class(plugin, name)
    try:
        instance = make()
    except Exception as error:
        raise UnusablePlugin(f"cannot be created without arguments: {_error_text(error)}") from None
    try:
        instance.configure(dict(settings))
    except InvalidSetting:
        raise
    except Exception as error:
        raise UnusablePlugin(f"its method configure failed: {_error_text(error)}") from None
    made: T = instance
    return made


def _users_class(plugin: Plugin[T], name: str) -> Callable[[], Any]:
    entry = _entry_point(plugin, name)
    path = ":".join(_module_and_attribute(plugin, name)) if entry is None else entry.value
    module_name, _, attribute = path.partition(":")
    found: Any
    try:
        found = entry.load() if entry else attrgetter(attribute)(import_module(module_name))
    except Exception as error:
        # The module may exist, and import one that does not.
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module_name}.".startswith(f"{missing}."):
            raise _no_module(plugin, name, missing) from None
        raise UnusablePlugin(f"{path} cannot be loaded: {_error_text(error)}") from None
    if not isinstance(found, type):
        raise UnusablePlugin("is not a class")
    lacking = [method for method in plugin.methods if not callable(getattr(found, method, None))]
    if lacking:
        raise UnusablePlugin(f"the class lacks {' and '.join(lacking)}; {_how_to_write(plugin)}")
    return found


def _entry_point(plugin: Plugin[T], name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=plugin.entry_point_group, name=name)), None)


def _module_and_attribute(plugin: Plugin[T], name: str) -> tuple[str, str]:
    module_name, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if not module_name or not attribute:
        raise UnusablePlugin(
            f"is no entry point in {plugin.entry_point_group} and no class"
            f"{_meant(plugin, MIRROR_PACKAGE + name)} {_how_to_write(plugin)}"
        )
    return module_name, attribute


def _no_module(plugin: Plugin[T], name: str, module_name: str) -> UnusablePlugin:
    what = (
        "is a Java class, which tsoffset cannot load"
        if name.startswith(_JAVA_ROOTS)
        else f"there is no Python module {module_name}"
    )
    return UnusablePlugin(f"{what}{_meant(plugin, name)} {_how_to_write(plugin)}")


def _meant(plugin: Plugin[T], name: str) -> str:
    """The link to the next sentence, with the Java name that may be meant."""
    slips = difflib.get_close_matches(name, plugin.own, n=1, cutoff=_SLIP)
    return f". Did you mean `{slips[0]}`? Otherwise" if slips else ";"


def _how_to_write(plugin: Plugin[T]) -> str:
    return (
        f"write the {plugin.noun} as a Python class with the methods"
        f" {', '.join(plugin.methods)} and name it package.module:Class"
    )


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
