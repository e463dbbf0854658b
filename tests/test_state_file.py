"""A flow's carry-over in a folder: what comes back of it, and what becomes of other files."""

import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsoffset.cycle.work import Cost
from tsoffset.flow.narrowing import Narrowing
from tsoffset.model import TopicPartition
from tsoffset.rule.carry_over import KnownPosition, LogEnds, LogIdentity, PartitionCarryOver
from tsoffset.spark.carry_over import (
    PartitionRows,
    carry_over_table,
    carry_overs_of,
    merge_reports,
    report,
)
from tsoffset.spark.flow import FlowCarryOver
from tsoffset.spark.schema import CARRY_OVER, LAST_COMMITS, table
from tsoffset.spark.state import StateFile

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OFFSET = st.integers(0, 2**63 - 1)
EPOCH = st.integers(0, 2**31 - 1)
IDENTITY = st.builds(LogIdentity, TEXT, EPOCH)
KNOWN = st.builds(KnownPosition, OFFSET, OFFSET, OFFSET, st.none() | OFFSET, st.booleans())
PAIRS = st.lists(st.tuples(OFFSET, OFFSET), max_size=5).map(tuple)
CARRY_OVERS = st.lists(
    st.builds(
        PartitionCarryOver,
        st.builds(TopicPartition, TEXT, EPOCH),
        st.booleans(),
        st.booleans(),
        IDENTITY,
        IDENTITY,
        st.builds(LogEnds, OFFSET, OFFSET, OFFSET),
        st.dictionaries(OFFSET, KNOWN, max_size=5),
        PAIRS,
        st.none() | st.tuples(OFFSET, OFFSET),
    ),
    max_size=4,
    unique_by=lambda carry_over: carry_over.source,
)


def carry_over(offset: int = 7, binding: str = "these clusters") -> FlowCarryOver:
    """Of one group and one partition."""
    same = LogIdentity("id", 3)
    known = KnownPosition(offset, offset, offset, None, True)
    one = PartitionCarryOver(
        TopicPartition("orders", 1), True, False, same, same, LogEnds(9, 9, 9), {offset: known}
    )
    return FlowCarryOver(
        commits=table(LAST_COMMITS, [("billing", "orders", 1, offset, offset)]),
        partitions=carry_over_table([one]),
        rows=4711,
        binding=binding,
    )


def contents(one: FlowCarryOver) -> tuple[object, ...]:
    assert one.commits is not None
    assert one.partitions is not None
    return one.commits.to_pylist(), carry_overs_of(one.partitions), one.rows, one.binding


@settings(deadline=None)
@given(CARRY_OVERS)
def test_carry_overs_survive_the_way_between_driver_and_tasks(
    carry_overs: list[PartitionCarryOver],
) -> None:
    """What tasks report is what the next cycle's tasks are given, costs added up."""
    reports = [report([one], Cost(1, 1, 2, 3, 4, 5)) for one in carry_overs]
    partitions, cost = merge_reports(reports)
    assert carry_overs_of(partitions) == {one.source: one for one in carry_overs}
    assert cost == Cost(*(len(carry_overs) * each for each in (1, 1, 2, 3, 4, 5)))
    rows = PartitionRows(partitions)
    for one in carry_overs:
        found = rows.of([one.source, TopicPartition("nobody's", 0)])
        assert carry_overs_of(found) == {one.source: one}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CARRY_OVERS, st.none() | st.integers(0, 10**9), TEXT)
def test_what_is_saved_comes_back(
    tmp_path: Path, carry_overs: list[PartitionCarryOver], rows: int | None, flow: str
) -> None:
    """Whatever names and offsets it holds."""
    file = StateFile(tmp_path, f"{flow}->B")
    saved = FlowCarryOver(
        commits=table(LAST_COMMITS, [(m.source.topic, *["t"], 1, 2, 3) for m in carry_overs]),
        partitions=carry_over_table(carry_overs),
        rows=rows,
        binding="bound",
    )
    assert file.save(saved) is None
    back, warning = file.load()
    assert warning is None
    assert contents(back) == contents(saved)


def test_a_folder_is_made_and_holds_one_file_a_flow(tmp_path: Path) -> None:
    """Names of flows may hold what a file's name may not; a narrowed cycle, which knows nothing
    of the other groups, has a file of its own."""
    folder = tmp_path / "a" / "b"
    files = [
        StateFile(folder, "A->B"),
        StateFile(folder, "../A->B"),
        StateFile(folder, "A->B", Narrowing(groups="billing")),
        StateFile(folder, "A->B", Narrowing(topics="billing")),
    ]
    for number, file in enumerate(files):
        assert file.save(carry_over(number)) is None
    assert sorted(folder.iterdir()) == sorted({file.path for file in files})
    assert len(set(folder.iterdir())) == 4
    assert [contents(file.load()[0]) for file in files] == [
        contents(carry_over(n)) for n in range(4)
    ]


def test_there_is_no_warning_where_there_is_no_file_yet(tmp_path: Path) -> None:
    """The first cycle ever begins with nothing."""
    found, warning = StateFile(tmp_path / "nowhere", "A->B").load()
    assert (found, warning) == (FlowCarryOver(), None)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (lambda whole: whole[:-1], "damaged"),
        (lambda whole: whole + b"\0", "damaged"),
        (lambda _: b"", "no state of tsoffset"),
        (lambda _: b"PAR1 and so on", "no state of tsoffset"),
        (lambda whole: whole.replace(b"state 1 ", b"state 0 ", 1), "another version"),
        (lambda whole: whole.replace(b"state 1 ", b"state 10 ", 1), "another version"),
    ],
)
def test_a_file_that_is_none_is_a_warning_and_nothing_else(
    tmp_path: Path, spoil: object, why: str
) -> None:
    """Cut off, foreign or of another version: named with its path, and replaced by the next."""
    file = StateFile(tmp_path, "A->B")
    file.save(carry_over())
    file.path.write_bytes(spoil(file.path.read_bytes()))  # type: ignore[operator]
    found, warning = file.load()
    assert found == FlowCarryOver()
    assert warning is not None
    assert why in warning
    assert str(file.path) in warning
    assert file.save(carry_over(8)) is None
    assert contents(file.load()[0]) == contents(carry_over(8))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_flipped_bit_is_read_as_an_offset(tmp_path: Path, data: st.DataObject) -> None:
    """A wrong offset would be taken for a proven one, so a file that differs from what was
    written in a single bit is not read at all."""
    file = StateFile(tmp_path, "A->B")
    file.save(carry_over())
    whole = bytearray(file.path.read_bytes())
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[at // 8] ^= 1 << at % 8
    file.path.write_bytes(whole)
    found, warning = file.load()
    assert found == FlowCarryOver()
    assert warning is not None


def test_tables_of_another_shape_are_not_used(tmp_path: Path) -> None:
    """A file whose digest is right, with a column that this version does not know."""
    file = StateFile(tmp_path, "A->B")
    strange = carry_over()
    assert strange.partitions is not None
    strange.partitions = strange.partitions.append_column("more", pa.array([1]))
    file.save(strange)
    found, warning = file.load()
    assert found == FlowCarryOver()
    assert "not as expected" in str(warning)


def test_a_file_without_the_frontier_is_still_read(tmp_path: Path) -> None:
    """The form before this one: all that it holds is used, and the frontier is found anew."""
    file = StateFile(tmp_path, "A->B")
    before = carry_over()
    assert before.partitions is not None
    before.partitions = before.partitions.drop_columns(["frontier_source", "frontier_target"])
    file.save(before)
    found, warning = file.load()
    assert warning is None
    assert contents(found) == contents(carry_over())
    assert found.partitions is not None
    assert found.partitions.schema == CARRY_OVER
    assert [one.frontier for one in carry_overs_of(found.partitions).values()] == [None]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """A folder that cannot be made, or a file that cannot be replaced: a warning with the reason,
    and neither half a file nor a file beside it."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    warning = StateFile(blocked / "state", "A->B").save(carry_over())
    assert warning is not None
    assert "write state" in warning
    file = StateFile(tmp_path / "state", "A->B")
    file.path.mkdir(parents=True)
    assert "Is a directory" in str(file.save(carry_over()))
    assert list(file.folder.iterdir()) == [file.path]
    assert "Is a directory" in str(file.load()[1])


def test_two_processes_of_one_number_do_not_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process of each container is number 1: one that writes while another does gets in
    nobody's way, and what the last one wrote is whole."""
    file = StateFile(tmp_path, "A->B")
    others: list[str | None] = []

    def other_writes(_: int) -> None:
        monkeypatch.undo()
        others.append(file.save(carry_over(8)))

    monkeypatch.setattr(os, "fsync", other_writes)
    assert file.save(carry_over(7)) is None
    assert others == [None]
    assert contents(file.load()[0]) == contents(carry_over(7))
    assert list(tmp_path.iterdir()) == [file.path]


def test_what_a_killed_process_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file that is an hour old goes with the next write; a younger one may be another
    process's, which is still at it, and another flow's is not ours."""

    def killed(_: int) -> None:
        raise SystemExit

    def left_by(one: StateFile) -> Path:
        before = set(tmp_path.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", killed)
            with pytest.raises(SystemExit):
                one.save(carry_over())
        (half,) = set(tmp_path.iterdir()) - before
        return half

    file, other = StateFile(tmp_path, "A->B"), StateFile(tmp_path, "A->C")
    old, young, others = left_by(file), left_by(file), left_by(other)
    for half in (old, others):
        os.utime(half, (0, 0))
    assert file.save(carry_over()) is None
    assert set(tmp_path.iterdir()) == {file.path, young, others}


def test_nobody_else_may_write_the_file(tmp_path: Path) -> None:
    """Who could change it could say where groups resume; it is the user's alone."""
    before = os.umask(0)
    try:
        file = StateFile(tmp_path, "A->B")
        file.save(carry_over())
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_what_is_of_other_clusters_is_dropped_as_a_whole() -> None:
    """Another cluster id, another setting: nothing of it is used, and the caller is told."""
    found = carry_over()
    assert found.bind("these clusters")
    assert found.partitions is not None
    assert not found.bind("others")
    assert found == FlowCarryOver(binding="others")
    assert found.bind("others")


def test_an_empty_carry_over_is_a_table_too(tmp_path: Path) -> None:
    """A flow without groups saves and loads as any other."""
    file = StateFile(tmp_path, "A->B")
    file.save(FlowCarryOver(binding="x"))
    found, warning = file.load()
    assert warning is None
    assert found.partitions is not None
    assert found.partitions.schema == CARRY_OVER
