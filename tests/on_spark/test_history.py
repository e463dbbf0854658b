"""Queries of past cycles with Spark SQL, before and after days are merged."""

import json
import re
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.configured import nowhere, properties_file
from tests.history.test_reading import damage, spoiled
from tests.invoking import start
from tests.past_cycles import DAY, MINUTE, NOON, Past, files, merge, row
from tsoffset.errors import UsageError
from tsoffset.history.questions import HistoryQuery, answer, own_answer
from tsoffset.history.views import Opened, ViewScope, open_views
from tsoffset.model import OutcomeKind, Precision, Reason
from tsoffset.stores import store_at

pytestmark = pytest.mark.spark

SKIPPED = {
    "outcome": OutcomeKind.SKIPPED,
    "reason": Reason.GROUP_ACTIVE,
    "current_target_offset": 3,
    "message": "why",
}
BOUNDED = {"precision": Precision.BOUNDED, "target_offset": 1, "current_target_offset": 1}


@pytest.fixture(params=["as written", pytest.param("merged", marks=pytest.mark.thorough)])
def past(request, tmp_path) -> Path:
    """Eight cycles over midnight of a group that is active on the target since the third, one that
    stands still, one that goes and one that is inexact; then two of another process."""
    past = Past(tmp_path, NOON + DAY / 2 - 4.5 * MINUTE, full_every=3)
    for n in range(1, 9):
        rows = [row("idle"), row("inexact", offset=n, reread_bound=n % 5, **BOUNDED)]
        rows.append(row("active", offset=n, **(SKIPPED if n > 2 else {})))
        if n < 4:
            rows.append(row("gone"))
        past.keep(*rows)
    other = Past(tmp_path, past.started + 8 * MINUTE, id="b2")
    for n in (9, 10):
        other.keep(row("idle"), row("active", offset=n, **SKIPPED))
    if request.param == "merged":
        merge(tmp_path)
    return tmp_path


@pytest.fixture
def session(session) -> SparkSession:
    """One with settings and views of its own."""
    return session.newSession()


def opened(session: SparkSession, directory: Path, **asked: Any) -> Opened:
    return open_views(
        session, store_at(directory), ViewScope(**asked), partial(store_at, directory)
    )


def ask(session: SparkSession, question: HistoryQuery, *, cycles: int = 3) -> list[dict[str, Any]]:
    return answer(session, question, cycles=cycles, limit=50).to_pylist()


def ended(session: SparkSession) -> list[float]:
    """When the cycles of the view ended."""
    found = own_answer(session, "SELECT ended_at FROM cycles").to_pylist()
    return [one["ended_at"].timestamp() for one in found]


def test_stuck_are_those_behind_that_did_not_advance(session, past):
    """For a number of cycles, across a restart and midnight; pairs in sync and pairs that are gone
    are not stuck."""
    opened(session, past)
    (found,) = ask(session, HistoryQuery.STUCK)
    assert (found["group"], found["cycles"], found["source_cycles"]) == ("active", 7, 0)
    assert (found["reason"], found["message"]) == ("GROUP_ACTIVE", "why")
    assert ask(session, HistoryQuery.STUCK, cycles=8) == []


def test_worst_has_the_largest_bound_of_each_pair(session, past):
    opened(session, past)
    (found,) = ask(session, HistoryQuery.WORST)
    assert (found["group"], found["reread_bound"], found["source_offset"]) == ("inexact", 4, 4)


def test_accuracy_is_told_by_day(session, past):
    """Newest day first, from the rows of cycles."""
    opened(session, past)
    second, first = ask(session, HistoryQuery.ACCURACY)
    assert (first["cycles"], second["cycles"]) == (4, 6)
    assert first["exact_percent"] == pytest.approx(100 * 9 / 13, abs=1e-3)
    assert first["failed_cycles"] == 0


def test_periods_of_a_pair_follow_each_other(session, past):
    """Of the selected groups; one period ends where the next begins, and that of a pair that has
    gone with its last cycle. The queries are those of docs/history.md."""
    opened(session, past, groups=re.compile("gone|active"))
    text = Path(__file__).parents[2].joinpath("docs", "history.md").read_text()
    cycles, group = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    found = own_answer(session, cycles).to_pylist()
    assert len(found) == 10
    assert [one["ended_at"] for one in found] == sorted(
        (one["ended_at"] for one in found), reverse=True
    )
    assert found[0]["state"] == "running"
    found = own_answer(session, group.replace("billing", "gone")).to_pylist()
    assert {one["source_offset"] for one in found} == {7}
    (until,) = {one["until"] for one in found} - {one["since"] for one in found}
    found = own_answer(session, group.replace("billing", "active")).to_pylist()
    assert [one["source_offset"] for one in found][-2:] == [9, 10]
    assert all(earlier["until"] == later["since"] for earlier, later in pairwise(found))
    assert found[-1]["until"] is None
    assert until == found[3]["since"]


def test_the_past_is_there_as_it_was_at_any_time(session, past):
    """The pairs as of a time are those of the last cycle before it."""
    opened(session, past)

    def at(minutes):
        then = NOON + DAY / 2 - 4.5 * MINUTE + minutes * MINUTE
        time = f"timestamp_millis(bigint({then} * 1000))"
        found = own_answer(
            session,
            "SELECT `group`, source_offset FROM pairs"  # noqa: S608 (of a number)
            f" WHERE since <= {time} AND (until > {time} OR until IS NULL)",
        ).to_pylist()
        return {one["group"]: one["source_offset"] for one in found}

    assert at(3.5) == {"idle": 7, "inexact": 3, "active": 3, "gone": 7}
    assert at(6.5) == {"idle": 7, "inexact": 6, "active": 6}
    assert at(99) == {"idle": 7, "active": 10}


def test_only_what_is_asked_for_is_read(session, past):
    everything = opened(session, past).files
    start = NOON + DAY / 2 + MINUTE
    assert opened(session, past, start=start).files < everything
    assert min(ended(session)) >= start
    assert opened(session, past, flows=["B->A"]).files == 0
    assert ask(session, HistoryQuery.STUCK) == []


@pytest.mark.parametrize("spoil", [damage, lambda path: spoiled(path, "9")])
def test_a_file_that_cannot_be_read_is_named(session, past, spoil):
    """Once a query has read it. The other files answer."""
    strange = files(past / "cycles")[-1]
    spoil(strange)
    found = opened(session, past)
    assert 0 < len(ended(session)) < 10
    (warning,) = found.warnings
    assert str(strange) in warning


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT nothing FROM pairs", "SELECT 1 FROM rows"])
def test_a_question_that_is_none_is_bad_usage(session, tmp_path, sql):
    """Spark's message without a stack, and the names of the views."""
    opened(session, tmp_path)
    with pytest.raises(UsageError, match="the views are `cycles` and `pairs`"):
        own_answer(session, sql)


@pytest.mark.thorough
def test_the_command_answers(tmp_path):
    """As a process: JSON lines on standard output, the number of files on standard error. Tasks
    resolve the store's URI from the configuration."""
    directory = tmp_path / "history"
    # At noon: of cycles over midnight there are more files.
    past = Past(directory, started=(time.time() // DAY - 0.5) * DAY)
    for n in range(1, 6):
        past.keep(row("billing", offset=n), row("active", offset=n, **SKIPPED))
    extra = "history.dir = ${env:TSOFFSET_HISTORY}", "spark.master = local[2]"
    config = properties_file(tmp_path, nowhere(), nowhere(), *extra)
    words = ("--cycles", "4", "--format", "json", "stuck")
    command = start(
        "history", "-c", str(config), *words, env={"TSOFFSET_HISTORY": f"local://{directory}"}
    )
    output, said = command.communicate()
    assert command.returncode == 0, said
    (found,) = map(json.loads, output.splitlines())
    assert (found["group"], found["cycles"]) == ("active", 4)
    assert "1 row from 6 files of history" in said
