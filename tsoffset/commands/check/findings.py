"""What `check` finds: a fact about a flow or a cluster, how bad it is, what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tsoffset.model import Failed

_NAMED = 5


class Severity(StrEnum):
    """How bad a finding is: `error` means that something will not be synced as asked."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `flow` and `cluster` are None where it concerns all; `subject` is what was
    looked at, `remedy` the next step, None where none is needed."""

    severity: Severity
    flow: str | None
    cluster: str | None
    subject: str
    finding: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What findings concern: a flow, and one of its clusters or (None) both."""

    flow: str | None
    cluster: str | None = None

    def ok(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        """Nothing is wrong."""
        return Finding(Severity.OK, self.flow, self.cluster, subject, finding, remedy)

    def warning(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        """Something may be wrong, or costs a part of the flow."""
        return Finding(Severity.WARNING, self.flow, self.cluster, subject, finding, remedy)

    def error(self, subject: str, finding: str, remedy: str | None = None) -> Finding:
        """Something will not be synced as asked."""
        return Finding(Severity.ERROR, self.flow, self.cluster, subject, finding, remedy)

    def failure(self, subject: str, failed: Failed) -> Finding:
        """What a cluster could not answer."""
        finding, remedy = cause_and_step(failed.message)
        return self.error(subject, f"{failed.kind}: {finding}", remedy)


def cause_and_step(sentence: str) -> tuple[str, str | None]:
    """Our errors read *operation, object, cluster: cause; next step*: the two parts."""
    cause, separator, step = sentence.rpartition("; ")
    return (cause, step) if separator else (sentence, None)


def names(all_names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(all_names[:_NAMED])
    more = len(all_names) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
