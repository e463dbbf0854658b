"""The findings of `check` for a person."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.terminal.output import counted
from tsoffset.terminal.report import Item, head, items, total

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_LABEL = max(map(len, Severity)) + 2


def finding_lines(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    """The findings under their flows, each with its remedy, and a line that counts them."""
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
