"""A finding of `check`: a fact about a flow or a cluster, how bad it is, what to do."""

from dataclasses import dataclass
from enum import StrEnum

from tsoffset.model import Failed


class Severity(StrEnum):
    """How bad a finding is: `error` means that something will not be synced as configured."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `flow` and `cluster` are None if it concerns all of them. `subject` is what was
    checked, `remedy` the next step (None: nothing to do)."""

    severity: Severity
    flow: str | None
    cluster: str | None
    subject: str
    finding: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The flow of findings, and one of its clusters or (None) both. Makes these findings."""

    flow: str | None
    cluster: str | None = None

    def ok(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        return Finding(Severity.OK, self.flow, self.cluster, subject, finding, remedy)

    def warning(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        return Finding(Severity.WARNING, self.flow, self.cluster, subject, finding, remedy)

    def error(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        return Finding(Severity.ERROR, self.flow, self.cluster, subject, finding, remedy)

    def failure(self, subject: str, failed: Failed) -> Finding:
        finding, remedy = cause_and_step(failed.message)
        return self.error(subject, f"{failed.kind}: {finding}", remedy)


def cause_and_step(sentence: str) -> tuple[str, str | None]:
    """The two parts of an error message *operation, object, cluster: cause; next step*."""
    cause, separator, step = sentence.rpartition("; ")
    return (cause, step) if separator else (sentence, None)
