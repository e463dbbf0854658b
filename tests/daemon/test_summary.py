"""Summaries of pairs by group or topic, against their rows."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import AT, row, skipped
from tsoffset.daemon.freshness import PAIRS_KNOWN, pairs_known
from tsoffset.daemon.summary import OUTCOMES, PRECISIONS, Order, Summary, SummaryKey
from tsoffset.group_sync.rows import rows_table
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row
from tsoffset.terminal.row_columns import tally_of

NAMES = ("a", "B", "b/1", "c\x00", "\U0001f600")


def known_of(*rows: Row) -> pa.Table:
    """What is known of pairs after a first cycle with these rows."""
    return pairs_known(rows_table(rows), PAIRS_KNOWN.empty_table(), AT)


def summary(*rows: Row, key: SummaryKey = SummaryKey.GROUP) -> Summary:
    return Summary(known_of(*rows), key)


def entries(made: Summary, **wanted: Any) -> list[SimpleNamespace]:
    return [SimpleNamespace(**one) for one in made.entries(made.select(**wanted))]


def names(made: Summary, **wanted: Any) -> list[str]:
    return [entry.name for entry in entries(made, **wanted)]


@st.composite
def some_row(draw: st.DrawFn) -> Row:
    name, partition = draw(st.sampled_from(NAMES)), draw(st.integers(0, 3))
    outcome = draw(st.sampled_from(OutcomeKind))
    reasons = {OutcomeKind.SKIPPED: list(Reason), OutcomeKind.FAILED: list(FailureKind)}
    made = row(
        name,
        draw(st.sampled_from(("orders", "payments"))),
        partition,
        outcome=outcome,
        reason=draw(st.sampled_from(reasons[outcome])) if outcome in reasons else None,
        message=draw(st.sampled_from(("one", "two", None))),
        consumer_lag=draw(st.none() | st.integers(-3, 9)),
    )
    if draw(st.booleans()):
        return replace(made, target_offset=None, precision=None, reread_bound=None)
    precision = draw(st.sampled_from(Precision))
    bound = None if precision is Precision.UNPROVEN else draw(st.integers(0, 9))
    return replace(made, precision=precision, reread_bound=bound)


def distinct(rows: list[Row]) -> list[Row]:
    return list({(r.group, r.source_topic, r.partition): r for r in rows}.values())


@pytest.mark.parametrize("gone", "abc")
def test_name_without_a_row_is_no_entry(gone):
    """A group of which no row is left is no entry, though its column still knows the name."""
    known = known_of(*map(row, "abc"))
    made = Summary(known.filter(pc.not_equal(known["group"], gone)), SummaryKey.GROUP)
    left = [name for name in "abc" if name != gone]
    assert names(made) == left
    for name in left:
        assert made.rows(name)["group"].to_pylist() == [name]


def test_a_group_that_consumers_would_be_reset_of_is_not_in_sync():
    """One ahead of its translation is: its consumers read on the target. One past the log's end is
    on a topic that was recreated."""
    ahead = row("a", outcome=OutcomeKind.SKIPPED, target_offset=7, current_target_offset=9)
    known = known_of(
        replace(ahead, reason=Reason.TARGET_AHEAD),
        replace(ahead, group="b", reason=Reason.TARGET_PAST_LOG_END),
    )
    assert known["in_sync_at"].to_pylist() == [AT, None]


def test_an_outcome_of_a_later_version_counts_as_the_worst():
    """Rows of the history may have one; the summary has every group, and so have the metrics."""
    known = known_of(*map(row, "ab"))
    at, words = known.schema.get_field_index("outcome"), ["outcome_of_later", "unchanged"]
    known = known.set_column(at, "outcome", pa.array(words).dictionary_encode())
    made = Summary(known, SummaryKey.GROUP)
    assert [(entry.name, entry.outcome) for entry in entries(made)] == [
        ("a", OutcomeKind.FAILED),
        ("b", OutcomeKind.UNCHANGED),
    ]
    assert made.by_outcome() == [(OutcomeKind.UNCHANGED, None, 1), (OutcomeKind.FAILED, None, 1)]


@given(st.lists(some_row(), max_size=30).map(distinct), st.sampled_from(SummaryKey))
def test_an_entry_adds_up_its_rows(rows, key):
    """Worst outcome and precision, sums of what is known, counts of what is not, reasons."""
    made = summary(*rows, key=key)
    assert names(made) == sorted({getattr(one, key) for one in rows})
    for entry in entries(made):
        own = [one for one in rows if getattr(one, key) == entry.name]
        assert entry.pairs == len(own)
        assert entry.partitions == len({(one.source_topic, one.partition) for one in own})
        assert entry.outcome is max((one.outcome for one in own), key=OUTCOMES.index)
        told = [one.precision for one in own if one.precision is not None]
        assert entry.precision is max(told, key=PRECISIONS.index, default=None)
        bounds = [one.reread_bound for one in own if one.reread_bound is not None]
        assert entry.reread_bound == (sum(bounds) if bounds else None)
        unbounded = [one for one in own if one.target_offset is not None]
        assert entry.bound_unknown == len(unbounded) - len(bounds)
        lags = [one.consumer_lag for one in own if one.consumer_lag is not None]
        assert entry.consumer_lag == (sum(max(lag, 0) for lag in lags) if lags else None)
        assert entry.consumer_lag_unknown == len(own) - len(lags)
        reasons = Counter(one.reason for one in own if one.reason is not None)
        assert {one["reason"]: one["rows"] for one in entry.reasons} == reasons
        if entry.outcome in (OutcomeKind.SKIPPED, OutcomeKind.FAILED):
            worst = [one for one in own if one.outcome is entry.outcome]
            assert entry.message in {one.message for one in worst}
        else:
            assert entry.message is None


@given(st.lists(some_row(), max_size=30).map(distinct))
def test_totals_add_up_the_entries(rows):
    made = summary(*rows)
    all_, totals = entries(made), SimpleNamespace(**made.totals)
    assert totals.groups == len(all_)
    assert totals.pairs == sum(one.pairs for one in all_)
    assert totals.outcomes == Counter(one.outcome for one in all_)
    assert totals.precisions == Counter(one.precision for one in all_ if one.precision)
    assert totals.reasons == Counter(one.reason for one in rows if one.reason is not None)
    assert totals.reread_bound == sum(one.reread_bound or 0 for one in all_)
    assert totals.lag_records == sum(one.lag_records or 0 for one in all_)
    assert totals.consumer_lag == sum(one.consumer_lag or 0 for one in all_)
    assert totals.never_in_sync == sum(one.in_sync_at is None for one in all_)


@given(st.lists(some_row(), max_size=30).map(distinct))
def test_a_re_read_is_the_same_on_page_and_command_line(rows):
    totals, tally = SimpleNamespace(**summary(*rows).totals), tally_of(rows_table(rows))
    assert totals.lag_records == tally.now.reread + tally.now.reread_others
    assert totals.lag_unknown == tally.now.unusable + sum(
        one.reread_bound is None
        for one in rows
        if one.outcome in (OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED)
    )


@given(st.lists(some_row(), max_size=30).map(distinct), st.sampled_from(Order), st.booleans())
def test_every_order_holds_each_entry_once(rows, order, falling):
    """The one that is asked for, with what is not known last either way."""
    made = summary(*rows)
    found = entries(made, order=order, falling=falling)
    assert sorted(one.name for one in found) == names(made)

    def value(entry):
        match order:
            case Order.NAME:
                return entry.name
            case Order.OUTCOME:
                return OUTCOMES.index(entry.outcome)
            case Order.PRECISION:
                return None if entry.precision is None else PRECISIONS.index(entry.precision)
            case Order.LAG_SECONDS:
                return None if entry.in_sync_at is None else -entry.in_sync_at
        return getattr(entry, order)

    values = [value(one) for one in found]
    known = [one for one in values if one is not None]
    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=falling)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["a", "b", "c"]),
        ({"search": "B"}, ["b"]),
        ({"search": ".*"}, []),
        ({"outcomes": [OutcomeKind.SKIPPED, OutcomeKind.FAILED]}, ["b", "c"]),
        ({"outcomes": [OutcomeKind.COMMITTED]}, ["a"]),
        ({"precisions": [Precision.EXACT]}, ["a", "b"]),
        ({"reasons": [Reason.GROUP_ACTIVE]}, ["b"]),
        ({"reasons": [FailureKind.TIMEOUT, Reason.GROUP_ACTIVE]}, ["b", "c"]),
        ({"search": "c", "reasons": [Reason.GROUP_ACTIVE]}, []),
    ],
)
def test_entries_are_wanted_by_name_and_by_what_became_of_them(wanted, found):
    """All that is given must hold; a search is text, no expression."""
    failed = {"outcome": OutcomeKind.FAILED, "reason": FailureKind.TIMEOUT}
    made = summary(
        row("a"),
        row("b"),
        skipped("b", partition=1),
        row("c", None, None, precision=None, **failed),
    )
    assert names(made, **wanted) == found


def test_a_group_that_failed_as_a_whole_has_no_pairs():
    failed = {"outcome": OutcomeKind.FAILED, "reason": FailureKind.COORDINATOR, "message": "away"}
    nothing = dict.fromkeys(
        ("source_offset", "target_offset", "current_target_offset", "precision", "reread_bound")
    )
    (entry,) = entries(summary(row("a", None, None, **{**nothing, **failed})))
    assert (entry.pairs, entry.lag_unknown) == (0, 0)
    assert (entry.lag_records, entry.in_sync_at) == (None, None)
    assert (entry.outcome, entry.message) == (OutcomeKind.FAILED, "away")


def test_no_rows_are_no_entries():
    """Before the first cycle there is nothing, which is no error."""
    made = summary()
    assert (len(made), names(made), made.entry("a"), made.totals["lag_records"]) == (0, [], None, 0)
