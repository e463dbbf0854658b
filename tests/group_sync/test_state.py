"""A flow's cache in a folder or a store: what is read back, and how other files are treated."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.group_sync.test_tables import OFFSET, PARTITION_CACHES, TEXT
from tests.memory_flows import RaisingGroups, RaisingTopics, flow
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync import state
from tsoffset.group_sync.arrow_tables import arrow_schema
from tsoffset.group_sync.state import FlowCache, StateFile, reverse_commits
from tsoffset.group_sync.tables import CACHE, PARTITIONS, REVERSE_COMMITS, empty
from tsoffset.group_sync.translate import partition_caches, partitions_frame
from tsoffset.model import TopicPartition
from tsoffset.rule import partition_cache as rule
from tsoffset.rule.partition_cache import LogEnds, LogIdentity, PartitionCache

KNOWN = st.tuples(*[OFFSET] * 4, *[st.none() | OFFSET] * 4)
PAIR = st.tuples(TEXT, TEXT, st.integers(0, 2**31 - 1))
REMEMBERED = st.builds(
    lambda place, known, last: (*place, *known, *last),
    PAIR,
    KNOWN | st.just((None,) * 8),
    st.tuples(OFFSET, OFFSET, st.none() | st.booleans(), *[st.none() | OFFSET] * 2)
    | st.just((None,) * 5),
)


def cache(offset: int = 7) -> FlowCache:
    """Of one group and one partition."""
    same = LogIdentity("id", 3)
    one = PartitionCache(
        TopicPartition("orders", 1), True, False, same, same, LogEnds(9, 9, 9), ((offset, offset),)
    )
    known = (*[offset] * 4, None, None, None, None)
    last = offset, offset, True, None, None
    return FlowCache(
        pairs=pl.DataFrame([("billing", "orders", 1, *known, *last)], CACHE, orient="row"),
        partitions=partitions_frame([one]),
        rows=4711,
        binding="these clusters",
    )


def contents(one: FlowCache) -> tuple[object, ...]:
    return one.pairs.rows(), partition_caches(one.partitions), one.rows, one.binding


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARTITION_CACHES, st.lists(REMEMBERED, max_size=4), st.none() | st.integers(0, 10**9), TEXT)
def test_what_is_saved_comes_back(tmp_path, caches, pairs, rows, flow):
    """Whatever names and offsets it holds."""
    file = StateFile(tmp_path, f"{flow}->B")
    saved = FlowCache(
        pairs=pl.DataFrame(pairs, CACHE, orient="row"),
        partitions=partitions_frame(caches),
        rows=rows,
        binding="bound",
    )
    assert file.save(saved) is None
    back, warning = file.load()
    assert warning is None
    assert contents(back) == contents(saved)


def test_a_folder_is_made_and_holds_one_file_a_flow(tmp_path):
    """Names of flows may hold what a file's name may not."""
    folder = tmp_path / "a" / "b"
    files = [StateFile(folder, "A->B"), StateFile(folder, "../A->B")]
    for number, file in enumerate(files):
        assert file.save(cache(number)) is None
    assert sorted(folder.iterdir()) == sorted({file.path for file in files})
    assert len(set(folder.iterdir())) == 2
    assert [contents(file.load()[0]) for file in files] == [contents(cache(n)) for n in range(2)]


@pytest.mark.parametrize(
    ("narrowing", "pairs"),
    [(Narrowing("billing"), 1), (Narrowing("other"), 0), (Narrowing(topics="orders"), 1)],
)
def test_a_narrowed_cycle_reads_the_state_and_leaves_none(narrowing, pairs, tmp_path):
    """It knows nothing of the other groups, and of its own what the whole cycles have left; that
    these had many rows says nothing of it."""
    whole, settings = StateFile(tmp_path, "A->B"), narrowing.apply(flow())
    narrowed = StateFile.of(str(tmp_path), settings, narrowing)
    assert narrowed.save(cache(8)) is None
    assert list(tmp_path.iterdir()) == []
    assert whole.save(cache()) is None
    found, _ = narrowed.load()
    assert (len(found.pairs), len(found.partitions)) == (pairs, pairs)
    assert (found.rows, found.binding) == (None, "these clusters")
    assert narrowed.save(cache(8)) is None
    assert contents(whole.load()[0]) == contents(cache())


def test_what_another_version_has_proven_is_bound_otherwise(monkeypatch):
    """A rule that was corrected does not commit what the old one took for proven."""
    before = rule.binding(flow(), ("a", "b"))
    assert rule.binding(flow(), ("a", "b")) == before
    monkeypatch.setattr(rule, "__version__", "0.0.1")
    assert rule.binding(flow(), ("a", "b")) != before


def test_a_group_for_which_the_users_filter_raises_has_no_state_in_a_narrowed_cycle(tmp_path):
    """The cycle reports that group, and syncs the others."""
    assert StateFile(tmp_path, "A->B").save(cache()) is None
    narrowing = Narrowing("billing")
    settings = narrowing.apply(flow(group_filter=RaisingGroups()))
    found, warning = StateFile.of(str(tmp_path), settings, narrowing).load()
    assert (len(found.pairs), warning) == (0, None)


def test_there_is_no_warning_where_there_is_no_file_yet(tmp_path):
    """The first cycle ever begins with nothing."""
    found, warning = StateFile(tmp_path / "nowhere", "A->B").load()
    assert (contents(found), warning) == (contents(FlowCache()), None)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (lambda whole: whole[:-1], "damaged"),
        (lambda whole: whole + b"\0", "damaged"),
        (lambda _: b"", "not a state file of tsoffset"),
        (lambda _: b"PAR1 and so on", "not a state file of tsoffset"),
        (lambda whole: whole.replace(b"state 5 ", b"state 3 ", 1), "another version"),
        (lambda whole: whole.replace(b"state 5 ", b"state 10 ", 1), "another version"),
    ],
)
def test_a_file_that_is_none_is_a_warning_and_nothing_else(tmp_path, spoil, why):
    """Cut off, foreign or of another version: named with its path, and replaced by the next."""
    file = StateFile(tmp_path, "A->B")
    file.save(cache())
    file.path.write_bytes(spoil(file.path.read_bytes()))
    found, warning = file.load()
    assert contents(found) == contents(FlowCache())
    assert why in warning
    assert str(file.path) in warning
    assert file.save(cache(8)) is None
    assert contents(file.load()[0]) == contents(cache(8))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_flipped_bit_is_read_as_an_offset(tmp_path, data):
    """A wrong offset would be taken for a proven one, so a file that differs from what was
    written in a single bit is not read at all."""
    file = StateFile(tmp_path, "A->B")
    file.save(cache())
    whole = bytearray(file.path.read_bytes())
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[at // 8] ^= 1 << at % 8
    file.path.write_bytes(whole)
    found, warning = file.load()
    assert contents(found) == contents(FlowCache())
    assert warning is not None


def test_tables_of_another_shape_are_not_used(tmp_path, monkeypatch):
    """A file whose digest is right, with a column that this version does not know."""
    file = StateFile(tmp_path, "A->B")
    another = arrow_schema({**PARTITIONS, "more": pl.Int64})
    with monkeypatch.context() as version:
        version.setattr(state, "_PARTITIONS", another)
        file.save(cache())
    found, warning = file.load()
    assert contents(found) == contents(FlowCache())
    assert "not as expected" in str(warning)


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    """A folder that cannot be made, or a file that cannot be replaced: a warning with the reason,
    and neither half a file nor a file beside it."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    warning = StateFile(blocked / "state", "A->B").save(cache())
    assert "write state" in warning
    assert "may undo the reset of a group" in warning
    file = StateFile(tmp_path / "state", "A->B")
    file.path.mkdir(parents=True)
    assert "Is a directory" in str(file.save(cache()))
    assert list((tmp_path / "state").iterdir()) == [file.path]
    assert "Is a directory" in str(file.load()[1])


def test_two_processes_of_one_number_do_not_meet(tmp_path, monkeypatch):
    """The first process of each container has the id 1. Two such processes may write at once, and
    the file of the last one is whole."""
    file = StateFile(tmp_path, "A->B")
    others: list[str | None] = []

    def other_writes(_):
        monkeypatch.undo()
        others.append(file.save(cache(8)))

    monkeypatch.setattr(os, "fsync", other_writes)
    assert file.save(cache(7)) is None
    assert others == [None]
    assert contents(file.load()[0]) == contents(cache(7))
    assert list(tmp_path.iterdir()) == [file.path]


def test_what_a_killed_process_left_is_swept(tmp_path, monkeypatch):
    """The next write removes a partial file that is an hour old. It keeps younger ones, which
    another process may still be writing, and those of other flows."""

    def killed(_):
        raise SystemExit

    def left_by(one):
        before = set(tmp_path.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", killed)
            with pytest.raises(SystemExit):
                one.save(cache())
        (half,) = set(tmp_path.iterdir()) - before
        return half

    file, other = StateFile(tmp_path, "A->B"), StateFile(tmp_path, "A->C")
    old, young, others = left_by(file), left_by(file), left_by(other)
    for half in (old, others):
        os.utime(half, (0, 0))
    assert file.save(cache()) is None
    assert set(tmp_path.iterdir()) == {file.path, young, others}


def test_a_file_that_never_ends_holds_no_cycle(tmp_path):
    """A pipe without a writer, or a device, in place of the file causes a warning, and is
    replaced."""
    file = StateFile(tmp_path, "A->B")
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(file.path)
        _, warning = file.load()
        assert "no regular file" in warning
        assert file.save(cache()) is None
        assert file.load()[1] is None
        Path(file.path).unlink()


def test_nobody_else_may_write_the_file(tmp_path):
    """Who could change it could say where groups resume; it is the user's alone."""
    before = os.umask(0)
    try:
        file = StateFile(tmp_path, "A->B")
        file.save(cache())
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_what_is_of_other_clusters_is_dropped_as_a_whole():
    """Another cluster id, another setting: nothing of it is used, and the caller is told. What the
    other flow has committed is not of this one, and still protects a reset."""
    found = cache()
    found.reverse = reverse = empty(REVERSE_COMMITS)
    assert found.bind("these clusters")
    assert not found.bind("others")
    assert contents(found) == contents(FlowCache(binding="others"))
    assert found.bind("others")
    assert found.reverse is reverse


def test_the_reverse_flows_commits_are_kept_while_its_state_cannot_be_read(tmp_path):
    """A store that fails for a moment does not end a reset; a state that was deleted does. Topics
    that the reverse flow no longer selects have none."""
    here, back = flow("A", "B"), flow("B", "A")
    file = StateFile(tmp_path, back.name)
    saved = cache()
    saved.pairs = saved.pairs.with_columns(source_topic=pl.lit("A.orders"))
    file.save(saved)
    known = reverse_commits(str(tmp_path), here, (here, back), None)
    assert known.rows() == [("billing", "orders", 1, 7, 7, True)]
    without = replace(back, topic_filter=RaisingTopics())
    assert reverse_commits(str(tmp_path), here, (here, without), known).is_empty()
    Path(file.path).write_bytes(b"damaged")
    assert reverse_commits(str(tmp_path), here, (here, back), known).equals(known)
    Path(file.path).unlink()
    assert reverse_commits(str(tmp_path), here, (here, back), known).is_empty()
    assert reverse_commits(None, here, (here, back), known).is_empty()
    assert reverse_commits(str(tmp_path), here, (here,), known) is None


def test_what_the_file_says_already_is_not_written_again(tmp_path):
    """A flow in which nothing moves writes nothing; a damaged file is written again."""
    file = StateFile(tmp_path, "A->B")
    file.save(cache())
    written = file.path.stat().st_ino
    file.save(cache())
    assert file.path.stat().st_ino == written
    file.path.write_bytes(file.path.read_bytes()[:-1] + b"?")
    file.save(cache())
    assert file.load()[1] is None
    assert file.path.stat().st_ino != written
