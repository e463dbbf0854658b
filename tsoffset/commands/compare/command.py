"""`tsoffset compare` as the command line calls it."""

from functools import partial

import structlog

from tsoffset.commands.compare.flow_comparison import Compared, compare
from tsoffset.commands.compare.judgement import ComparedPair
from tsoffset.commands.compare.report import comparison_lines
from tsoffset.commands.compare.totals import Totals
from tsoffset.commands.open_flow import Connect
from tsoffset.config.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress

log = structlog.get_logger(__name__)


def run_compare(
    selection: Selection,
    output: Output,
    notices: Notices,
    *,
    connect: Connect = KafkaCluster,
) -> int:
    """Compare the flows, print their pairs and totals, and return the exit status."""
    statuses = [0]
    with progress("comparing", wanted=notices.format is LogFormat.CONSOLE) as report:
        found = list(compare(selection.flows, connect, settings=selection.settings, report=report))
    for compared in found:
        for warning in compared.warnings:
            notices.warning("comparison_warning", warning)
        _print(compared, output, notices)
        statuses.append(compared.exit_status)
    return max(statuses)


def _print(compared: Compared, output: Output, notices: Notices) -> None:
    """The pairs on standard output; the totals below the table, else for a person alone."""
    totals = Totals.of(compared.pairs)
    log.info("comparison_finished", flow=compared.flow, **totals.in_fields())
    output.show(ComparedPair, compared.pairs, partial(comparison_lines, compared))
    if output.format is not Format.TABLE:
        for name, words in totals.in_words().items():
            notices.note(f"{compared.flow}: {name}: {words}")
