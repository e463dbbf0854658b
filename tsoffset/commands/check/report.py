"""The findings of `check` for a person."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.terminal.output import counted
from tsoffset.terminal.tables import elided, printable, wrapped

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_WORD = max(len(severity.value) for severity in Severity) + 2
_SUBJECT = 36
# A finding stands beside its subject only where it has this much room.
_ROOM = 60


def finding_lines(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    """The findings under their flows, each with its remedy, and a line that counts them."""
    for flow, members in groupby(findings, key=lambda finding: finding.flow):
        yield Text("configuration" if flow is None else f"flow {flow}", "bold")
        yield from _of_flow(list(members), width)
        yield Text()
    counts = Counter(finding.severity for finding in findings)
    yield Text(
        f"check: {counted(counts[Severity.ERROR], 'error')}, "
        f"{counted(counts[Severity.WARNING], 'warning')}, {counts[Severity.OK]} ok",
        "bold",
    )


def _of_flow(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    places = [_place(finding) for finding in findings]
    column = max(map(cell_len, places))
    if width is not None:
        column = min(column, _SUBJECT)
    indent = " " * (_WORD + column + 2)
    beside = width is None or width - len(indent) >= _ROOM
    for finding, place in zip(findings, places, strict=True):
        head = Text(finding.severity.value.ljust(_WORD), _STYLES[finding.severity])
        shown = place if width is None or not beside else elided(place, column)
        head.append(shown, "" if beside else "bold")
        body = list(_body(finding, width, indent if beside else " " * _WORD))
        if beside:
            first = body.pop(0)
            head.append(" " * (len(indent) - _WORD - cell_len(shown)))
            head.append(first.plain.lstrip())
        yield head
        yield from body


def _body(finding: Finding, width: int | None, indent: str) -> Iterable[Text]:
    yield from wrapped(printable(finding.finding), width, indent)
    if finding.remedy is not None:
        yield from wrapped(f"-> {printable(finding.remedy)}", width, indent)


def _place(finding: Finding) -> str:
    subject = printable(finding.subject)
    return subject if finding.cluster is None else f"{printable(finding.cluster)}: {subject}"
