"""The rows of docs/commands.md: which there are, which fields are null, which reason."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise

import polars as pl
import pytest

from tests.memory_flows import (
    COMMITTED,
    NOW_MS,
    UNCHANGED,
    WOULD_COMMIT,
    Estate,
    failed,
    flow,
    identity_flow,
    messages,
    mirrored_estate,
    row_of,
    skipped,
    verdict,
    with_floor,
)
from tsoffset.flow.policy import DefaultGroupFilter, DefaultTopicFilter
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CachedTables, with_reverse
from tsoffset.group_sync.tables import CACHE, KNOWN, REVERSE_COMMITS
from tsoffset.model import (
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
    {
        Reason.TARGET_PAST_LOG_END,
        Reason.SOURCE_REWOUND,
        Reason.TARGET_AHEAD,
        Reason.TARGET_REWOUND,
        Reason.GROUP_ACTIVE,
    }
)


def check(row: Row, *, commits: bool) -> None:
    """What docs/design.md says of every row, whatever its outcome."""
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
        assert current < offset
    stays = row.reason in OF_THE_COMMIT_RULE - {Reason.GROUP_ACTIVE}
    if row.outcome is OutcomeKind.UNCHANGED or stays:
        assert current is not None
    if stays:
        assert (current < offset) == (row.reason is Reason.TARGET_REWOUND)


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
    estate = mirrored_estate(billing=40)
    assert estate.sync(flow(**changes)) == []


def test_the_fields_of_a_committed_row():
    estate = mirrored_estate(first_offset=400, billing=40)
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
def test_consumer_lag_is_the_source_log_end_less_the_committed_offset(isolation):
    """For an answer with and without a translator, for a cached one (whose log end is of this
    cycle), and where there is no answer; open transactions count, as in Kafka's own tool. Null
    where the log end was not read."""
    estate, settings = mirrored_estate(), flow(isolation=isolation)
    offsets = [*range(20, 60, 3), 100]
    for offset in offsets:
        estate.commit(f"g{offset:03}", "orders", offset)
    cache = CachedTables()

    def lags():
        rows = estate.sync(settings, commit=False, cache=cache)
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
class RowCase:
    """A cycle in which the group `g` has one row with this outcome and reason."""

    estate: Estate
    settings: FlowSettings = field(default_factory=flow)
    competing_flows: Sequence[FlowSettings] = ()
    last_commit: tuple[int, int] | None = None
    reverse_target: int | None = None
    partition: int | None = None

    def row(self, *, commit: bool = True) -> Row:
        last = self.last_commit
        nothing = (None,) * len(KNOWN)
        pairs = [] if last is None else [("g", "orders", 0, *nothing, *last, *[None] * 3)]
        there = self.reverse_target
        reverse = [] if there is None else [("g", "orders", 0, 50, there, True)]
        rows = self.estate.sync(
            self.settings,
            commit=commit,
            competing_flows=self.competing_flows,
            cache=CachedTables(
                with_reverse(
                    pl.DataFrame(pairs, CACHE, orient="row"),
                    pl.DataFrame(reverse, REVERSE_COMMITS, orient="row"),
                )
            ),
        )
        for row in rows:
            check(row, commits=commit)
        return row_of(rows, "g", partition=self.partition)


def at(
    offset: int,
    *,
    there: int | None = None,
    active: bool = False,
    up_to: int | None = None,
    first_offset: int = 10,
    type: GroupType = GroupType.CLASSIC,
) -> Estate:
    """orders of A, mirrored `up_to` to B; g at `offset`, on B at `there`."""
    estate = mirrored_estate(first_offset=first_offset, up_to=up_to)
    estate.commit("g", "orders", offset, type=type)
    if there is not None:
        estate.commit("g", "A.orders", there, on="B")
    if active:
        estate["B"].group("g").state = "Stable"
    return estate


def share_group_on_target(case: RowCase) -> RowCase:
    case.estate["B"].group("g", GroupType.SHARE)
    return case


def several_sources(*, mirrored: bool = True) -> RowCase:
    estate = Estate("A", "B", "C")
    for alias in ("A", "C"):
        estate.write("orders", on=alias, content=alias)
        if mirrored:
            estate.mirror("orders", "orders", source=alias)
        estate.commit("g", "orders", 40, on=alias)
    return RowCase(estate, identity_flow("A", "B"), [identity_flow("C", "B")])


def target_missing() -> RowCase:
    estate = Estate()
    estate.write("orders")
    estate.commit("g", "orders", 40)
    return RowCase(estate)


def rewritten(*, trimmed_to: int = 0, unmirrored_partition: bool = False) -> RowCase:
    """B stamps records itself; another group makes the cycle read its log."""
    estate = Estate()
    estate.write("orders", partitions=2 if unmirrored_partition else 1)
    estate["B"].create_topic("A.orders", timestamp_type=TimestampType.LOG_APPEND_TIME)
    estate["B"].log("A.orders").append(messages("orders", range(100)))
    estate["A"].log("orders").delete_records(trimmed_to)
    partition = int(unmirrored_partition)
    estate.commit("g", "orders", 40, partition=partition)
    estate.commit("other", "orders", 70)
    return RowCase(estate, partition=partition)


def trimmed_source() -> RowCase:
    estate = at(40)
    estate["A"].log("orders").delete_records(41)
    return RowCase(estate)


def unstamped(offset: int = 640, *, mirrored_to: int = 700) -> RowCase:
    """So far from the source's beginning that the target's log start is of no use."""
    estate = mirrored_estate(700, up_to=mirrored_to, stamped=False)
    estate.commit("g", "orders", offset)
    return RowCase(estate)


def not_mirrored() -> RowCase:
    return RowCase(at(40, up_to=0, first_offset=0))


def no_proof(*, there: int | None = None, active: bool = False) -> RowCase:
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
    return RowCase(estate)


def diverged(*, there: int | None = None) -> RowCase:
    """The mirror is said to keep offsets, and its records lie at others."""
    return RowCase(at(40, there=there), flow(translation=TranslationSettings(expect=SAME_OFFSETS)))


def failing(kind: FailureKind) -> RowCase:
    estate = at(40)
    estate["A"].fail(Failed(kind, "made to fail"), verb=Verb.READ)
    return RowCase(estate)


def floor(case: RowCase) -> RowCase:
    return replace(case, settings=flow(translation=with_floor()))


def unproven() -> RowCase:
    return RowCase(at(40), flow(translation=TranslationSettings(proof="timestamps")))


# Field by field: s(ource_offset), t(imestamp), p(recision and target_offset), c(urrent).
REASONS: dict[Reason, tuple[str, Callable[[], RowCase]]] = {
    Reason.UNSUPPORTED_GROUP: ("s", lambda: share_group_on_target(RowCase(at(40)))),
    Reason.SEVERAL_SOURCES: ("s", several_sources),
    Reason.TARGET_MISSING: ("s", target_missing),
    Reason.TARGET_REWRITES_TIMESTAMPS: ("st", rewritten),
    Reason.EXPIRED: ("s", trimmed_source),
    Reason.PAST_LOG_END: ("s", lambda: RowCase(at(101))),
    Reason.NO_TIMESTAMP: ("s", unstamped),
    Reason.NOT_MIRRORED: ("st", not_mirrored),
    Reason.NO_PROOF: ("st", no_proof),
    Reason.DIVERGED: ("st", diverged),
    Reason.TARGET_PAST_LOG_END: ("stpc", lambda: RowCase(at(40, there=111))),
    Reason.SOURCE_REWOUND: ("stpc", lambda: RowCase(at(40, there=70), last_commit=(60, 70))),
    Reason.TARGET_AHEAD: ("stpc", lambda: RowCase(at(40, there=70))),
    Reason.TARGET_REWOUND: ("stpc", lambda: RowCase(at(40, there=45), reverse_target=40)),
    Reason.GROUP_ACTIVE: ("stp", lambda: RowCase(at(40, active=True))),
}
FIELDS: list[tuple[str, Callable[[], RowCase], tuple[OutcomeKind, object], str]] = [
    ("committed", lambda: RowCase(at(40)), COMMITTED, "stp"),
    ("committed over", lambda: RowCase(at(40, there=45)), COMMITTED, "stpc"),
    ("unchanged", lambda: RowCase(at(40, there=50)), UNCHANGED, "stpc"),
    ("frontier", lambda: RowCase(at(40, up_to=30)), COMMITTED, "stp"),
    ("unproven", unproven, COMMITTED, "stp"),
    ("floor", lambda: floor(not_mirrored()), COMMITTED, "stp"),
    ("share", lambda: RowCase(at(40, type=GroupType.SHARE)), COMMITTED, "stp"),
    ("no proof, there", lambda: no_proof(there=3), skipped(Reason.NO_PROOF), "stc"),
    *((reason, case, skipped(reason), present) for reason, (present, case) in REASONS.items()),
    *((kind, lambda kind=kind: failing(kind), failed(kind), "s") for kind in FailureKind),
]


def test_every_reason_has_a_case():
    assert set(Reason) == set(REASONS)


@pytest.mark.parametrize(
    ("case", "expected", "present"), [one[1:] for one in FIELDS], ids=[one[0] for one in FIELDS]
)
@pytest.mark.parametrize("commit", [True, False])
def test_which_outcome_and_fields_a_row_has(case, expected, present, commit):
    """Absent is null: offsets and timestamp where they are known, precision with the target
    offset, no bound where nothing is proven. Only a row that says so is committed."""
    made = case()
    row = made.row(commit=commit)
    assert verdict(row) == (WOULD_COMMIT if expected == COMMITTED and not commit else expected)
    assert ("s" in present) == (row.source_offset is not None)
    assert ("t" in present) == (row.source_timestamp_ms is not None)
    assert ("p" in present) == (row.target_offset is not None) == (row.precision is not None)
    assert ("c" in present) == (row.current_target_offset is not None)
    if verdict(row) != COMMITTED:
        assert not [group for group, _, _ in made.estate["B"].commits if group == "g"]


@pytest.mark.parametrize(
    ("fault", "group"),
    [({"verb": Verb.COMMITTED, "group": "g"}, "g"), ({"verb": Verb.GROUPS, "broker": 0}, None)],
)
def test_a_row_has_what_was_known_when_it_failed(fault, group):
    """A group that failed before its partitions were known has one row, all but flow and group
    null; a broker that cannot list its groups has one without a group."""
    estate = at(40)
    estate["A"].fail(Failed(FailureKind.TIMEOUT, "no"), **fault)
    [row] = estate.sync()
    check(row, commits=True)
    assert astuple(row)[:9] == ("A->B", group, *[None] * 7)
    assert verdict(row) == failed(FailureKind.TIMEOUT)


# --- the order of reasons ---------------------------------------------------------------

PAIRS: dict[tuple[Reason, Reason], Callable[[], RowCase]] = {
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
        lambda: RowCase(at(40, there=111), last_commit=(60, 111))
    ),
    (Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD): REASONS[Reason.SOURCE_REWOUND][1],
    (Reason.TARGET_AHEAD, Reason.GROUP_ACTIVE): lambda: RowCase(at(40, there=70, active=True)),
    (Reason.TARGET_REWOUND, Reason.GROUP_ACTIVE): (
        lambda: RowCase(at(40, there=45, active=True), reverse_target=40)
    ),
    # Not neighbors in the list, but adjacent if the reasons between them cannot apply.
    (Reason.TARGET_MISSING, Reason.EXPIRED): lambda: _expired(target_missing()),
    (Reason.EXPIRED, Reason.NO_TIMESTAMP): lambda: _expired(unstamped()),
    (Reason.EXPIRED, Reason.NOT_MIRRORED): lambda: _expired(not_mirrored()),
    (Reason.NO_PROOF, Reason.GROUP_ACTIVE): lambda: no_proof(active=True),
    (Reason.SOURCE_REWOUND, Reason.GROUP_ACTIVE): (
        lambda: RowCase(at(40, there=70, active=True), last_commit=(60, 70))
    ),
}


def _expired(case: RowCase) -> RowCase:
    log = case.estate["A"].log("orders")
    log.delete_records(log.end)
    return case


def test_all_neighbours_that_can_hold_together_have_a_case():
    """A commit is not below the log and past it at once, where records are seen to differ that is
    proof enough, and a target group is not before the translation and behind it."""
    listed = list(Reason)
    neighbors = set(pairwise(listed))
    assert neighbors - set(PAIRS) == {
        (Reason.EXPIRED, Reason.PAST_LOG_END),
        (Reason.NO_PROOF, Reason.DIVERGED),
        (Reason.TARGET_AHEAD, Reason.TARGET_REWOUND),
    }


@pytest.mark.parametrize(("first", "second"), list(PAIRS))
def test_the_first_reason_that_holds_is_named(first, second):
    assert list(Reason).index(first) < list(Reason).index(second)
    assert verdict(PAIRS[first, second]().row()) == skipped(first)
