"""`tsoffset export`: translated offsets in the form that Kafka's own tool takes.

`kafka-consumer-groups --reset-offsets --from-file` (ConsumerGroupCommand) reads lines
`group,topic,partition,offset`, or `topic,partition,offset` where one `--group` is given; neither
has a header. An operator can use it to move groups where tsoffset may not commit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import click
import structlog

from tsoffset.commands.cycles import flow_cycles
from tsoffset.commands.options import EXIT_STATUS, SELECTION, STATE, command, select
from tsoffset.commands.plan_sync import exit_status
from tsoffset.commands.scope import require_match
from tsoffset.errors import CycleFailed, UsageError
from tsoffset.flow.narrowing import whole_name
from tsoffset.model import OutcomeKind, Row
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import IN_PLACE, Format, Output, by_name, csv_line, plural

log = structlog.get_logger(__name__)

_FAILURES_NAMED = 5
_SHARE_GROUP = "share group"


@command(
    "Write translated offsets as CSV for kafka-consumer-groups.",
    f"""\b
Examples:
  tsoffset export -c mm2.properties > offsets.csv
  kafka-consumer-groups --bootstrap-server b1:9092 --reset-offsets --from-file offsets.csv \\
      --group billing --group shipping --dry-run
  tsoffset export -c mm2.properties --group billing > billing.csv

{EXIT_STATUS}""",
    *SELECTION,
    click.option(
        "--group",
        metavar="GROUP",
        help="Only this group (full name), in the CSV form for one group.",
    ),
    STATE,
    selects=False,
    writes_file=True,
    format=Format.CSV,
)
def export(
    output: Output, notices: Notices, *, group: str | None, state: str | None, **options: Any
) -> int:
    """Write translated offsets as CSV for kafka-consumer-groups.

    Writes the offsets that `sync` would commit, in the format that kafka-consumer-groups
    --reset-offsets --from-file reads: `group,topic,partition,offset` with target topic names and no
    header, or with --group `topic,partition,offset`. Leaves out all rows that `sync` would skip:
    for example offsets below the group's committed offset on the target, and groups with active
    members on the target. Commits nothing.
    """
    if group is not None and options["groups"] is not None:
        raise UsageError(
            "export: --group and --groups exclude each other; --group takes one full"
            " name, --groups a regular expression"
        )
    if group is not None:
        options["groups"] = whole_name(group)
    from tsoffset.terminal.row_columns import tally_of

    selection = select(options, notices)
    targets = sorted({flow.target.alias for flow in selection.flows})
    if len(targets) > 1:
        raise UsageError(
            f"export: the flows have the targets {' and '.join(targets)}, but a file is for one"
            " cluster; choose one flow with --flow A->B"
        )
    unreachable = require_match(selection, notices)
    statuses = [0]
    with flow_cycles(
        selection, notices, only_plan=True, state=state, unreachable=unreachable
    ) as cycles_of:
        for flow in selection.flows:
            try:
                result = cycles_of(flow)(commit=False)
            except CycleFailed as error:
                notices.error(error, trace=False)
                statuses.append(error.exit_status)
                continue
            rows = [(row, left_out(row, result.share_groups)) for row in result.rows]
            output.write_encoded(None, lines(rows, with_group=group is None))
            output.flush()
            _report(flow.name, flow.target.alias, rows, notices)
            tally = tally_of(result.rows.table)
            statuses.append(exit_status(tally, unreachable=result.unreachable))
    return max(statuses)


def left_out(row: Row, share_groups: Collection[str] = ()) -> str | None:
    """Why a planned row is not exported, in a word or two; None if it is.

    Kafka's tool also sets offsets backwards. So the file has no offset below the committed one, and
    no group with members on the target, which the tool would refuse. The tool cannot set share
    groups from a file: it would create a consumer group of that name.
    """
    if row.outcome not in IN_PLACE or row.target_offset is None:
        return row.reason or row.outcome
    if row.group in share_groups:
        return _SHARE_GROUP
    if row.target_offset < (row.current_target_offset or 0):
        # Only control records lie between, so nothing is missed.
        return "already committed"
    # Kafka's tool (4.3) splits the file at line ends first, even within quotes.
    return "line end in the group's name" if "\n" in (row.group or "") else None


def lines(rows: Iterable[tuple[Row, str | None]], *, with_group: bool) -> Iterator[str]:
    for row, why_not in rows:
        if why_not is None:
            target = (row.target_topic, row.partition, row.target_offset)
            yield csv_line((row.group, *target) if with_group else target)


def _report(
    flow: str, target: str, rows: Sequence[tuple[Row, str | None]], notices: Notices
) -> None:
    reasons = Counter(why_not for _, why_not in rows if why_not is not None)
    groups = len({row.group for row, why_not in rows if why_not is None})
    offsets = len(rows) - reasons.total()
    summary = f"{flow}: {plural(offsets, 'offset')} of {plural(groups, 'group')} for {target}"
    if reasons:
        left = f"{plural(reasons.total(), 'row')} not exported{by_name(reasons)}"
        summary += f"; {left}, see `tsoffset plan`"
    failed = dict.fromkeys(row.message for row, _ in rows if row.outcome == OutcomeKind.FAILED)
    for message in list(failed)[:_FAILURES_NAMED]:
        notices.warning("row_failed", f"{flow}: {message}")
    if shared := reasons[_SHARE_GROUP]:
        notices.warning(
            "share_groups_not_exported",
            f"{flow}: {plural(shared, 'row')} of share groups not exported: no tool of Kafka sets"
            " their offsets from a file; move these groups with `tsoffset sync`",
        )
    log.info("export_finished", flow=flow, offsets=offsets, groups=groups, left_out=dict(reasons))
    notices.note(summary)
