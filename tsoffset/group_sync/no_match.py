"""What to say if a name or pattern matches no group or topic: the reason, and similar names."""

import difflib
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tsoffset.flow.narrowing import expression, literal_name
from tsoffset.flow.patterns import matches
from tsoffset.model import Side
from tsoffset.terminal.output import plural

if TYPE_CHECKING:
    from tsoffset.cluster import Cluster
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import ClusterSettings, FlowSettings

_SHOWN = 3


def no_match(noun: str, wanted: str, names: Collection[str]) -> str:
    return f"No {noun} matches `{wanted}`.{did_you_mean(wanted, names)}"


def did_you_mean(wanted: str, names: Collection[str]) -> str:
    """A question with the most similar names, to follow a sentence; empty if there are none."""
    by_lower = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(wanted.lower(), by_lower, n=_SHOWN)
    close += [name for name in by_lower if wanted.lower() in name and name not in close]
    shown = " or ".join(f"`{by_lower[name]}`" for name in close[:_SHOWN])
    return f" Did you mean {shown}?" if shown and wanted else ""


def why_nothing_matches(
    selection: "Selection",
    connect: "Callable[[ClusterSettings], AbstractContextManager[Cluster]]",
    side: Side = Side.SOURCE,
) -> tuple[str, bool] | None:
    """Why the selection matches no group on one side of any of its flows, or no topic on their
    sources, in sentences; and whether any of the clusters lists groups. None if there is a match,
    or may be one, since a cluster does not list all of its groups. Raises ClusterUnreachable."""
    reasons, has_groups = [], False
    for flow in selection.flows:
        settings = flow.source if side is Side.SOURCE else flow.target
        narrows_topics = side is Side.SOURCE and selection.narrowing.topics is not None
        with connect(settings) as cluster:
            listings = cluster.groups()
            topics = tuple(cluster.topics()) if narrows_topics else None
        why = _why_no_match(selection, flow, settings.alias, listings.groups, topics)
        if listings.failures or why is None:
            return None
        reasons.append(why)
        has_groups = has_groups or bool(listings.groups)
    return (" ".join(dict.fromkeys(reasons)), has_groups) if reasons else None


def _why_no_match(
    selection: "Selection",
    flow: "FlowSettings",
    cluster: str,
    groups: Collection[str],
    topics: Collection[str] | None,
) -> str | None:
    """Why the selection matches none of the groups or topics that a cluster lists, in a sentence;
    None if it matches some. `topics` is None if they are not narrowed."""
    from tsoffset.cycle.source_commits import renamings_of, selected_groups

    if not groups:
        return (
            f"Cluster {cluster} shows this user no consumer groups: check its addresses, and that"
            " this user has DESCRIBE on its groups."
        )
    # As the configuration has it, without --groups and --topics.
    whole = selection.settings.flow(flow.name)
    selected, broken = selected_groups(flow, groups)
    if not (selected or broken):
        passing, _ = selected_groups(whole, groups)
        return _no_name("group", selection.narrowing.groups, cluster, groups, passing, whole)
    if topics is None:
        return None
    renamings, failed = renamings_of(flow, topics)
    if failed or any(renamings.values()):
        return None
    of_whole, _ = renamings_of(whole, topics)
    passing = [topic for topic, renaming in of_whole.items() if renaming is not None]
    return _no_name("topic", selection.narrowing.topics, cluster, topics, passing, whole)


def _no_name(
    noun: str,
    wanted: str | None,
    cluster: str,
    every: Collection[str],
    passing: Sequence[str],
    flow: "FlowSettings",
) -> str:
    lists = f"`{noun}s` and `{noun}s.exclude` of flow {flow.name}"
    if wanted is not None:
        pattern = expression(f"--{noun}s", wanted)
        wanted = literal_name(wanted) or wanted
        left_out = sorted(name for name in every if matches(pattern, name))
        if not left_out:
            return no_match(f"{noun} listed by {cluster}", wanted, passing)
        shown = " and ".join(f"`{name}`" for name in left_out[:_SHOWN])
        return f"No {noun} matches `{wanted}`: {lists} exclude {shown}."
    near = "".join(did_you_mean(entry, every) for entry in flow.lists.get(f"{noun}s", ()))
    return (
        f"Cluster {cluster} has {plural(len(every), noun)}, but {lists} select none of them.{near}"
    )
