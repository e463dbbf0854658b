"""The cache of a flow between cycles, and the file in which the next process finds it.

There is one file per flow: a line with the version and a digest of the rest, then an Arrow stream.
A file that is incomplete, or of another version or program, is ignored: the next cycle then
computes everything from the clusters. The file holds names, offsets and times, but no contents of
records.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Self
from urllib.parse import quote

import polars as pl
import pyarrow as pa

from tsoffset.cycle.source_commits import renamings_of, selected_groups
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, reverse_of
from tsoffset.group_sync.arrow_tables import arrow_schema, as_arrow, as_frame, from_bytes, to_bytes
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.tables import (
    CACHE,
    GROUP_PARTITION,
    PARTITION,
    PARTITIONS,
    REVERSE_COMMITS,
    empty,
    select,
    semi_join,
)
from tsoffset.model import GroupListing, GroupListings, GroupType
from tsoffset.stores import UNREACHABLE, Store, in_words, store_at

VERSION = 5
_MAGIC = b"tsoffset state"
_KEPT = pa.schema([("pairs", pa.binary()), ("partitions", pa.binary())])
_BINDING, _ROWS = b"binding", b"rows"
_PAIRS, _PARTITIONS = arrow_schema(CACHE), arrow_schema(PARTITIONS)


@dataclass(slots=True)
class FlowCache(CachedTables):
    """What the driver caches of a flow between cycles; all of it may be lost at any time.

    `listing` are the source's groups as listed at `listed_at` (seconds of a monotonic clock; None:
    they have to be listed again), see `keep_listing`. `rows` is the number of rows of the last
    cycle. `binding` identifies the clusters and settings that all this is for. `reverse` is read
    before each cycle, see `reverse_commits`.
    """

    listing: GroupListings | None = None
    listed_at: float | None = None
    rows: int | None = None
    binding: str | None = None
    reverse: pl.DataFrame | None = None

    def bind(self, binding: str) -> bool:
        """Forget everything if it is for other clusters or settings; False then. `reverse` is kept:
        it belongs to another flow, and only keeps groups from being moved."""
        kept = self.binding in (None, binding)
        if not kept:
            self.learn(CachedTables())
            self.listing = self.rows = None
        self.binding = binding
        return kept

    def keep_listing(self, listing: GroupListings, now: float) -> GroupListings:
        """Keep the source's groups as just listed, and return them.

        The groups with cached translations are added; to an incomplete listing, all groups of the
        last one. A group that no broker lists may still exist: a new coordinator that has not begun
        to load its groups lists none of them, and no error. The cycle reads these by name; such a
        group then fails by name, or has no offsets because it was deleted. A group known from the
        cache alone is read as a consumer group: if it is a share group, it has no row.
        """
        known = {} if self.listing is None else self.listing.groups
        cached = self.pairs["group"].unique().to_list()
        groups = {name: GroupListing(name, GroupType.UNKNOWN, None) for name in cached}
        groups |= {name: one for name, one in known.items() if listing.failures or name in groups}
        listing = replace(listing, groups={**groups, **listing.groups})
        self.listing, self.listed_at = listing, now
        return listing


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file of one flow in a directory: a path of this machine, or a URI.

    A cycle narrowed to some groups or topics has its settings in `only`. It reads what the file has
    for the groups that these settings select, and never writes the file, because it knows nothing
    of the other groups. A file that cannot be read or written causes a warning and a cold cycle.
    """

    directory: str | Path = field(repr=False)
    flow: str
    only: FlowSettings | None = None

    @classmethod
    def of(cls, directory: str, flow: FlowSettings, narrowing: Narrowing) -> Self:
        """The file of a flow whose settings already have this narrowing."""
        return cls(directory, flow.name, None if narrowing == Narrowing() else flow)

    @property
    def path(self) -> Path | str:
        """Named for the flow; without the credentials that a URI may have."""
        return self._store.path(self._name)

    @property
    def _store(self) -> Store:
        return store_at(self.directory)

    @property
    def _name(self) -> str:
        return f"{quote(self.flow, safe='')}.state"

    def load(self) -> tuple[FlowCache, str | None]:
        """The content of the file, and a warning if the file exists and cannot be used."""
        try:
            try:
                found = _flow_cache(self._store.read(self._name))
            except _Unusable:
                # A store is asked for the length of an object before it is asked for the object,
                # which another process may replace in between.
                found = _flow_cache(self._store.read(self._name))
            return found if self.only is None else _of_groups(found, self.only), None
        except FileNotFoundError:
            return FlowCache(), None
        except _Unusable as error:
            why = f"{error}; it will be replaced"
        except UNREACHABLE as error:
            why = f"{in_words(self._store, error)}; check that this user can reach and read it"
        return FlowCache(), (
            f"read state, flow {self.flow}: {self.path}: {why}; without it, every offset is "
            "translated again, and a flow in the other direction may undo the reset of a group"
        )

    def save(self, cache: FlowCache) -> str | None:
        """Replace the content of the file atomically; returns a warning if that failed. Nothing is
        written if the content is the same, or after a narrowed cycle."""
        if self.only is not None:
            return None
        head, stream = _content(cache)
        try:
            self._store.write(self._name, head + stream, len(head))
        except UNREACHABLE as error:
            return (
                f"write state, flow {self.flow}: {self.path}: {in_words(self._store, error)}; the "
                "next process will translate every offset again, and a flow in the other direction "
                "does not see what this flow commits, so it may undo the reset of a group: free "
                "disk space, or check that this user can reach and write it"
            )
        return None


def reverse_commits(
    directory: str | None,
    flow: FlowSettings,
    flows: Iterable[FlowSettings],
    before: pl.DataFrame | None,
) -> pl.DataFrame | None:
    """REVERSE_COMMITS, from the state of the flow in the other direction: empty without a state,
    None without such a flow. `before` are those of the last cycle: they are used once more if the
    state cannot be read now."""
    reverse = reverse_of(flow, flows)
    if reverse is None:
        return None
    if directory is None:
        return empty(REVERSE_COMMITS)
    cache, warning = StateFile(directory, reverse.name).load()
    if warning is not None:
        return empty(REVERSE_COMMITS) if before is None else before
    pairs = cache.pairs
    renamings, _ = renamings_of(reverse, pairs["source_topic"].unique().to_list())
    names = {topic: renaming.topic for topic, renaming in renamings.items() if renaming}
    topic = pl.col("source_topic").replace_strict(names, default=None, return_dtype=pl.String)
    found = pairs.rename(
        {f"last_{name}": f"reverse_{name}" for name in ("source", "target", "committed")}
    )
    found = found.with_columns(source_topic=topic)
    found = select(found, REVERSE_COMMITS).drop_nulls(["source_topic", "reverse_target"])
    return found.unique(GROUP_PARTITION)


class _Unusable(Exception):
    """The file's content cannot be used; the text says why."""


def _of_groups(cache: FlowCache, only: FlowSettings) -> FlowCache:
    """What is cached of the groups that these settings select. The number of their rows is not
    known."""
    pairs, partitions = cache.pairs, cache.partitions
    names, _ = selected_groups(only, pairs["group"].unique().to_list())
    pairs = pairs.filter(pl.col("group").is_in(names))
    partitions = semi_join(partitions, pairs, PARTITION)
    return FlowCache(pairs, partitions, binding=cache.binding)


def _content(cache: FlowCache) -> tuple[bytes, bytes]:
    """The first line of a file, and what follows it."""
    kept = pa.table(
        {
            "pairs": [to_bytes(as_arrow(cache.pairs, _PAIRS))],
            "partitions": [to_bytes(as_arrow(cache.partitions, _PARTITIONS))],
        },
        schema=_KEPT,
    )
    facts = {
        _BINDING: cache.binding or "",
        _ROWS: "" if cache.rows is None else str(cache.rows),
    }
    stream = to_bytes(kept.replace_schema_metadata(facts))
    return b"%s %d %s\n" % (_MAGIC, VERSION, _digest(stream)), stream


def _flow_cache(content: bytes) -> FlowCache:
    line, _, stream = content.partition(b"\n")
    if not line.startswith(_MAGIC + b" "):
        raise _Unusable("it is not a state file of tsoffset")
    version, _, digest = line.removeprefix(_MAGIC + b" ").partition(b" ")
    if version != b"%d" % VERSION:
        raise _Unusable("it was written by another version of tsoffset")
    # Checked before the content is parsed: a damaged offset would pass as a proven one.
    if digest != _digest(stream):
        raise _Unusable("it is damaged")
    try:
        kept = from_bytes(stream)
        facts = kept.schema.metadata
        pairs, partitions = (from_bytes(column[0].as_py()) for column in kept.columns)
        rows = facts[_ROWS]
        if pairs.schema != _PAIRS or partitions.schema != _PARTITIONS:
            raise _Unusable("its tables are not as expected")
        return FlowCache(
            pairs=as_frame(pairs, CACHE),
            partitions=as_frame(partitions, PARTITIONS),
            rows=int(rows) if rows else None,
            binding=facts[_BINDING].decode() or None,
        )
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError) as error:
        raise _Unusable(f"it cannot be read ({type(error).__name__})") from error


def _digest(stream: bytes) -> bytes:
    return blake2b(stream, digest_size=16).hexdigest().encode()
