"""`tsoffset check` as the command line calls it."""

from tsoffset.commands.check.findings import Finding, Scope
from tsoffset.commands.check.flow_check import Checked, check
from tsoffset.commands.check.report import finding_lines
from tsoffset.commands.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress


def run_check(selection: Selection, output: Output, notices: Notices) -> int:
    """Check the flows, print the findings and return the exit status."""
    with progress("checking", wanted=notices.format is LogFormat.CONSOLE) as report:
        checked = check(
            selection.flows, KafkaCluster, all_flows=selection.settings.flows, report=report
        )
    warnings = tuple(
        Scope(None).warning("configuration", warning) for warning in selection.settings.warnings
    )
    _print(Checked(warnings + checked.findings, checked.unreachable), output)
    return checked.exit_status


def _print(checked: Checked, output: Output) -> None:
    if output.format is Format.TABLE:
        output.lines(finding_lines(checked.findings, output.width))
    else:
        output.records(Finding, checked.findings)
    output.flush()
