"""The answers of the API; these models are its schema.

Times are seconds since 1970 UTC, durations seconds. No answer has a cluster's addresses or
settings.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from tsoffset.daemon.status import FlowState
from tsoffset.logs import fit_to_be_shown, redact
from tsoffset.model import OutcomeKind, Precision


def well_formed(text: str) -> str:
    """The text with lone surrogates, which JSON in UTF-8 cannot hold, replaced by `?`."""
    return text.encode("utf-8", "replace").decode()


def _sentence(text: str) -> str:
    return fit_to_be_shown(well_formed(text))


def _facts(facts: Mapping[str, Any]) -> Any:
    """The fields of a log event without secrets, as JSON that is well-formed."""
    return json.loads(well_formed(json.dumps(redact(facts), ensure_ascii=False)))


Name = Annotated[str, AfterValidator(well_formed)]
Sentence = Annotated[str, AfterValidator(_sentence)]
"""A text for a person; contains no secrets."""


class AnswerModel(BaseModel):
    """A description that does not fit beside its field is the field's docstring. Values of the
    daemon are read by their attributes."""

    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


class InstanceAnswer(AnswerModel):
    """A tsoffset process."""

    id: Name = Field(description="New at each start.")
    host: Name = Field(description="Host name of its machine or container.")
    pid: int = Field(description="Process id on that host.")
    started_at: float = Field(description="When it started (seconds since 1970 UTC).")
    version: Name = Field(description="tsoffset's version.")
    url: Name | None = None
    """URL at which other machines reach its API; null if it has none."""


class CycleAnswer(AnswerModel):
    """A cycle that has ended."""

    number: int = Field(description="Number of the cycle in this process, from 1.")
    started_at: float = Field(description="Start time (seconds since 1970 UTC).")
    ended_at: float = Field(description="End time (seconds since 1970 UTC).")
    seconds: float = Field(description="Duration in seconds.")
    commits: bool = Field(description="False if the cycle only planned.")
    reached: bool
    """Both clusters were reached, so the cycle has rows of groups."""
    succeeded: bool = Field(description="Both clusters were reached and no row failed.")
    over_limit: bool = Field(description="The cycle was stopped at its time limit.")
    error: Sentence | None = Field(description="Why the cycle has no rows.")
    facts: Annotated[dict[str, JsonValue], BeforeValidator(_facts)]
    """The fields of the log event `cycle_finished`; see docs/commands.md."""


class CountsAnswer(AnswerModel):
    """Counts of group-partitions: all of them, and those with unknown values."""

    pairs: int = Field(description="Group-partitions.")
    lag_unknown: int
    """Group-partitions without a usable offset on the target, for which `lag_records` is not
    known."""
    bound_unknown: int
    """Group-partitions whose translation has no re-read bound."""
    consumer_lag_unknown: int
    """Group-partitions whose log end the cycle did not read."""


class TotalsAnswer(CountsAnswer):
    """The sums over all groups of a flow, of the last cycle that reached both clusters."""

    groups: int = Field(description="Groups with a row.")
    outcomes: dict[str, int] = Field(description="Groups by their worst outcome.")
    precisions: dict[str, int] = Field(description="Groups by their worst precision.")
    reasons: dict[str, int] = Field(description="Skipped and failed rows by reason.")
    not_in_place: dict[str, int]
    """Groups with a group-partition whose translation is not committed on the target, by the reason
    of their worst one. All other groups are ready for a failover."""
    lag_records: int
    """Upper bound of the records that consumers would re-read if they failed over right after the
    cycle and resumed from the target groups' committed offsets."""
    lag_seconds: float | None
    """Longest time since a group was last in sync (seconds), among groups that have been in
    sync."""
    never_in_sync: int
    """Groups with a group-partition that has never been in sync."""
    reread_bound: int = Field(description="Sum of the known re-read bounds (records).")
    consumer_lag: int
    """Consumer lag on the source: log end minus committed offset, as of the cycle. The sum over the
    group-partitions where it is known."""


class FlowAnswer(AnswerModel):
    """One flow."""

    name: Name = Field(description="`A->B`.")
    source: Name = Field(description="Alias of the source cluster.")
    target: Name = Field(description="Alias of the target cluster.")
    state: FlowState = Field(description="The flow's state.")
    state_since: float
    """When the flow entered this state (seconds since 1970 UTC)."""
    messages: list[Sentence]
    """What is wrong and what to do, the most urgent message first."""
    commits: bool = Field(description="False if the configuration disables committing.")
    interval_seconds: int
    """Seconds from the start of one cycle to the start of the next."""
    limit_seconds: int = Field(description="Time limit of a cycle, in seconds.")
    cycles: int = Field(description="Cycles finished since this process started.")
    failures: int
    """Cycles without a result: a cluster was not reached, or Spark failed."""
    failures_in_a_row: int
    """How many of the latest cycles in a row had no result."""
    late: int = Field(description="Cycles skipped because the previous one was still running.")
    over_limit: int = Field(description="Cycles stopped at their time limit.")
    last_cycle: CycleAnswer | None = Field(description="The last cycle.")
    unknown_since: float | None
    """End of the last cycle that reached both clusters, if that is longer ago than two intervals;
    else null. Since then it is not known what consumers would re-read, and all values of
    group-partitions are as of then (seconds since 1970 UTC)."""
    lag_estimate_records: int | None
    """Set while `unknown_since` is set: `totals.lag_records` plus the records that consumers have
    read since, at their last known rate. Null if no rate is known."""
    last_success_at: float | None
    """End of the last cycle in which no row failed (seconds since 1970 UTC)."""
    running_since: float | None
    """Start of the running cycle (seconds since 1970 UTC); null if none runs."""
    next_at: float | None
    """When the next cycle is due (seconds since 1970 UTC)."""
    lists: list[Sentence] = Field(description="Changes to the selection made by `tsoffset lists`.")
    others: list[InstanceAnswer]
    """Other instances in the leader election of the flow."""
    leads: bool = True
    """True if this instance runs the flow. If not, its answers may be older, and only the leader
    can pause, resume and sync."""
    leader: InstanceAnswer | None = None
    """The instance that runs the flow, if that is another one and is known."""
    age_seconds: float | None = None
    """Age of `totals`: seconds since its cycle ended."""
    totals: TotalsAnswer


class FlowsAnswer(AnswerModel):
    """All flows of this process, in the order of the configuration file."""

    instance: InstanceAnswer
    at: float = Field(description="Time of this answer (seconds since 1970 UTC).")
    warnings: list[Sentence] = Field(description="Warnings about the configuration.")
    flows: list[FlowAnswer]


class RemoteAnswer(AnswerModel):
    """Another instance of `status.remote.urls`."""

    url: Name = Field(description="Address of the instance, without user and password.")
    answer: FlowsAnswer | None
    """Its last answer to /api/v1/flows; null if it has never answered."""
    answered_at: float | None
    """Time of that answer by this instance's clock (seconds since 1970 UTC)."""
    error: Sentence | None
    """Why it did not answer the last request, and what to do."""


class RemotesAnswer(AnswerModel):
    """The other instances of `status.remote.urls`, in that order."""

    remotes: list[RemoteAnswer] = Field(description="Empty if the key is not set.")


class ReasonCount(AnswerModel):
    """How many rows have a reason."""

    reason: str = Field(description="Why the rows were skipped or failed; see docs/commands.md.")
    rows: int


class NextStepAnswer(AnswerModel):
    """What to do about a group."""

    when: str = Field(description="When to run the command, as the beginning of a sentence.")
    command: Name
    """A shell command for the host that has the daemon's configuration file, limited to the flow
    and the group."""


class EntryAnswer(CountsAnswer):
    """The group-partitions of one group or one source topic, summarized."""

    name: Name = Field(description="Name of the group or the source topic.")
    partitions: int
    """Source partitions that have a committed offset of a group, each counted once."""
    outcome: OutcomeKind = Field(description="The worst outcome of its group-partitions.")
    precision: Precision | None
    """The worst precision of its translations; null if it has none."""
    reasons: list[ReasonCount]
    message: Sentence | None
    """The message of the first row with the worst outcome, if that is skipped or failed."""
    next_step: NextStepAnswer | None
    """What to do about that row; null for a topic."""
    lag_records: int | None
    """Upper bound of the records that consumers would re-read if they failed over right after the
    cycle. The sum over the group-partitions where it is known; null if it is known for none."""
    in_sync_at: float | None
    """When all its group-partitions were last known to be in sync on the target (seconds since 1970
    UTC); null if one has never been in sync."""
    lag_seconds: float | None
    """Age of the target offset that a failover would use: `at - in_sync_at` (seconds)."""
    reread_bound: int | None
    """Re-read bound of the translations, in records. The sum over the group-partitions that have
    one; null if none has."""
    consumer_lag: int | None
    """Consumer lag on the source: log end minus committed offset, as of the cycle. The sum over the
    group-partitions where it is known; null if it is known for none."""


class AsOfCycle(AnswerModel):
    """Values of the last cycle that reached both clusters."""

    at: float = Field(description="Time of this answer (seconds since 1970 UTC).")
    cycle: int | None
    """The cycle that these values are of; null if no cycle of this process has reached both
    clusters."""
    age_seconds: float | None
    """Seconds since that cycle ended, also if another process ran it."""


class Page(AsOfCycle):
    """A part of a list."""

    page: int = Field(description="Page number, from 1.")
    limit: int = Field(description="Maximum number of items per page.")
    total: int = Field(description="Number of items on all pages.")


class GroupsAnswer(Page):
    """Groups of a flow."""

    groups: list[EntryAnswer]


class TopicAnswer(EntryAnswer):
    """One source topic."""

    replication_lag_records: int | None
    """Replication lag: about how many records the target lacks, estimated from the offsets between
    the last record pair and both logs' ends. Counts transaction markers and offsets without a
    record. The sum over the partitions where it is known; null if it is known for none."""


class TopicsAnswer(Page):
    """Source topics of a flow."""

    topics: list[TopicAnswer]


class TranslatedRow(AnswerModel):
    """A source offset with its translation."""

    source_topic: Name | None
    partition: int | None
    source_offset: int | None = Field(description="Offset on the source.")
    source_timestamp_ms: int | None
    """Timestamp of the next record to read, or of the last one if there is none (ms since 1970
    UTC)."""
    target_topic: Name | None
    target_offset: int | None = Field(description="The translated target offset.")
    outcome: OutcomeKind = Field(description="`would_commit` for a translation without a commit.")
    reason: str | None = Field(description="Why the row was skipped or failed.")
    precision: Precision | None
    """Only an `exact` translation re-reads nothing. Do not use `unproven` ones."""
    reread_bound: int | None
    """Upper bound of the source records that a consumer re-reads from the translation."""
    message: Sentence | None = Field(description="The cause and what to do.")
    consumer_lag: int | None
    """Log end of the source partition minus the source offset; null if the log end was not read."""


class PairRow(TranslatedRow):
    """A group-partition, with the fields of docs/commands.md. A group that failed as a
    whole has a row without topic and partition."""

    flow: Name
    group: Name
    current_target_offset: int | None
    """The target group's committed offset before the cycle."""
    next_step: NextStepAnswer | None
    """What to do, if the row was skipped or failed."""
    lag_records: int | None
    """Upper bound of the records that a consumer would re-read if it failed over right after the
    cycle."""
    in_sync_at: float | None
    """When the target group was last known to be in sync (seconds since 1970 UTC)."""
    lag_seconds: float | None = Field(description="`at - in_sync_at` (seconds).")
    synced_source_offset: int | None
    """Committed offset on the source at that time."""


class GroupAnswer(Page):
    """One group with its rows."""

    group: EntryAnswer
    rows: list[PairRow]


class PointAnswer(AnswerModel):
    """A past cycle."""

    at: float = Field(description="End time (seconds since 1970 UTC).")
    seconds: float = Field(description="Duration in seconds.")
    state: FlowState = Field(description="The flow's state after the cycle.")
    error: Sentence | None = Field(description="Why the cycle has no rows.")
    groups: int | None
    committed: int | None = Field(description="Number of rows with this outcome.")
    would_commit: int | None = Field(description="Number of rows with this outcome.")
    unchanged: int | None = Field(description="Number of rows with this outcome.")
    skipped: int | None = Field(description="Number of rows with this outcome.")
    failed: int | None = Field(description="Number of rows with this outcome.")
    reread_bound: int | None
    """Sum of the re-read bounds of translations that are committed on the target (records)."""
    lag_records: int | None
    """Upper bound of the records that a failover at that time would have re-read."""
    lag_seconds: float | None = Field(description="Age of the oldest target offset (seconds).")


class HistoryAnswer(AnswerModel):
    """Past cycles of a flow, the oldest first."""

    flow: Name
    points: list[PointAnswer]


class Resumption(AnswerModel):
    """Where a consumer of one partition resumes if it fails over now."""

    source_topic: Name
    partition: int = Field(description="Partition number, equal on both clusters.")
    source_offset: int | None = Field(description="Committed offset on the source.")
    target_topic: Name | None
    offset: int | None
    """The target group's committed offset; null if there is none, so that the consumer's
    `auto.offset.reset` applies."""
    precision: Precision | None
    """Precision of `offset`; null if `offset` is not the last translation."""
    reread_bound: int | None
    """Upper bound of the records that a consumer would re-read, as of the last cycle; null if not
    known."""
    age_seconds: float | None
    """Seconds since the target group was last known to be in sync; null if it has never been in
    sync."""
    outcome: OutcomeKind = Field(description="Outcome in the last cycle.")
    reason: str | None = Field(description="Why it was skipped or failed.")
    message: Sentence | None = Field(description="The cause and what to do.")
    next_step: NextStepAnswer | None
    """What to do, if the row was skipped or failed."""


class TranslationAnswer(AsOfCycle):
    """What a failover of one group would use now."""

    flow: Name
    group: Name
    cycle_ended_at: float | None
    """End of that cycle, also if another process ran it (seconds since 1970 UTC)."""
    partitions: list[Resumption]


class Done(AnswerModel):
    """The request was accepted."""

    flow: Name
    state: FlowState
    """The flow's state as the request was accepted, usually before it takes effect. A pause begins
    when the running cycle has ended."""


class Health(AnswerModel):
    """Whether the process is alive or ready."""

    ok: bool
