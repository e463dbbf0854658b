"""`tsoffset lists`: which groups and topics a flow takes, changed without editing the file."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text

from tsoffset.commands.scope import did_you_mean
from tsoffset.config.overrides import LIST_KEYS, KnownLists, ListChange, Overrides, entry_of
from tsoffset.config.overrides_files import OverridesFiles, seconds_between_looks
from tsoffset.config.selection import Selection
from tsoffset.errors import UsageError
from tsoffset.flow.settings import FlowSettings, ServerSettings
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
    """Add to and take from the lists of the one flow selected, print those of all selected, and
    return the exit status: 1 where a running daemon has not taken the change up.

    `changes` has for each list the entries to add and those to take out; with `reset` all changes
    made before are undone first. Raises UsageError.
    """
    directory = selection.settings.state_dir
    status = 0
    if reset or any(added or removed for added, removed in changes.values()):
        if len(selection.flows) != 1:
            raise UsageError("several flows are enabled; choose one with --flow A->B")
        if directory is None:
            raise UsageError(
                "changed lists are kept in state.dir, which is not set; set it in the configuration"
            )
        (flow,) = selection.flows
        try:
            # What a damaged file has would be lost.
            before = OverridesFiles(directory).of(flow.name)
            changed = _changed(
                Overrides() if reset else before, changes, selection.configured().flow(flow.name)
            )
            lists = KnownLists({**selection.lists.found, flow.name: changed})
            selection = selection.with_lists(lists, [flow.name])
            OverridesFiles(directory).write(flow.name, changed)
        except ValueError as error:
            raise UsageError(str(error)) from None
        server = selection.settings.server
        status = _tell_whether_taken_up(
            server, flow.name, changed, notices, seconds_between_looks(directory)
        )
    configured = selection.configured()
    rows = [
        _row(selection, configured, flow.name, key) for flow in selection.flows for key in LIST_KEYS
    ]
    output.show(ListRow, rows, partial(_lines, rows))
    return status


def _tell_whether_taken_up(
    server: ServerSettings, flow: str, changed: Overrides, notices: Notices, look_seconds: float
) -> int:
    """Ask the daemon at the first listener, for as long as it needs to look at the file twice; the
    exit status."""
    # Loads pydantic, which showing the lists has no need of.
    from tsoffset.server.remotes import NoAnswer, flows_of

    url = next(iter(server.listeners), "").replace("//0.0.0.0:", "//127.0.0.1:")
    wanted, deadline = list(changed.in_words()), time.monotonic() + 2 * look_seconds
    while True:
        try:
            if not url:
                raise NoAnswer("listeners is empty")
            answer = flows_of(url.replace("//[::]:", "//[::1]:"), server.read_token)
        except NoAnswer as error:
            notices.note(
                f"{flow}: saved. It is not known whether a `tsoffset run` has applied the change,"
                f" because none answers at {url or 'any address'} ({error}): check its status page"
                " or log."
            )
            return 0
        lists = [one.lists for one in answer.flows if one.name == flow]
        host = answer.instance.host
        if wanted in lists:
            notices.note(
                f"{flow}: saved. The `tsoffset run` on {host} applies the change in its next cycle."
            )
            return 0
        if time.monotonic() > deadline:
            notices.warning(
                "lists_not_taken_up",
                f"flow {flow}: saved, but the `tsoffset run` on {host} has not applied the change:"
                " check that it uses this configuration with the same state.dir, and that its user"
                " can read the file there. Its log has the cause as `lists_unknown` or"
                " `configuration_rejected`.",
            )
            return 1
        time.sleep(0.1)


def _changed(
    overrides: Overrides,
    changes: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    configured: FlowSettings,
) -> Overrides:
    for key, (added, removed) in changes.items():
        change = overrides.lists.get(key, ListChange())
        for text in map(str.strip, removed):
            there = (*configured.lists[key], *change.added)
            if text not in there:
                raise UsageError(
                    f"--{key.replace('.', '-')}-remove {text}: `{key}` of flow {configured.name} "
                    f"has no entry `{text}`.{did_you_mean(text, there)}"
                )
            change = change.remove(text)
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
