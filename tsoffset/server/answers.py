"""What the API answers: these models are its schema.

Times are seconds since 1970 UTC, durations seconds. Nothing of a cluster is in here but its alias.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, JsonValue

from tsoffset.daemon.status import FlowState
from tsoffset.logs import fit_to_be_shown
from tsoffset.model import OutcomeKind, Precision


def well_formed(text: str) -> str:
    """The text with lone surrogates, which JSON in UTF-8 cannot hold, replaced by `?`."""
    return text.encode("utf-8", "replace").decode()


def _told(text: str) -> str:
    return fit_to_be_shown(well_formed(text))


Name = Annotated[str, AfterValidator(well_formed)]
Sentence = Annotated[str, AfterValidator(_told)]
"""A text for a person, in which no secret stands."""


class Instance(BaseModel):
    """A tsoffset process."""

    id: Name = Field(description="Made anew at each start.")
    host: Name = Field(description="Name of its machine or container.")
    pid: int = Field(description="Process id there.")
    started_at: float = Field(description="When it started (seconds since 1970 UTC).")
    version: Name = Field(description="Version of tsoffset.")
    url: Name | None = Field(
        default=None, description="Where other machines reach its API; null where it has none."
    )


class CycleAnswer(BaseModel):
    """A cycle that has ended."""

    number: int = Field(description="Counts from 1 in this process.")
    started_at: float = Field(description="When it began (seconds since 1970 UTC).")
    ended_at: float = Field(description="When it ended (seconds since 1970 UTC).")
    seconds: float = Field(description="How long it took.")
    commits: bool = Field(description="False where it only planned.")
    reached: bool = Field(description="Both clusters were reached, so it came to rows of groups.")
    succeeded: bool = Field(description="Both clusters were reached and no row failed.")
    over_limit: bool = Field(description="Its limit ended it.")
    error: Sentence | None = Field(description="Why it came to no rows.")
    facts: dict[str, JsonValue] = Field(
        description="The fields of the log's `cycle_finished`, see docs/commands.md."
    )


class Totals(BaseModel):
    """The sums over all groups of a flow, of the last cycle that reached both clusters."""

    groups: int = Field(description="Groups with a row.")
    pairs: int = Field(description="Pairs of a group and a source partition.")
    outcomes: dict[str, int] = Field(description="Groups by the worst outcome of their pairs.")
    precisions: dict[str, int] = Field(description="Groups by the worst precision of their pairs.")
    reasons: dict[str, int] = Field(
        description="Rows by the reason that they were skipped or failed."
    )
    not_in_place: dict[str, int] = Field(
        description="Groups that are not in place on the target now, by the reason of the worst of"
        " their pairs; all others are in place."
    )
    lag_records: int = Field(
        description="Most records that consumers read again that move over right after the cycle,"
        " from what the target groups have."
    )
    lag_unknown: int = Field(
        description="Pairs in which that is not known, for the target group has no usable offset."
    )
    lag_seconds: float | None = Field(
        description="The longest that a group which was in place has not been so (seconds)."
    )
    never_in_sync: int = Field(description="Groups with a pair that was never seen in place.")
    reread_bound: int = Field(description="Sum of the bounds on re-reads that are known (records).")
    bound_unknown: int = Field(description="Pairs with a translation that has no such bound.")
    consumer_lag: int = Field(
        description="Records that the groups' consumers have yet to read on the source: log end"
        " minus committed offset, as of the cycle; the sum of the pairs where it is known."
    )
    consumer_lag_unknown: int = Field(
        description="Pairs of which the cycle did not read the log end."
    )


class Flow(BaseModel):
    """What is known of one flow."""

    name: Name = Field(description="`A->B`.")
    source: Name = Field(description="Alias of the source cluster.")
    target: Name = Field(description="Alias of the target cluster.")
    state: FlowState = Field(description="How the flow is, in one word.")
    state_since: float = Field(description="When that began (seconds since 1970 UTC).")
    messages: list[Sentence] = Field(description="What is wrong and what to do, most urgent first.")
    commits: bool = Field(description="False where the configuration turns committing off.")
    interval_seconds: int = Field(description="From the start of a cycle to that of the next.")
    limit_seconds: int = Field(description="After how long a cycle is ended.")
    cycles: int = Field(description="Cycles that ended since the start.")
    failures: int = Field(
        description="How many of them had no result: a cluster was not reached, or Spark gave up."
    )
    failures_in_a_row: int = Field(description="How many at the end of them.")
    late: int = Field(description="Cycles left out since the one before took too long.")
    over_limit: int = Field(description="Cycles that their limit ended.")
    last_cycle: CycleAnswer | None = Field(description="The last cycle.")
    unknown_since: float | None = Field(
        description="When a cycle last reached both clusters, where that is longer ago than two"
        " intervals: what consumers would read again is not known since then, and all that is told"
        " of pairs is as of then (seconds since 1970 UTC)."
    )
    lag_estimate_records: int | None = Field(
        description="While that is not known: `totals.lag_records` and what consumers have read"
        " since at their last known rate; null where no rate is known."
    )
    last_success_at: float | None = Field(
        description="When the last one ended in which no row failed (seconds since 1970 UTC)."
    )
    running_since: float | None = Field(
        description="Since when a cycle runs (seconds since 1970 UTC); null where none does."
    )
    next_at: float | None = Field(
        description="When the next cycle is due (seconds since 1970 UTC)."
    )
    lists: list[Sentence] = Field(description="Changes made by `tsoffset lists`.")
    others: list[Instance] = Field(description="Other instances at work on the same flow.")
    leads: bool = Field(
        default=True,
        description="This instance runs the flow. Where it does not, it answers from what it knows,"
        " and the leader alone can pause, resume and sync.",
    )
    leader: Instance | None = Field(
        default=None,
        description="The instance that runs the flow, where that is another one and is known.",
    )
    age_seconds: float | None = Field(
        default=None, description="How long ago the cycle ended that `totals` is of (seconds)."
    )
    totals: Totals


class Flows(BaseModel):
    """All flows of this process, in the order of the configuration file."""

    instance: Instance
    at: float = Field(description="When this was answered (seconds since 1970 UTC).")
    warnings: list[Sentence] = Field(description="What the configuration warns of.")
    flows: list[Flow]


class RemoteAnswer(BaseModel):
    """Another instance of `status.remote.urls`."""

    url: Name = Field(description="Its address, without user and password.")
    answer: Flows | None = Field(
        description="What it last answered to /api/v1/flows; null where it never has."
    )
    answered_at: float | None = Field(
        description="When that was by the clock here (seconds since 1970 UTC)."
    )
    error: Sentence | None = Field(
        description="Why it gave no answer when it was asked last, and what to do."
    )


class RemotesAnswer(BaseModel):
    """The other instances of `status.remote.urls`, in that order."""

    remotes: list[RemoteAnswer] = Field(description="None where that key is not set.")


class ReasonCount(BaseModel):
    """How many rows have a reason."""

    reason: str = Field(description="Why they were skipped or failed: docs/design.md section 4.")
    rows: int


class NextStep(BaseModel):
    """What to do about a group."""

    when: str = Field(description="When to run the command, as words that lead to it.")
    command: Name = Field(
        description="A command for a shell where the daemon's configuration file is, narrowed to"
        " the flow and the group."
    )


class Entry(BaseModel):
    """What is known of the pairs of one group, or of one source topic."""

    name: Name = Field(description="The group, or the source topic.")
    pairs: int = Field(description="Pairs of a group and a source partition.")
    partitions: int = Field(
        description="Source partitions in which a group has a commit, each counted once."
    )
    outcome: OutcomeKind = Field(description="The worst of its pairs.")
    precision: Precision | None = Field(
        description="The worst of its pairs that have a translation; null where none has."
    )
    reasons: list[ReasonCount]
    message: Sentence | None = Field(
        description="The sentence of its first row with the worst outcome, if that is skipped or"
        " failed."
    )
    next_step: NextStep | None = Field(
        description="What to do about that row; null for a topic, which is of many groups."
    )
    lag_records: int | None = Field(
        description="Most records that are read again by consumers that move over right after the"
        " cycle; the sum of the pairs where it is known, null where it is for none."
    )
    lag_unknown: int = Field(description="Pairs of which that is not known.")
    in_sync_at: float | None = Field(
        description="When all its pairs had last been in place on the target (seconds since 1970"
        " UTC); null where one was never seen so."
    )
    lag_seconds: float | None = Field(
        description="How old is what a failover would use: `at - in_sync_at` (seconds)."
    )
    reread_bound: int | None = Field(
        description="Most source records that can be read twice from the translations; the sum of"
        " the pairs that have such a bound, null where none has."
    )
    bound_unknown: int = Field(description="Pairs with a translation that has no such bound.")
    consumer_lag: int | None = Field(
        description="Records that consumers have yet to read on the source: log end minus committed"
        " offset, as of the cycle; the sum of the pairs where it is known, null where it is for"
        " none."
    )
    consumer_lag_unknown: int = Field(
        description="Pairs of which the cycle did not read the log end."
    )


class Page(BaseModel):
    """A part of a list."""

    at: float = Field(description="When this was answered (seconds since 1970 UTC).")
    cycle: int | None = Field(
        description="The cycle that this is of; null before one has reached both clusters."
    )
    age_seconds: float | None = Field(
        description="How long ago the cycle ended that this is of (seconds), also where another"
        " process ran it."
    )
    page: int = Field(description="Counts from 1.")
    limit: int = Field(description="Most items of a page.")
    total: int = Field(description="Items of all pages.")


class Groups(Page):
    """Groups of a flow."""

    groups: list[Entry]


class Topic(Entry):
    """What is known of one source topic."""

    replication_lag_records: int | None = Field(
        description="About how many records the target lacks, by the offsets between the last"
        " proven record and both logs' ends, in which transaction markers and offsets without a"
        " record count, too; the sum of the partitions where that is known, null where it is for"
        " none."
    )


class Topics(Page):
    """Source topics of a flow."""

    topics: list[Topic]


class PairRow(BaseModel):
    """One pair of a group and a source partition: docs/design.md section 4. Of a group that failed
    as a whole there is a row without topic and partition."""

    flow: Name
    group: Name
    source_topic: Name | None
    partition: int | None
    source_offset: int | None = Field(description="Committed on the source.")
    source_timestamp_ms: int | None = Field(
        description="Timestamp of the next record to read, or of the last one (ms since 1970 UTC)."
    )
    target_topic: Name | None
    target_offset: int | None = Field(description="The translation.")
    current_target_offset: int | None = Field(
        description="Committed on the target before the cycle."
    )
    outcome: OutcomeKind
    reason: str | None = Field(description="Why the row was skipped or failed.")
    precision: Precision | None = Field(description="How much is proven of the translation.")
    reread_bound: int | None = Field(
        description="Most source records that can be read twice from the translation."
    )
    message: Sentence | None = Field(description="Cause and next step.")
    consumer_lag: int | None = Field(
        description="Log end of the source partition minus the group's committed offset; null where"
        " the cycle did not read the log end."
    )
    next_step: NextStep | None = Field(description="What to do, where it was skipped or failed.")
    lag_records: int | None = Field(
        description="Most records that a consumer reads again that moves over right after the"
        " cycle."
    )
    in_sync_at: float | None = Field(
        description="When the target group was last in place (seconds since 1970 UTC)."
    )
    lag_seconds: float | None = Field(description="`at - in_sync_at` (seconds).")
    synced_source_offset: int | None = Field(description="Committed on the source then.")


class Group(Page):
    """One group with its rows."""

    group: Entry
    rows: list[PairRow]


class Point(BaseModel):
    """A past cycle."""

    at: float = Field(description="When it ended (seconds since 1970 UTC).")
    seconds: float = Field(description="How long it took.")
    state: FlowState = Field(description="The flow's after it.")
    error: Sentence | None = Field(description="Why it came to no rows.")
    groups: int | None
    committed: int | None = Field(description="Rows with that outcome.")
    would_commit: int | None = Field(description="Rows with that outcome.")
    unchanged: int | None = Field(description="Rows with that outcome.")
    skipped: int | None = Field(description="Rows with that outcome.")
    failed: int | None = Field(description="Rows with that outcome.")
    reread_bound: int | None = Field(
        description="Sum of the bounds of translations in place (records)."
    )
    lag_records: int | None = Field(
        description="Most records that consumers would have read again then (records)."
    )
    lag_seconds: float | None = Field(description="The longest of the pairs (seconds).")


class History(BaseModel):
    """Past cycles of a flow, the oldest first."""

    flow: Name
    points: list[Point]


class Resumption(BaseModel):
    """Where a consumer of one partition resumes that moves to the target now."""

    source_topic: Name
    partition: int = Field(description="The same on both sides.")
    source_offset: int | None = Field(description="Committed on the source.")
    target_topic: Name | None
    offset: int | None = Field(
        description="Committed on the target; null where there is none, so that the consumer's own"
        " `auto.offset.reset` decides."
    )
    precision: Precision | None = Field(
        description="How much is proven of `offset`; null where it is not the last translation."
    )
    reread_bound: int | None = Field(
        description="Most records that are read again, as of the last cycle; null where that is"
        " not known."
    )
    age_seconds: float | None = Field(
        description="How long ago the target group was last in place (seconds); null where it"
        " never was seen so."
    )
    outcome: OutcomeKind = Field(description="Of the last cycle.")
    reason: str | None = Field(description="Why it was skipped or failed.")
    message: Sentence | None = Field(description="Cause and next step.")
    next_step: NextStep | None = Field(description="What to do, where it was skipped or failed.")


class Translation(BaseModel):
    """What a failover of one group would use now."""

    flow: Name
    group: Name
    at: float = Field(description="When this was answered (seconds since 1970 UTC).")
    cycle: int | None = Field(
        description="The cycle that this is of; null where it is of one before the last start."
    )
    cycle_ended_at: float | None = Field(
        description="When the cycle ended that this is of, also where another process ran it"
        " (seconds since 1970 UTC)."
    )
    age_seconds: float | None = Field(description="`at - cycle_ended_at` (seconds).")
    partitions: list[Resumption]


class Done(BaseModel):
    """What was asked for is under way."""

    flow: Name
    state: FlowState = Field(description="The flow's now; a pause begins when its cycle has ended.")


class Health(BaseModel):
    """Whether the process does its work."""

    ok: bool


def clean(value: Any) -> Any:
    """A value of a log's field as JSON can hold it."""
    match value:
        case None | bool() | int() | float():
            return value
        case dict():
            return {well_formed(str(name)): clean(inner) for name, inner in value.items()}
        case list() | tuple():
            return [clean(inner) for inner in value]
    return _told(str(value))
