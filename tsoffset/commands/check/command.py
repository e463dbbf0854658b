"""`tsoffset check` as the command line calls it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.commands.check.flow_check import check
from tsoffset.commands.check.report import finding_lines
from tsoffset.commands.selection import Selection
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.progress import progress


def run_check(
    path: Path,
    flows: Sequence[str],
    groups: str | None,
    topics: str | None,
    output: Output,
    notices: Notices,
) -> int:
    """Check the flows, print the findings and return the exit status."""
    selection = Selection.of(path, flows, groups, topics)
    with progress("checking", wanted=notices.format is LogFormat.CONSOLE) as report:
        checked = check(
            selection.flows, KafkaCluster, all_flows=selection.settings.flows, report=report
        )
    warnings = tuple(
        Finding(Severity.WARNING, None, None, "configuration", warning)
        for warning in selection.settings.warnings
    )
    findings = warnings + checked.findings
    output.show(Finding, findings, partial(finding_lines, findings))
    return checked.exit_status
