"""`tsoffset explain` as the command line calls it."""

from tsoffset.cluster import Connect
from tsoffset.commands.explain.flow_explanation import Wanted, explain
from tsoffset.commands.explain.report import explanation_lines
from tsoffset.config.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress


def run_explain(
    selection: Selection,
    wanted: Wanted,
    output: Output,
    notices: Notices,
    *,
    connect: Connect = KafkaCluster,
) -> int:
    """Explain the group in the flows chosen, print it and return the exit status.

    Raises UsageError.
    """
    with progress("explaining", wanted=notices.format is LogFormat.CONSOLE) as report:
        explained = explain(
            wanted, selection.flows, connect, settings=selection.settings, report=report
        )
    for warning in explained.warnings:
        notices.warning("cycle_warning", warning)
    for sentence in explained.left_out:
        notices.note(sentence)
    if output.format is Format.TABLE:
        output.lines(explanation_lines(explained.explanations, output.width))
    else:
        for one in explained.explanations:
            for statement in one.statements():
                output.records(type(statement), [statement])
    output.flush()
    return explained.exit_status
