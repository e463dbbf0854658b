"""The rows of docs/commands.md: which there are, which fields are null, which reason."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.memory_flows import (
    NOW_MS,
    Estate,
    flow,
    identity_flow,
    messages,
    mirrored_estate,
    row_of,
    skipped,
    verdict,
    with_floor,
)
from tests.random_examples import scaled
from tests.reference_cycle import LastCommit
from tests.replication_model import SOURCE, TARGET, TIMESTAMPS, Kind, World, build
from tsoffset.flow.policy import DefaultGroupFilter, DefaultTopicFilter
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.in_process import cycle
from tsoffset.group_sync.tables import CACHE, KNOWN
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    Isolation,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TimestampType,
)
from tsoffset.testing.memory_cluster import Message, Verb

BEFORE_TRANSLATION = frozenset({Reason.UNSUPPORTED_GROUP, Reason.SEVERAL_SOURCES})
OF_THE_COMMIT_RULE = frozenset(
    {Reason.TARGET_PAST_LOG_END, Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD, Reason.GROUP_ACTIVE}
)


def check(row: Row, *, commits: bool) -> None:
    """What docs/design.md says of every row, whatever became of it."""
    skips, fails = row.outcome is OutcomeKind.SKIPPED, row.outcome is OutcomeKind.FAILED
    proceeds = not skips and not fails
    translated = row.target_offset is not None

    assert row.flow
    assert not (commits and row.outcome is OutcomeKind.WOULD_COMMIT)
    assert not (not commits and row.outcome is OutcomeKind.COMMITTED)

    # Where: a row without a group has nothing, one without a topic nothing but the group.
    assert (row.source_topic is None) == (row.partition is None) == (row.target_topic is None)
    if row.group is None:
        assert row.source_topic is None
    if row.source_topic is None:
        assert skips or fails
        assert row.source_offset is None
        assert row.current_target_offset is None
    assert row.source_offset is not None or skips or fails
    if row.source_offset is None:
        assert (row.target_offset, row.source_timestamp_ms) == (None, None)

    # Why: a reason of the outcome's own kind, and a sentence with it.
    assert isinstance(row.reason, Reason) == skips
    assert isinstance(row.reason, FailureKind) == fails
    assert (row.reason is None) == proceeds
    if skips or fails:
        assert row.message
    elif row.outcome is not OutcomeKind.COMMITTED:
        assert row.message is None

    # What: the precision goes with the translation, the bound with the precision.
    assert translated == (row.precision is not None)
    assert translated or not proceeds
    assert (row.reread_bound is not None) == (
        translated and row.precision is not Precision.UNPROVEN
    )
    assert row.precision is not Precision.EXACT or row.reread_bound == 0
    assert row.reread_bound is None or row.reread_bound >= 0
    for number in (row.target_offset, row.current_target_offset, row.source_timestamp_ms):
        assert number is None or number >= 0
    if skips:
        commit_time = row.reason in OF_THE_COMMIT_RULE
        assert translated >= commit_time, "skips of the commit rule show the translation"
        assert commit_time or not translated or row.reason is Reason.TARGET_MISSING
        if row.reason in BEFORE_TRANSLATION:
            assert row.source_timestamp_ms is None

    # Never backwards.
    current, offset = row.current_target_offset, row.target_offset
    if row.outcome in (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT) and current is not None:
        assert offset is not None
        assert current < offset
    if row.outcome is OutcomeKind.UNCHANGED or row.reason in OF_THE_COMMIT_RULE - {
        Reason.GROUP_ACTIVE
    }:
        assert current is not None
    if row.reason in OF_THE_COMMIT_RULE - {Reason.GROUP_ACTIVE}:
        assert offset is not None
        assert current is not None
        assert current > offset


# --- which rows there are ---------------------------------------------------------------


def test_a_row_for_each_group_and_partition_with_a_source_commit():
    """Every (group, topic, partition) that has a source commit, skipped ones too, once; not those
    of topics that are never synced."""
    estate = mirrored_estate(partitions=3)
    estate.write("unmirrored")
    expected = set()
    for group in ("one", "two", "three"):
        for number in range(3):
            if (group, number) != ("two", 1):
                estate.commit(group, "orders", 40, partition=number)
                expected.add((group, "orders", number))
    estate.commit("one", "unmirrored", 4)
    expected.add(("one", "unmirrored", 0))
    estate.write("heartbeats")
    estate.commit("one", "heartbeats", 4)
    found = [(row.group, row.source_topic, row.partition) for row in estate.sync()]
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"topic_filter": DefaultTopicFilter(exclude=("ord.*",))},
        {"topic_filter": DefaultTopicFilter(include=("payments",))},
        {"group_filter": DefaultGroupFilter(exclude=("billing",))},
        {"group_filter": DefaultGroupFilter(include=())},
    ],
)
def test_what_the_filters_exclude_gives_no_row(changes):
    """Topics by the source's name, groups by theirs."""
    estate = mirrored_estate()
    estate.commit("billing", "orders", 40)
    assert estate.sync(flow(**changes)) == []


def test_the_fields_of_a_committed_row():
    """All that there is to say, under the names that are fixed."""
    estate = mirrored_estate(first_offset=400)
    estate.commit("billing", "orders", 40)
    estate.commit("billing", "A.orders", 410, on="B")
    assert estate.sync() == [
        Row(
            flow="A->B",
            group="billing",
            source_topic="orders",
            partition=0,
            source_offset=40,
            source_timestamp_ms=NOW_MS + 40,
            target_topic="A.orders",
            target_offset=440,
            current_target_offset=410,
            outcome=OutcomeKind.COMMITTED,
            reason=None,
            precision=Precision.EXACT,
            reread_bound=0,
            message=None,
            consumer_lag=60,
        )
    ]


@pytest.mark.parametrize("isolation", Isolation)
def test_consumer_lag_is_the_source_log_end_less_the_committed_offset(isolation: Isolation) -> None:
    """For an answer with and without a conversation, for a cached one (whose log end is of this
    cycle), and where there is no answer; open transactions count, as in Kafka's own tool. Null
    where the log end was not read."""
    estate, settings = mirrored_estate(), flow(isolation=isolation)
    offsets = [*range(20, 60, 3), 100]
    for offset in offsets:
        estate.commit(f"g{offset:03}", "orders", offset)
    carry_over = CarryOver()

    def lags() -> dict[int | None, int | None]:
        rows = estate.sync(settings, commit=False, carry_over=carry_over)
        return {row.source_offset: row.consumer_lag for row in rows}

    assert lags() == {offset: 100 - offset for offset in offsets}
    estate["A"].log("orders").begin().append(messages("orders", range(100, 107)))
    assert lags() == {offset: 107 - offset for offset in offsets}
    estate.commit("g100", "orders", 104)
    assert lags() == {offset: 107 - offset for offset in (*offsets[:-1], 104)}
    estate.write("unmirrored")
    estate.commit("g100", "unmirrored", 5)
    assert lags()[5] is None


# --- each outcome and reason, by a case of its own --------------------------------------


@dataclass(frozen=True)
class Case:
    """A cycle in which the group `g` has one row with this outcome and reason."""

    estate: Estate
    settings: FlowSettings = field(default_factory=flow)
    competing_flows: Sequence[FlowSettings] = ()
    last_commit: LastCommit | None = None
    partition: int | None = None

    def row(self, *, commit: bool = True) -> Row:
        last = self.last_commit
        nothing = (None,) * len(KNOWN)
        pairs = [] if last is None else [("g", "orders", 0, *nothing, *astuple(last))]
        rows = self.estate.sync(
            self.settings,
            commit=commit,
            competing_flows=self.competing_flows,
            carry_over=CarryOver(pl.DataFrame(pairs, CACHE, orient="row")),
        )
        for row in rows:
            check(row, commits=commit)
        return row_of(rows, "g", partition=self.partition)


def at(offset: int, *, there: int | None = None, active: bool = False) -> Estate:
    """orders of A, mirrored to B from offset 10 on; g at `offset`, on B at `there`."""
    estate = mirrored_estate(first_offset=10)
    estate.commit("g", "orders", offset)
    if there is not None:
        estate.commit("g", "A.orders", there, on="B")
    if active:
        estate["B"].group("g").state = "Stable"
    return estate


def share_group_on_target(case: Case) -> Case:
    case.estate["B"].group("g", GroupType.SHARE)
    return case


def several_sources(*, mirrored: bool = True) -> Case:
    estate = Estate("A", "B", "C")
    for alias in ("A", "C"):
        estate.write("orders", on=alias, content=alias)
        if mirrored:
            estate.mirror("orders", "orders", source=alias)
        estate.commit("g", "orders", 40, on=alias)
    return Case(estate, identity_flow("A", "B"), [identity_flow("C", "B")])


def target_missing() -> Case:
    estate = Estate()
    estate.write("orders")
    estate.commit("g", "orders", 40)
    return Case(estate)


def rewritten(*, trimmed_to: int = 0, unmirrored_partition: bool = False) -> Case:
    """B stamps records itself; another group makes the cycle read its log."""
    estate = Estate()
    estate.write("orders", partitions=2 if unmirrored_partition else 1)
    estate["B"].create_topic("A.orders", timestamp_type=TimestampType.LOG_APPEND_TIME)
    estate["B"].log("A.orders").append(messages("orders", range(100)))
    estate["A"].log("orders").delete_records(trimmed_to)
    partition = int(unmirrored_partition)
    estate.commit("g", "orders", 40, partition=partition)
    estate.commit("other", "orders", 70)
    return Case(estate, partition=partition)


def trimmed_source() -> Case:
    estate = at(40)
    estate["A"].log("orders").delete_records(41)
    return Case(estate)


def unstamped(offset: int = 640, *, mirrored_to: int = 700) -> Case:
    """So far from the source's beginning that the target's log start is of no use."""
    estate = Estate()
    estate.write("orders", 700, stamped=False)
    estate.mirror("orders", up_to=mirrored_to)
    estate.commit("g", "orders", offset)
    return Case(estate)


def not_mirrored() -> Case:
    estate = Estate()
    estate.write("orders")
    estate.mirror("orders", up_to=0)
    estate.commit("g", "orders", 40)
    return Case(estate)


def no_proof(*, there: int | None = None, active: bool = False) -> Case:
    """The target's topic has records of the same times, but no copy. So far from the source's
    beginning its log start is of no use."""
    estate = Estate()
    estate.write("orders", 700)
    estate["B"].create_topic("A.orders")
    estate["B"].log("A.orders").append(
        [Message(NOW_MS + n, b"foreign", b"%d" % n) for n in range(600, 700)], batch_size=10
    )
    estate.commit("g", "orders", 640)
    if there is not None:
        estate.commit("g", "A.orders", there, on="B")
    if active:
        estate["B"].group("g").state = "Stable"
    return Case(estate)


def diverged(*, there: int | None = None) -> Case:
    """The mirror is said to keep offsets, and its records lie at others."""
    return Case(at(40, there=there), flow(translation=TranslationSettings(expect=SAME_OFFSETS)))


def failing(kind: FailureKind) -> Case:
    estate = at(40)
    estate["A"].fail(Failed(kind, "made to fail"), verb=Verb.READ)
    return Case(estate)


def floor(case: Case) -> Case:
    return replace(case, settings=flow(translation=with_floor()))


def unproven() -> Case:
    return Case(at(40), flow(translation=TranslationSettings(proof="timestamps")))


def frontier() -> Case:
    estate = Estate()
    estate.write("orders")
    estate.mirror("orders", up_to=30)
    estate.commit("g", "orders", 40)
    return Case(estate)


def share_group() -> Case:
    estate = mirrored_estate()
    estate.commit("g", "orders", 40, type=GroupType.SHARE)
    return Case(estate)


REASONS: dict[Reason, Callable[[], Case]] = {
    Reason.UNSUPPORTED_GROUP: lambda: share_group_on_target(Case(at(40))),
    Reason.SEVERAL_SOURCES: several_sources,
    Reason.TARGET_MISSING: target_missing,
    Reason.TARGET_REWRITES_TIMESTAMPS: rewritten,
    Reason.EXPIRED: trimmed_source,
    Reason.PAST_LOG_END: lambda: Case(at(101)),
    Reason.NO_TIMESTAMP: unstamped,
    Reason.NOT_MIRRORED: not_mirrored,
    Reason.NO_PROOF: no_proof,
    Reason.DIVERGED: diverged,
    Reason.TARGET_PAST_LOG_END: lambda: Case(at(40, there=111)),
    Reason.SOURCE_REWOUND: lambda: Case(at(40, there=70), last_commit=LastCommit(60, 70)),
    Reason.TARGET_AHEAD: lambda: Case(at(40, there=70)),
    Reason.GROUP_ACTIVE: lambda: Case(at(40, active=True)),
}


def test_every_reason_has_a_case():
    """None is left out."""
    assert set(Reason) == set(REASONS)


@pytest.mark.parametrize("reason", list(REASONS))
@pytest.mark.parametrize("commit", [True, False])
def test_every_reason_skips_its_row_and_commits_nothing(reason, commit):
    """The row says `skipped`, why, and what to do; the target group stays as it is."""
    case = REASONS[reason]()
    before = case.estate.standing("g", "A.orders")
    assert verdict(case.row(commit=commit)) == skipped(reason)
    assert case.estate.standing("g", "A.orders") == before
    assert not [group for group, _, _ in case.estate["B"].commits if group == "g"]


# Field by field: s(ource_offset), t(imestamp), p(recision and target_offset), c(urrent).
FIELDS: list[tuple[str, Callable[[], Case], tuple[OutcomeKind, object], str]] = [
    ("committed", lambda: Case(at(40)), (OutcomeKind.COMMITTED, None), "stp"),
    ("committed over", lambda: Case(at(40, there=45)), (OutcomeKind.COMMITTED, None), "stpc"),
    ("unchanged", lambda: Case(at(40, there=50)), (OutcomeKind.UNCHANGED, None), "stpc"),
    ("frontier", frontier, (OutcomeKind.COMMITTED, None), "stp"),
    ("unproven", unproven, (OutcomeKind.COMMITTED, None), "stp"),
    ("floor", lambda: floor(not_mirrored()), (OutcomeKind.COMMITTED, None), "stp"),
    ("share", share_group, (OutcomeKind.COMMITTED, None), "stp"),
    ("other type", REASONS[Reason.UNSUPPORTED_GROUP], skipped(Reason.UNSUPPORTED_GROUP), "s"),
    ("sources", REASONS[Reason.SEVERAL_SOURCES], skipped(Reason.SEVERAL_SOURCES), "s"),
    ("missing", REASONS[Reason.TARGET_MISSING], skipped(Reason.TARGET_MISSING), "s"),
    ("rewrites", rewritten, skipped(Reason.TARGET_REWRITES_TIMESTAMPS), "st"),
    ("expired", REASONS[Reason.EXPIRED], skipped(Reason.EXPIRED), "s"),
    ("past end", REASONS[Reason.PAST_LOG_END], skipped(Reason.PAST_LOG_END), "s"),
    ("no timestamp", REASONS[Reason.NO_TIMESTAMP], skipped(Reason.NO_TIMESTAMP), "s"),
    ("not mirrored", REASONS[Reason.NOT_MIRRORED], skipped(Reason.NOT_MIRRORED), "st"),
    ("no proof", REASONS[Reason.NO_PROOF], skipped(Reason.NO_PROOF), "st"),
    ("no proof, there", lambda: no_proof(there=3), skipped(Reason.NO_PROOF), "stc"),
    ("diverged", REASONS[Reason.DIVERGED], skipped(Reason.DIVERGED), "st"),
    ("anew", REASONS[Reason.TARGET_PAST_LOG_END], skipped(Reason.TARGET_PAST_LOG_END), "stpc"),
    ("rewound", REASONS[Reason.SOURCE_REWOUND], skipped(Reason.SOURCE_REWOUND), "stpc"),
    ("ahead", REASONS[Reason.TARGET_AHEAD], skipped(Reason.TARGET_AHEAD), "stpc"),
    ("active", REASONS[Reason.GROUP_ACTIVE], skipped(Reason.GROUP_ACTIVE), "stp"),
    *(
        (kind, lambda kind=kind: failing(kind), (OutcomeKind.FAILED, kind), "s")
        for kind in FailureKind
    ),
]


@pytest.mark.parametrize(
    ("case", "expected", "present"), [one[1:] for one in FIELDS], ids=[one[0] for one in FIELDS]
)
def test_which_fields_a_row_has(case, expected, present):
    """Absent is null: offsets and timestamp where they are known, precision with the target
    offset, no bound where nothing is proven."""
    row = case().row()
    assert verdict(row) == expected
    assert ("s" in present) == (row.source_offset is not None)
    assert ("t" in present) == (row.source_timestamp_ms is not None)
    assert ("p" in present) == (row.target_offset is not None) == (row.precision is not None)
    assert ("c" in present) == (row.current_target_offset is not None)


def test_a_group_that_cannot_be_read_has_no_partition():
    """It failed before its partitions were known: one row, all but flow and group null."""
    estate = at(40)
    estate["A"].fail(Failed(FailureKind.AUTHORIZATION, "no"), verb=Verb.COMMITTED, group="g")
    [row] = estate.sync()
    check(row, commits=True)
    assert astuple(row)[:9] == ("A->B", "g", *[None] * 7)
    assert verdict(row) == (OutcomeKind.FAILED, FailureKind.AUTHORIZATION)


def test_a_broker_that_cannot_be_asked_for_groups_has_no_group():
    """One row with the group null, beside those of the groups that are known."""
    estate = at(40)
    estate["A"].fail(Failed(FailureKind.TIMEOUT, "no"), verb=Verb.GROUPS, broker=0)
    [row] = estate.sync()
    check(row, commits=True)
    assert astuple(row)[:9] == ("A->B", *[None] * 8)
    assert verdict(row) == (OutcomeKind.FAILED, FailureKind.TIMEOUT)


# --- the order of reasons ---------------------------------------------------------------

PAIRS: dict[tuple[Reason, Reason], Callable[[], Case]] = {
    (Reason.UNSUPPORTED_GROUP, Reason.SEVERAL_SOURCES): (
        lambda: share_group_on_target(several_sources())
    ),
    (Reason.SEVERAL_SOURCES, Reason.TARGET_MISSING): lambda: several_sources(mirrored=False),
    (Reason.TARGET_MISSING, Reason.TARGET_REWRITES_TIMESTAMPS): (
        lambda: rewritten(unmirrored_partition=True)
    ),
    (Reason.TARGET_REWRITES_TIMESTAMPS, Reason.EXPIRED): lambda: rewritten(trimmed_to=41),
    (Reason.PAST_LOG_END, Reason.NO_TIMESTAMP): lambda: unstamped(701),
    (Reason.NO_TIMESTAMP, Reason.NOT_MIRRORED): lambda: unstamped(mirrored_to=0),
    (Reason.NOT_MIRRORED, Reason.NO_PROOF): not_mirrored,
    (Reason.NO_PROOF, Reason.TARGET_PAST_LOG_END): lambda: no_proof(there=101),
    (Reason.DIVERGED, Reason.TARGET_PAST_LOG_END): lambda: diverged(there=111),
    (Reason.TARGET_PAST_LOG_END, Reason.SOURCE_REWOUND): (
        lambda: Case(at(40, there=111), last_commit=LastCommit(60, 111))
    ),
    (Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD): REASONS[Reason.SOURCE_REWOUND],
    (Reason.TARGET_AHEAD, Reason.GROUP_ACTIVE): lambda: Case(at(40, there=70, active=True)),
    # Not neighbours in the list, but next to each other where what lies between cannot hold.
    (Reason.TARGET_MISSING, Reason.EXPIRED): lambda: _expired(target_missing()),
    (Reason.EXPIRED, Reason.NO_TIMESTAMP): lambda: _expired(unstamped()),
    (Reason.EXPIRED, Reason.NOT_MIRRORED): lambda: _expired(not_mirrored()),
    (Reason.NO_PROOF, Reason.GROUP_ACTIVE): lambda: no_proof(active=True),
    (Reason.SOURCE_REWOUND, Reason.GROUP_ACTIVE): (
        lambda: Case(at(40, there=70, active=True), last_commit=LastCommit(60, 70))
    ),
}


def _expired(case: Case) -> Case:
    log = case.estate["A"].log("orders")
    log.delete_records(log.end)
    return case


def test_all_neighbours_that_can_hold_together_have_a_case():
    """A commit is not below the log and past it at once, and where records are seen to differ that
    is proof enough."""
    listed = list(Reason)
    neighbours = set(pairwise(listed))
    assert neighbours - set(PAIRS) == {
        (Reason.EXPIRED, Reason.PAST_LOG_END),
        (Reason.NO_PROOF, Reason.DIVERGED),
    }


@pytest.mark.parametrize(("first", "second"), list(PAIRS))
def test_the_first_reason_that_holds_is_named(first, second):
    """Of two that hold the one that comes first in the contract's list."""
    assert list(Reason).index(first) < list(Reason).index(second)
    assert verdict(PAIRS[first, second]().row()) == skipped(first)


# --- whatever the logs, the groups and the commits --------------------------------------

share = st.sampled_from((0.0, 0.3, 0.6))
kinds = st.builds(
    Kind,
    records=st.integers(0, 70),
    timestamps=st.sampled_from(TIMESTAMPS),
    twins=st.sampled_from((0.0, 0.05, 0.3)),
    keys=st.sampled_from((0, 3, 1000)),
    batch=st.sampled_from((1, 3, 10, 100)),
    transactions=st.booleans(),
    dropped=st.sampled_from((0.0, 0.0, 0.3)),
    repeats=st.sampled_from((0, 0, 1, 3)),
    lag=share,
    foreign=st.sampled_from((0.0, 0.0, 0.2)),
    source_compacted=st.booleans(),
    target_compacted=st.booleans(),
    source_trimmed=share,
    target_trimmed=share,
    isolation=st.sampled_from(Isolation),
)
seeds = st.integers(0, 2**32)
target_commits = st.lists(st.one_of(st.none(), st.integers(0, 130)), min_size=1, max_size=12)
random_settings = st.builds(
    TranslationSettings,
    proof=st.sampled_from(("content", "content", "content", "timestamps")),
    floor=st.sampled_from(("none", "log_start")),
    budget=st.sampled_from((8, 8, 1, 0)),
)


@dataclass
class Estates:
    """A random world with a group at every position, some of them on the target too."""

    world: World
    settings: FlowSettings
    positions: dict[str, int]

    @classmethod
    def of(
        cls, kind: Kind, seed: int, translation: TranslationSettings, there: Sequence[int | None]
    ) -> "Estates":
        world, positions = build(kind, seed), {}
        # One that has expired and one past the end, too.
        offsets = range(max(0, world.source.start - 1), world.source.end + 2)
        for number, offset in enumerate(offsets):
            name = f"g{offset}"
            positions[name] = offset
            world.source_cluster.group(name).offsets[SOURCE] = CommittedOffset(offset, name)
            current = there[number % len(there)]
            if current is not None:
                world.target_cluster.group(name).offsets[TARGET] = CommittedOffset(current)
            if number % 7 == 3:
                world.target_cluster.group(name).state = "Stable"
        return cls(world, flow(isolation=kind.isolation, translation=translation), positions)

    def cycle(self, *, commit: bool = True) -> dict[str | None, Row]:
        """One cycle: a row for each group, each as the contract says."""
        rows = cycle(
            self.settings, self.world.source_cluster, self.world.target_cluster, commit=commit
        )
        for row in rows:
            check(row, commits=commit)
        assert Counter(row.group for row in rows) == Counter(list(self.positions))
        return {row.group: row for row in rows}

    def standing(self) -> dict[str, int | None]:
        found = {}
        for name in self.positions:
            committed = self.world.target_cluster.group(name).offsets.get(TARGET)
            found[name] = None if committed is None else committed.offset
        return found

    def commits(self) -> Iterator[str]:
        return (name for name, _, _ in self.world.target_cluster.commits)


@settings(
    max_examples=scaled(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
@given(kinds, seeds, random_settings, target_commits)
def test_cycles_move_groups_forward_once_and_only_to_safe_places(
    kind: Kind, seed: int, translation: TranslationSettings, there: list[int | None]
) -> None:
    """Never backwards, never outside the log, never for active groups; what is proven is safe.
    A second cycle commits nothing and calls what the first committed `unchanged`."""
    estate = Estates.of(kind, seed, translation, there)
    world, before = estate.world, estate.standing()
    rows = estate.cycle()
    after = estate.standing()
    done = Counter(estate.commits())
    assert set(done.values()) <= {1}
    for name, row in rows.items():
        assert name is not None
        assert (row.outcome is OutcomeKind.COMMITTED) == (name in done)
        assert row.current_target_offset == before[name]
        if name not in done:
            assert after[name] == before[name]
            continue
        moved = after[name]
        assert moved == row.target_offset
        assert moved is not None
        assert before[name] is None or moved > (before[name] or 0)
        assert world.target.start <= moved <= world.target.end
        assert world.target_cluster.group(name).state == "Empty"
        if row.precision is not Precision.UNPROVEN:
            assert world.is_safe(estate.positions[name], moved), row

    again = estate.cycle()
    assert Counter(estate.commits()) == done
    assert estate.standing() == after
    for name, row in again.items():
        first = rows[name]
        if first.outcome is OutcomeKind.COMMITTED:
            floored = row.reason in (Reason.NOT_MIRRORED, Reason.NO_PROOF)
            assert row.outcome is OutcomeKind.UNCHANGED or (
                floored and translation.floor == "log_start"
            )
        else:
            assert row == first


@settings(max_examples=scaled(50), deadline=None)
@given(kinds, seeds, random_settings, target_commits)
def test_a_plan_is_the_sync_without_its_commits(
    kind: Kind, seed: int, translation: TranslationSettings, there: list[int | None]
) -> None:
    """`plan` changes nothing on the target, and `sync` then does what it said, row by row."""
    estate = Estates.of(kind, seed, translation, there)
    world, before = estate.world, estate.standing()
    planned = estate.cycle(commit=False)
    assert not list(estate.commits())
    assert world.target_cluster.asked(Verb.COMMIT) == 0
    assert estate.standing() == before
    for name, row in estate.cycle().items():
        as_planned = planned[name]
        if row.outcome is OutcomeKind.COMMITTED:
            assert as_planned.outcome is OutcomeKind.WOULD_COMMIT
            as_planned = replace(as_planned, outcome=OutcomeKind.COMMITTED)
        assert row == as_planned


strikes = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.sampled_from((Verb.COMMITTED, Verb.LOG_RANGES, Verb.READ, Verb.FIRST_AT_TIMES)),
        st.sampled_from((*range(0, 60, 7), None)),
        st.integers(1, 4),
        st.sampled_from(FailureKind),
    ),
    max_size=4,
)


@settings(
    max_examples=scaled(75),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(kinds, seeds, target_commits, strikes)
def test_failures_lose_no_row_and_move_no_group_back(
    kind: Kind,
    seed: int,
    there: list[int | None],
    faults: list[tuple[str, Verb, int | None, int, FailureKind]],
) -> None:
    """Whatever fails on the way: each group has its row, what is committed is safe, and once it
    is mended the cycle ends as it would have without."""
    estate = Estates.of(kind, seed, TranslationSettings(), there)
    world, before = estate.world, estate.standing()
    for side, verb, group, times, kind in faults:
        cluster = world.source_cluster if side == "A" else world.target_cluster
        cluster.fail(
            Failed(kind, "made to fail"),
            verb=verb,
            group=f"g{group}" if group is not None and verb is Verb.COMMITTED else None,
            times=times,
        )
    for name, row in estate.cycle().items():
        assert name is not None
        moved = estate.standing()[name]
        if row.outcome is OutcomeKind.COMMITTED:
            assert moved is not None
            assert world.is_safe(estate.positions[name], moved), row
            assert before[name] is None or moved > (before[name] or 0)
        else:
            assert moved == before[name]
    world.source_cluster.heal()
    world.target_cluster.heal()
    assert not [row for row in estate.cycle().values() if row.outcome is OutcomeKind.FAILED]
    assert set(Counter(estate.commits()).values()) <= {1, 2}
