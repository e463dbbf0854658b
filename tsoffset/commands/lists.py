"""`tsoffset lists`: change which groups and topics a flow selects, without editing the file."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click
from rich.text import Text

from tsoffset.commands.options import CONFIG, FLOW, OUTPUT, Option, command, flag, only_flow
from tsoffset.errors import TsoffsetError, UsageError
from tsoffset.flow.patterns import compile_list, matches
from tsoffset.group_sync.no_match import did_you_mean, no_match
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import Column, table

if TYPE_CHECKING:
    from tsoffset.config.overrides import Overrides
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings, ServerSettings

_KEYS = ("groups", "groups.exclude", "topics", "topics.exclude")
_OPTIONS: tuple[Option, ...] = tuple(
    click.option(f"--{key.replace('.', '-')}-{verb}", multiple=True, metavar=metavar, help=text)
    for key in _KEYS
    for verb, metavar, text in (
        ("add", "REGEX", f"Add a name or regular expression to `{key}`."),
        ("remove", "ENTRY", f"Remove this entry from `{key}`, wherever it was added."),
    )
)


@dataclass(frozen=True, slots=True)
class ListRow:
    """One list of a flow; its entries are separated by commas, as in a configuration."""

    flow: str
    list: str
    in_effect: str
    configured: str
    added: str
    removed: str


@command(
    "Show or change which groups and topics a flow selects.",
    """\b
Examples:
  tsoffset lists -c mm2.properties
  tsoffset lists -c mm2.properties --flow 'A->B' --groups-add 'billing-.*'
  tsoffset lists -c mm2.properties --flow 'A->B' --topics-exclude-add audit --groups-remove search
  tsoffset lists -c mm2.properties --flow 'A->B' --reset

\b
Exit status:
  0  done
  1  the change is saved, but a running daemon has not applied it
  2  bad usage or configuration""",
    *CONFIG,
    FLOW,
    *_OPTIONS,
    flag("--reset", "Undo all changes, so that only the configuration file applies."),
    *OUTPUT,
)
def lists(
    selection: "Selection",
    output: Output,
    notices: Notices,
    *,
    reset: bool,
    **entries: tuple[str, ...],
) -> int:
    """Show which groups and topics a flow selects, or change the selection.

    Changes are saved in `state.dir`, not in the configuration file, and apply to every command that
    uses the same file. A running `tsoffset run` applies them in its next cycle, and this command
    asks it to confirm that. Warns if an added entry matches nothing on the source. Commits nothing.
    """
    status = 0
    if reset or any(entries.values()):
        selection, status = _change(selection, entries, notices, reset=reset)
    configured = selection.configured()
    rows = [
        _row(selection, configured, flow.name, key) for flow in selection.flows for key in _KEYS
    ]
    output.show(ListRow, rows, partial(_lines, rows))
    return status


def _change(
    selection: "Selection", entries: Mapping[str, Sequence[str]], notices: Notices, *, reset: bool
) -> "tuple[Selection, int]":
    """Save the lists of the one flow selected, and ask the daemon whether it applied them. Returns
    the selection with them, and the exit status. Raises UsageError."""
    from tsoffset.config.overrides import KnownLists, Overrides
    from tsoffset.config.overrides_files import OverridesFiles, seconds_between_looks

    flow = only_flow(selection, "lists")
    directory = selection.settings.state_dir
    if directory is None:
        raise UsageError(
            "changed lists are kept in state.dir, which is not set; set it in the configuration"
        )
    try:
        # A damaged file is an error here: its changes would be lost.
        saved = OverridesFiles(directory).of(flow.name)
        configured = selection.configured().flow(flow.name)
        changed = _changed_lists(Overrides() if reset else saved, entries, configured)
        known = KnownLists({**selection.lists.found, flow.name: changed})
        before = selection.settings.warnings
        selection = selection.with_lists(known, [flow.name])
        OverridesFiles(directory).write(flow.name, changed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    notices.configuration_warnings(
        [one for one in selection.settings.warnings if one not in before]
    )
    _warn_of_no_match(flow, entries, notices)
    deadline = time.monotonic() + 2 * seconds_between_looks(directory)
    server = selection.settings.server
    return selection, _confirm_applied(server, flow.name, changed, notices, deadline)


def _warn_of_no_match(
    flow: "FlowSettings", entries: Mapping[str, Sequence[str]], notices: Notices
) -> None:
    """Warn of added entries that match no group or topic on the source: a mistyped exclusion
    excludes nothing. Entries are not checked if the source cannot be read."""
    from tsoffset.kafka import kafka_cluster

    added = [(key, text) for key in _KEYS for text in entries[f"{key.replace('.', '_')}_add"]]
    if not added:
        return
    alias = flow.source.alias
    with (
        suppress(TsoffsetError),
        notices.progress(f"connecting to {alias}"),
        kafka_cluster(flow.source) as source,
    ):
        listings = source.groups()
        groups = None if listings.failures else listings.groups.keys()
        listed = {"group": groups, "topic": source.topics().keys()}
        for key, text in added:
            noun = "group" if key.startswith("groups") else "topic"
            names = listed[noun]
            pattern = compile_list((text.strip(),))
            if names is not None and not any(matches(pattern, name) for name in names):
                notices.warning(
                    "entry_matches_nothing",
                    f"{no_match(f'{noun} listed by {alias}', text, names)} The entry is saved in"
                    f" `{key}`, in case such a {noun} is created. If it is mistyped, remove it with"
                    f" --{key.replace('.', '-')}-remove.",
                )


def _confirm_applied(
    server: "ServerSettings", flow: str, changed: "Overrides", notices: Notices, deadline: float
) -> int:
    """Ask the daemon at the first listener whether it applies the lists, until the deadline (of the
    monotonic clock): the daemon has to read the file twice. Returns the exit status."""
    # Loads pydantic.
    from tsoffset.server.remotes import NoAnswer, flows_of

    url = next(iter(server.listeners), "").replace("//0.0.0.0:", "//127.0.0.1:")
    wanted = list(changed.in_words())
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


def _changed_lists(
    overrides: "Overrides", entries: Mapping[str, Sequence[str]], configured: "FlowSettings"
) -> "Overrides":
    from tsoffset.config.overrides import ListChange, entry_of

    for key in _KEYS:
        option, name = f"--{key.replace('.', '-')}", key.replace(".", "_")
        change = overrides.lists.get(key, ListChange())
        to_add = [text.strip() for text in entries[f"{name}_add"]]
        for text in map(str.strip, entries[f"{name}_remove"]):
            if text in to_add:
                raise UsageError(f"{option}-add and {option}-remove {text}: choose one of them")
            present = (*configured.lists[key], *change.added)
            if text not in present:
                raise UsageError(
                    f"{option}-remove {text}: `{key}` of flow {configured.name} "
                    f"has no entry `{text}`.{did_you_mean(text, present)}"
                )
            change = change.remove(text, configured.lists[key])
        for text in to_add:
            try:
                change = change.add(entry_of(text))
            except ValueError as error:
                raise UsageError(f"{option}-add {text}: {error}") from None
        overrides = overrides.with_change(key, change)
    return overrides


def _row(selection: "Selection", configured: "Selection", flow: str, key: str) -> ListRow:
    from tsoffset.config.overrides import ListChange, Overrides

    change = selection.configuration.overrides.get(flow, Overrides()).lists.get(key, ListChange())
    in_effect, written = selection.flow(flow).lists[key], configured.flow(flow).lists[key]
    return ListRow(flow, key, *map(",".join, (in_effect, written, change.added, change.removed)))


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
