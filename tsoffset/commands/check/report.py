"""Runs `tsoffset check`, and prints its findings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from rich.text import Text

from tsoffset.cluster import Connect
from tsoffset.commands.check.clusters import machine
from tsoffset.commands.check.findings import Finding, Scope, Severity
from tsoffset.commands.check.flow_check import CheckResult, check
from tsoffset.commands.options import kafka_cluster
from tsoffset.commands.scope import on_cluster, require_match
from tsoffset.config.selection import Selection
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, counted
from tsoffset.terminal.report import Item, head, items, total

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_LABEL = max(map(len, Severity)) + 2


def finding_lines(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    """The findings by flow, each with its remedy, and a line with their number."""
    for flow, members in groupby(findings, key=lambda finding: finding.flow):
        yield head("configuration" if flow is None else f"flow {flow}")
        yield from items([_item(finding) for finding in members], width, below=_LABEL)
        yield Text()
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    yield from total(
        f"check: {counted(errors, 'error')}, {counted(warnings, 'warning')}, "
        f"{counts[Severity.OK]} ok",
        width,
    )


def _item(finding: Finding) -> Item:
    label = Text(finding.severity.ljust(_LABEL), _STYLES[finding.severity])
    cluster = "" if finding.cluster is None else f"{finding.cluster}: "
    remedy = [] if finding.remedy is None else [f"-> {finding.remedy}"]
    return Item(label, cluster + finding.subject, [finding.finding, *remedy])


def run_check(
    selection: Selection, output: Output, notices: Notices, connect: Connect = kafka_cluster
) -> int:
    """Check the flows, print the findings and return the exit status. Raises UsageError if no
    group or topic matches: after the findings, which may explain why this user sees no names."""
    flows = notices.with_progress("checking", selection.flows)
    result = check(flows, connect, all_flows=selection.settings.flows)
    warnings = tuple(
        Scope(None).warning("configuration", warning) for warning in selection.settings.warnings
    )
    findings = warnings + tuple(machine(selection.settings.spark)) + result.findings
    output.show(Finding, findings, partial(finding_lines, findings))
    if not result.unreachable:
        require_match(selection, notices, on_cluster(selection.narrowing, connect))
    return CheckResult(findings, result.unreachable).exit_status
