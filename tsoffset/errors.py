"""Errors that end a command.

::

    TsoffsetError                 exit status
    |- ConfigurationError         2   `problems`, each with key, value, file and line
    |- UsageError                 2   wrong arguments (an unknown flow)
    |  `- NoFlowEnabled
    |- ListenerError              2   an address cannot be used: in use, no certificate
    |- ClusterUnreachable         3   a cluster could not be reached at all
    |  `- ClusterRefused              it refuses this client, or its certificate is refused
    |- EmbeddedError              1   an embedded broker on this machine
    |  |- JavaMissing
    |  |- JavaTooOld
    |  |- JarsUnavailable
    |  |- PortTaken
    |  `- StartFailed
    |- CycleFailed                1   Spark gave up on a cycle
    |  `- CycleOverLimit              it exceeded its time limit
    |- HistoryFailed              1   past cycles cannot be read, or Spark gave up on a query
    `- SnapshotFailed             1   offsets cannot be read, or the file cannot be written

A failure of one group, partition or broker is no exception: it is a
`tsoffset.model.Failed` in the result. Texts say *operation, object, cluster: cause;
next step*. Every error can be pickled, since it may cross Spark.
"""

from dataclasses import dataclass


class TsoffsetError(Exception):
    """Base of all errors that end a command; the text is a sentence for a person.

    `warnings` are the configuration's warnings before the error, which may explain it.
    """

    exit_status = 1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One error in a configuration.

    `allowed` says what would be right; `line` counts from 1 and is None if the format has no lines
    (JSON).
    """

    key: str
    value: str | None
    allowed: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        location = "" if self.file is None else self.file
        if self.line is not None:
            location += f":{self.line}"
        what = self.key if self.value is None else f"{self.key} = {self.value}"
        return f"{location}: {what}: {self.allowed}" if location else f"{what}: {self.allowed}"


class ConfigurationError(TsoffsetError):
    """The configuration cannot be used; `problems` has all errors found."""

    exit_status = 2

    def __init__(
        self, problems: tuple[ConfigurationProblem, ...], warnings: tuple[str, ...] = ()
    ) -> None:
        super().__init__(problems, warnings)
        self.problems = problems
        self.warnings = warnings

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class UsageError(TsoffsetError):
    """The command cannot be carried out as asked."""

    exit_status = 2


class ListenerError(TsoffsetError):
    """Metrics, API and page cannot be served at an address."""

    exit_status = 2


class NoFlowEnabled(UsageError):
    """No flow of the configuration is enabled."""


class ClusterUnreachable(TsoffsetError):
    """No address of a cluster answered."""

    exit_status = 3


class ClusterRefused(ClusterUnreachable):
    """Authentication failed at all addresses of a cluster, or one refused the password."""


class EmbeddedError(TsoffsetError):
    """Kafka could not be run on this machine."""


class JavaMissing(EmbeddedError):
    """There is no Java on this machine."""


class JavaTooOld(EmbeddedError):
    """The Java found is older than 17."""


class JarsUnavailable(EmbeddedError):
    """Kafka's jars are neither cached nor reachable."""


class PortTaken(EmbeddedError):
    """A requested port is in use."""


class StartFailed(EmbeddedError):
    """A process ended, or was not ready in time."""


class CycleFailed(TsoffsetError):
    """A cycle ended without a result."""


class CycleOverLimit(CycleFailed):
    """A cycle exceeded its time limit, and was stopped."""


class HistoryFailed(TsoffsetError):
    """A query of the history has no answer."""


class SnapshotFailed(TsoffsetError):
    """A snapshot of target groups' offsets could not be taken."""
