"""`tsoffset lists`: which groups and topics a flow takes, changed without editing the file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text

from tsoffset.config.overrides import LIST_KEYS, KnownLists, ListChange, Overrides, entry_of
from tsoffset.config.selection import Selection
from tsoffset.daemon.overrides_files import OverridesFiles
from tsoffset.errors import UsageError
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import Column, table


@dataclass(frozen=True, slots=True)
class ListRow:
    """One list of a flow, its entries with commas between, as a configuration has them."""

    flow: str
    list: str
    in_effect: str
    configured: str
    added: str
    removed: str


def run_lists(
    selection: Selection,
    changes: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    output: Output,
    notices: Notices,
    *,
    reset: bool,
) -> int:
    """Add to and take from the lists of the one flow selected, and print those of all selected.

    `changes` has for each list the entries to add and those to take out; with `reset` all changes
    made before are undone first. Raises UsageError.
    """
    directory = selection.settings.state_dir
    if reset or any(added or removed for added, removed in changes.values()):
        if len(selection.flows) != 1:
            raise UsageError("several flows are enabled; say which one with --flow A->B")
        if directory is None:
            raise UsageError("changed lists are kept in state.dir; set it in the configuration")
        (flow,) = selection.flows
        try:
            # What a damaged file has would be lost.
            before = OverridesFiles(directory).of(flow.name)
            changed = _changed(Overrides() if reset else before, changes)
            lists = KnownLists({**selection.lists.found, flow.name: changed})
            selection = selection.with_lists(lists, [flow.name])
            OverridesFiles(directory).write(flow.name, changed)
        except ValueError as error:
            raise UsageError(str(error)) from None
        notices.note(f"{flow.name}: taken up by `tsoffset run` with its next cycle")
    configured = selection.configured()
    rows = [
        _row(selection, configured, flow.name, key) for flow in selection.flows for key in LIST_KEYS
    ]
    output.show(ListRow, rows, partial(_lines, rows))
    return 0


def _changed(
    overrides: Overrides, changes: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> Overrides:
    for key, (added, removed) in changes.items():
        change = overrides.lists.get(key, ListChange())
        for text in removed:
            change = change.remove(text.strip())
        for text in added:
            try:
                change = change.add(entry_of(text))
            except ValueError as error:
                raise UsageError(f"--{key.replace('.', '-')}-add {text}: {error}") from None
        overrides = overrides.changed(key, change)
    return overrides


def _row(selection: Selection, configured: Selection, flow: str, key: str) -> ListRow:
    change = selection.configuration.overrides.get(flow, Overrides()).lists.get(key, ListChange())
    return ListRow(
        flow,
        key,
        *map(
            ",".join,
            (
                selection.flow(flow).lists[key],
                configured.flow(flow).lists[key],
                change.added,
                change.removed,
            ),
        ),
    )


def _lines(rows: Sequence[ListRow], width: int | None) -> Iterator[Text]:
    for flow in dict.fromkeys(row.flow for row in rows):
        yield head(f"flow {flow}")
        yield from table(_COLUMNS, [row for row in rows if row.flow == flow], width)


_COLUMNS: tuple[Column[ListRow], ...] = (
    Column("LIST", lambda row: row.list),
    Column("IN EFFECT", lambda row: row.in_effect, elastic=True),
    Column("CONFIGURED", lambda row: row.configured, elastic=True, drops=1),
    Column("ADDED", lambda row: row.added or None, elastic=True),
    Column("REMOVED", lambda row: row.removed or None, elastic=True),
)
