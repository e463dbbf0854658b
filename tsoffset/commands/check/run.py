"""`tsoffset check` as the command line calls it."""

from functools import partial

from tsoffset.cluster import Connect
from tsoffset.commands.check.findings import Finding, Scope
from tsoffset.commands.check.flow_check import Checked, check
from tsoffset.commands.check.machine import machine
from tsoffset.commands.check.report import finding_lines
from tsoffset.commands.scope import on_cluster, require_match
from tsoffset.config.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.progress import progress


def run_check(
    selection: Selection, output: Output, notices: Notices, connect: Connect = KafkaCluster
) -> int:
    """Check the flows, print the findings and return the exit status. Raises UsageError where no
    group or topic matches: after the findings, which may say that this user sees no names."""
    with progress("checking", wanted=notices.format is LogFormat.CONSOLE) as report:
        checked = check(selection.flows, connect, all_flows=selection.settings.flows, report=report)
    warnings = tuple(
        Scope(None).warning("configuration", warning) for warning in selection.settings.warnings
    )
    here = tuple(machine(selection.settings.spark))
    findings = warnings + here + checked.findings
    output.show(Finding, findings, partial(finding_lines, findings))
    if not checked.unreachable:
        require_match(selection, notices, on_cluster(selection.narrowing, connect))
    return Checked(findings, checked.unreachable).exit_status
