"""A cycle's rows by columns: the same text and the same sums as of the rows one by one."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise, product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.terminal.test_output import CLUSTER_FAILED, COMMITTED, FAILED, SKIPPED
from tsoffset.group_sync.rows import ROWS, rows_table
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row
from tsoffset.terminal import row_columns
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.row_columns import encode_rows, readiness_of, tally_of

names = st.text() | st.text("a,\"'\\/\r\n\t\0 \x7f\x85\u2028é漢😀", max_size=5) | st.just("null")
numbers = st.none() | st.integers(-(2**61), 2**61)
rows_of_any_kind = st.builds(
    Row,
    flow=names,
    group=st.none() | names,
    source_topic=st.none() | names,
    partition=st.none() | st.integers(0, 2**31 - 1),
    source_offset=numbers,
    source_timestamp_ms=numbers,
    target_topic=st.none() | names,
    target_offset=numbers,
    current_target_offset=numbers,
    outcome=st.sampled_from(OutcomeKind),
    reason=st.none() | st.sampled_from([*Reason, *FailureKind]),
    precision=st.none() | st.sampled_from(Precision),
    reread_bound=st.none() | st.integers(0, 2**40),
    message=st.none() | names,
    consumer_lag=numbers,
)


@st.composite
def tables(draw: st.DrawFn, rows: Sequence[Row]) -> pa.Table:
    """The rows as a table: each column cut into chunks of its own, text plain or a dictionary."""
    columns = []
    for field in ROWS:
        values = [getattr(row, field.name) for row in rows]
        cuts = [0, *sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3))), len(rows)]
        chunks = [pa.array(values[start:end], field.type) for start, end in pairwise(cuts)]
        if field.type == pa.string() and draw(st.booleans()):
            chunks = [chunk.dictionary_encode() for chunk in chunks]
        columns.append(pa.chunked_array(chunks))
    return pa.Table.from_arrays(columns, names=ROWS.names)


def printed(format: Format, *parts: pa.Table) -> str:
    stream = io.StringIO()
    output = Output(stream, format)
    for rows in parts:
        output.write_encoded(rows.schema.names, encode_rows(rows, format))
    return stream.getvalue()


def as_json(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(asdict(row)) + "\n" for row in rows)


def as_csv(rows: Iterable[Row]) -> str:
    """Whatever may end a line is put between quotation marks; lines end with a line feed."""
    lines = []
    for values in (ROWS.names, *(asdict(row).values() for row in rows)):
        csv.writer(stream := io.StringIO(), lineterminator="\r\n").writerow(values)
        lines.append(stream.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


@given(st.data(), st.lists(rows_of_any_kind, max_size=8))
def test_rows_are_printed_as_json_and_csv_write_them(data, rows):
    """To the byte, whatever is in names and messages, and however Arrow holds them."""
    table = data.draw(tables(rows))
    assert printed(Format.JSON, table) == as_json(rows)
    assert printed(Format.CSV, table) == as_csv(rows)


@given(st.data(), st.lists(rows_of_any_kind))
def test_sums_do_not_depend_on_how_arrow_holds_the_rows(data, rows):
    """Outcomes, reasons, failures, bounds on re-reads, and which groups are in place."""
    assert tally_of(data.draw(tables(rows))) == tally_of(rows_table(rows))


# Whether a group with a row of this outcome is in sync now, and after a sync.
IN_SYNC = {
    OutcomeKind.COMMITTED: (True, True),
    OutcomeKind.WOULD_COMMIT: (False, True),
    OutcomeKind.UNCHANGED: (True, True),
    OutcomeKind.SKIPPED: (False, False),
    OutcomeKind.FAILED: (False, False),
}
REASONS = (*Reason, *FailureKind, "A_REASON_OF_A_LATER_VERSION", None)


def with_words(outcome: str | None, reason: str | None) -> pa.Table:
    """One row of a group, with any text as its outcome and reason."""
    table = rows_table([replace(COMMITTED, group="billing")])
    for name, word in (("outcome", outcome), ("reason", reason)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array([word], pa.string()))
    return table


def test_each_outcome_says_whether_a_group_is_in_sync():
    """A new outcome needs a decision in the table above. The reason changes nothing, and no reason
    is unknown: it is the one by which the group is counted."""
    assert set(IN_SYNC) == set(OutcomeKind)
    for (outcome, decisions), reason in product(IN_SYNC.items(), REASONS):
        for after_sync, in_sync in zip((False, True), decisions, strict=True):
            found = readiness_of(with_words(outcome, reason), after_sync=after_sync)
            expected = Counter() if in_sync else Counter([reason or outcome])
            assert (found.groups, found.not_in_place) == (1, expected), (outcome, reason)


@pytest.mark.parametrize("outcome", ["an_outcome_of_a_later_version", None])
@pytest.mark.parametrize("after_sync", [False, True])
def test_a_group_with_an_unknown_outcome_is_not_in_sync(outcome, after_sync):
    """Rows of the history may be of another version."""
    for reason in REASONS:
        found = readiness_of(with_words(outcome, reason), after_sync=after_sync)
        assert found.not_in_place.total() == 1


def test_the_first_reason_of_a_group_counts():
    """Failures before skips before planned commits; within these the order of the reasons. What is
    unknown counts before all others."""
    ordered = [
        (OutcomeKind.FAILED, "A_REASON_OF_A_LATER_VERSION"),
        (OutcomeKind.FAILED, FailureKind.AUTHENTICATION),
        (OutcomeKind.FAILED, FailureKind.INTERNAL),
        (OutcomeKind.SKIPPED, Reason.UNSUPPORTED_GROUP),
        (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE),
        (OutcomeKind.WOULD_COMMIT, None),
        (OutcomeKind.UNCHANGED, None),
    ]
    for better, worse in pairwise(reversed(ordered)):
        rows = pa.concat_tables([with_words(*better), with_words(*worse)])
        outcome, reason = worse
        assert readiness_of(rows).not_in_place == Counter([reason or outcome])


def test_csv_has_one_header_for_all_flows():
    """The rows of a second flow follow those of the first, or follow none."""
    rows = [COMMITTED, SKIPPED]
    first, second = (rows_table([row]) for row in rows)
    assert printed(Format.CSV, first, rows_table([]), second) == as_csv(rows)
    assert printed(Format.CSV, rows_table([])) == as_csv([])


def test_many_rows_are_printed_in_parts(monkeypatch):
    """The text of a large estate is not held in memory as a whole, and has every row once."""
    monkeypatch.setattr(row_columns, "_ROWS_AT_ONCE", 100)
    some = (COMMITTED, SKIPPED, FAILED)
    rows = [replace(some[number % 3], source_offset=number) for number in range(250)]
    table = rows_table(rows)
    assert [text.count("\n") for text in encode_rows(table, Format.JSON)] == [100, 100, 50]
    assert printed(Format.JSON, table) == as_json(rows)
    assert printed(Format.CSV, table) == as_csv(rows)


# --- sums ---------------------------------------------------------------------------------


def test_the_tally_counts_each_row_once():
    unchanged = replace(COMMITTED, outcome=OutcomeKind.UNCHANGED, reread_bound=3)
    tally = tally_of(rows_table([COMMITTED, unchanged, SKIPPED, SKIPPED, FAILED, CLUSTER_FAILED]))
    assert tally.outcomes == {
        OutcomeKind.COMMITTED: 1,
        OutcomeKind.UNCHANGED: 1,
        OutcomeKind.SKIPPED: 2,
        OutcomeKind.FAILED: 2,
    }
    assert tally.reasons == {"NOT_MIRRORED": 2}
    assert tally.failures == {"NO_LEADER": 1, "UNREACHABLE": 1}
    assert tally.failed == 2


def test_the_re_reads_are_those_of_what_is_in_place():
    """Bounds of committed and unchanged rows add up; a translation that was not committed
    (GROUP_ACTIVE) adds nothing; one without a bound is counted as such."""
    active = replace(COMMITTED, outcome=OutcomeKind.SKIPPED, reason=Reason.GROUP_ACTIVE)
    unproven = replace(COMMITTED, precision=Precision.UNPROVEN, reread_bound=None)
    planned = replace(COMMITTED, outcome=OutcomeKind.WOULD_COMMIT, reread_bound=5)
    tally = tally_of(rows_table([COMMITTED, planned, active, unproven]))
    assert (tally.reread_bound, tally.unproven) == (17, 1)
    assert tally.in_words().endswith("an unknown number for 1 unproven row")


def test_a_sum_says_which_groups_are_in_place_and_what_the_others_read_again():
    """Of what the target has now: a group with members that lies 10 back reads these again, one
    past its translation and one without any have no usable offset. A plan says both, what is and
    what a sync would make of it."""
    skip = partial(replace, COMMITTED, outcome=OutcomeKind.SKIPPED)
    rows = [
        replace(COMMITTED, outcome=OutcomeKind.UNCHANGED, reread_bound=0),
        skip(group="busy", reason=Reason.GROUP_ACTIVE, reread_bound=0),
        skip(group="ahead", reason=Reason.TARGET_AHEAD, current_target_offset=700),
        replace(SKIPPED, group="old", reason=Reason.EXPIRED),
        replace(SKIPPED, group="old", reason=Reason.EXPIRED, partition=4),
    ]
    rest = (
        "; 3 not ready (1 EXPIRED, 1 GROUP_ACTIVE, 1 TARGET_AHEAD), re-reading at most 10 "
        "records; 3 group-partitions without a known usable offset on the target"
    )
    assert (
        tally_of(rows_table(rows))
        .in_words()
        .endswith(f"0 failed; 1 of 4 groups ready, re-reading at most 0 records{rest}")
    )
    none = tally_of(rows_table(rows[2:])).in_words()
    assert "0 of 2 groups ready; 2 not ready (1 EXPIRED, 1 TARGET_AHEAD)" in none
    away = tally_of(rows_table([CLUSTER_FAILED])).in_words()
    assert away.endswith("1 failed (1 UNREACHABLE); what a failover would re-read is not known")
    whole = tally_of(rows_table([replace(CLUSTER_FAILED, group="locked")])).in_words()
    assert whole.endswith("0 of 1 group ready; 1 not ready (1 UNREACHABLE)")
    rows.append(replace(COMMITTED, group="late", outcome=OutcomeKind.WOULD_COMMIT))
    assert (
        tally_of(rows_table(rows))
        .in_words()
        .endswith(
            "0 failed; now 1 of 5 groups ready, re-reading at most 0 records; 4 not ready "
            "(1 EXPIRED, 1 GROUP_ACTIVE, 1 TARGET_AHEAD, 1 would_commit), re-reading at most 32 "
            "records; 3 group-partitions without a known usable offset on the target. After a "
            f"sync: 2 of 5 groups ready, re-reading at most 12 records{rest}"
        )
    )
