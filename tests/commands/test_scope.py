"""Options and lists that match nothing: bad usage with what is near, in every command that narrows,
before Spark is started."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.configured import properties_file
from tests.memory_flows import Estate, RaisingGroups, flow, mirrored_estate
from tests.past_cycles import Past
from tsoffset.commands import history
from tsoffset.commands.check.flow_check import run_check
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.commands.compare.run import run_compare
from tsoffset.commands.export import run_export
from tsoffset.commands.failover.run import run_failover
from tsoffset.commands.plan_sync import run_once
from tsoffset.commands.scope import require_match, warn_of_no_match
from tsoffset.commands.snapshots.run import run_restore, run_snapshot, write_snapshot
from tsoffset.config.selection import Selection, Selector
from tsoffset.errors import ClusterUnreachable, CycleFailed, UsageError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.spark import session
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.testing.memory_cluster import MemoryCluster

Command = Callable[[Selection, Estate, Output, Path], int]


def plan(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_once(selection, output, Notices(), commit=False, connect=estate.connect)


def sync(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_once(selection, output, Notices(), commit=True, connect=estate.connect)


def export(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_export(
        selection, output, Notices(), with_group=True, state=None, connect=estate.connect
    )


def compare(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_compare(selection, CompareOptions(), output, Notices(), connect=estate.connect)


def failover(
    selection: Selection, estate: Estate, output: Output, _: Path, *, dry_run: bool = False
) -> int:
    return run_failover(
        selection,
        output,
        Notices(),
        timeout_seconds=0,
        pause=not dry_run,
        resume=False,
        dry_run=dry_run,
        connect=estate.connect,
    )


def failover_without_source(
    selection: Selection, estate: Estate, output: Output, folder: Path
) -> int:
    estate["A"].unreachable = True
    return failover(selection, estate, output, folder)


def check(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_check(selection, output, Notices(), estate.connect)


def snapshot(selection: Selection, estate: Estate, output: Output, folder: Path) -> int:
    path = folder / "one.snapshot"
    return run_snapshot(selection, path, output, Notices(), connect=estate.connect)


def restore(selection: Selection, estate: Estate, output: Output, folder: Path) -> int:
    whole = selection.settings.flows[0]
    _, path = write_snapshot(whole, estate["B"], None, folder / "whole.snapshot")
    return run_restore(
        selection.settings,
        path,
        output,
        Notices(),
        groups=selection.narrowing.groups,
        topics=selection.narrowing.topics,
        dry_run=True,
        yes=False,
        connect=estate.connect,
    )


ALL = (
    *(check, plan, sync, export, compare, failover),
    *(failover_without_source, snapshot, restore),
)
OF_SOURCE = check, plan, sync, export, compare, failover


@pytest.fixture
def estate() -> Estate:
    """A group `billing` with commits on both sides."""
    estate = mirrored_estate(100, billing=60)
    estate.commit("billing", "A.orders", 60, on="B")
    return estate


def outcome(
    command: Command, estate: Estate, folder: Path, *lines: str, **narrowed: Any
) -> tuple[str, str]:
    """Why the command ends as bad usage, and what it has printed before."""
    file = properties_file(folder, "a:1", "b:1", *lines)
    words = {"groups": None, "topics": None} | narrowed
    out = io.StringIO()
    with pytest.raises(UsageError) as caught:
        command(Selector(file, (), **words).select(), estate, Output(out, Format.TABLE), folder)
    return str(caught.value), out.getvalue()


@pytest.mark.parametrize("command", ALL)
def test_a_group_that_no_name_matches_is_bad_usage(command, estate, tmp_path):
    """The sentence has the name that is near, and nothing is printed that could be followed: what
    `check` prints are its findings, since one may say why this user does not see the name."""
    why, out = outcome(command, estate, tmp_path, groups="biling")
    assert "No group" in why
    assert "matches `biling`. Did you mean `billing`?" in why
    assert (out == "") is (command is not check)


@pytest.mark.parametrize("command", [plan, failover, failover_without_source, snapshot])
def test_a_cluster_that_hangs_is_waited_for_with_progress(command, estate, tmp_path, monkeypatch):
    """A hung broker costs most of a minute: a person sees which cluster the command waits for."""
    shown: list[str] = []
    unseen: list[str] = []

    @contextmanager
    def progress(_: Notices, title: str) -> Iterator[None]:
        assert not shown, "only one progress can be shown"
        shown.append(title)
        yield
        shown.clear()

    def groups(cluster: MemoryCluster) -> Any:
        unseen.extend(() if any(cluster.alias in title for title in shown) else (cluster.alias,))
        return asked(cluster)

    asked = MemoryCluster.groups
    monkeypatch.setattr(MemoryCluster, "groups", groups)
    monkeypatch.setattr(Notices, "progress", progress)
    outcome(command, estate, tmp_path, groups="biling")
    assert unseen == []


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def spark_session(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("Spark is started")

    monkeypatch.setattr(session, "spark_session", spark_session)


@pytest.mark.parametrize("command", [plan, sync, export, compare, failover])
def test_a_cluster_that_hangs_is_waited_for_once(command, estate, tmp_path, monkeypatch, no_spark):
    """The answer that it cannot be reached holds for the whole command, so Spark is not started."""
    estate["A"].unreachable = True
    connected: list[str] = []

    def connect(_: Estate, settings: ClusterSettings) -> MemoryCluster:
        connected.append(settings.alias)
        return estate[settings.alias]

    monkeypatch.setattr(Estate, "connect", connect)
    selection = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    assert command(selection, estate, Output(io.StringIO(), Format.TABLE), tmp_path) == 3
    assert connected.count("A") == 1


def test_so_is_the_target_of_a_snapshot(estate, tmp_path, monkeypatch):
    """`--groups` lists the target's groups, and so does the snapshot."""
    estate["B"].unreachable = True
    connected: list[str] = []
    monkeypatch.setattr(
        Estate, "connect", lambda _, one: connected.append(one.alias) or estate[one.alias]
    )
    selection = Selector(properties_file(tmp_path, "a:1", "b:1"), (), "billing").select()
    with pytest.raises(ClusterUnreachable):
        snapshot(selection, estate, Output(io.StringIO(), Format.TABLE), tmp_path)
    assert connected == ["B"]


def test_whether_a_group_is_ahead_of_a_lost_source_is_not_known(estate, tmp_path, no_spark):
    """`sync --allow-rewind` says nothing about its groups."""
    estate["A"].unreachable = True
    selection = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    status = run_once(
        selection,
        Output(io.StringIO(), Format.TABLE),
        Notices(),
        commit=True,
        rewinds=lambda *_: pytest.fail("rewound"),
        connect=estate.connect,
    )
    assert status == 3


@pytest.mark.parametrize("command", [sync, failover])
def test_unreadable_lists_are_refused_before_spark_is_started(
    command, estate, tmp_path, capsys, no_spark
):
    """They may exclude groups, so nothing is committed."""
    (tmp_path / "A-%3EB.lists.json").write_text("{")
    file = properties_file(tmp_path, "a:1", "b:1", f"state.dir = {tmp_path}")
    try:
        status = command(
            Selector(file).select(), estate, Output(io.StringIO(), Format.TABLE), tmp_path
        )
        said = capsys.readouterr().err
    except CycleFailed as error:
        status, said = error.exit_status, str(error)
    assert (status, "nothing is committed until then" in said) == (1, True)


@pytest.mark.parametrize("command", [*OF_SOURCE, restore])
def test_so_is_a_topic(command, estate, tmp_path):
    """By its name on the source; a snapshot has the target's names."""
    why, _ = outcome(command, estate, tmp_path, topics="ordrs")
    assert "matches `ordrs`. Did you mean `" in why


@pytest.mark.parametrize("command", OF_SOURCE)
def test_so_are_lists_of_the_file(command, estate, tmp_path):
    """What the file's lists let through is nothing: the sentence names the list; and a group that
    they leave out is not offered."""
    why, _ = outcome(command, estate, tmp_path, "groups = biling")
    assert "`groups` and `groups.exclude` of flow A->B" in why
    assert "Did you mean `billing`?" in why
    why, _ = outcome(command, estate, tmp_path, "groups.exclude = billing", groups="billing")
    assert "exclude `billing`" in why


def test_a_cluster_without_groups_is_said(tmp_path, capsys):
    """Nothing to fail over is no failover that went well; other commands go on, and warn. So does
    `snapshot`, which would put nothing back."""
    estate = mirrored_estate(10)
    kept = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    assert snapshot(kept, estate, Output(io.StringIO(), Format.TABLE), tmp_path) == 0
    assert "Cluster B has no committed offset" in capsys.readouterr().err
    why, out = outcome(failover, estate, tmp_path)
    assert "Cluster A shows this user no consumer groups" in why
    assert out == ""
    selection = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    require_match(selection, Notices(), estate.connect)
    assert "Cluster A shows this user no consumer groups" in capsys.readouterr().err


def test_a_filter_that_raises_may_have_a_match(estate, tmp_path):
    """The command reports the group by itself."""
    selection = Selector(properties_file(tmp_path, "a:1", "b:1")).select()
    selection = replace(selection, flows=(flow(group_filter=RaisingGroups()),))
    require_match(selection, Notices(), estate.connect)


def test_a_daemon_that_matches_nothing_says_so_and_runs(estate, tmp_path, capsys):
    """The group may still be created; without options that narrow, the page and metrics tell."""
    file = properties_file(tmp_path, "a:1", "b:1")
    for groups in ("biling", "billing", None):
        warn_of_no_match(Selector(file, (), groups, None).select(), Notices(), estate.connect)
    (said,) = capsys.readouterr().err.splitlines()
    assert "No group matches `biling`. Did you mean `billing`?" in said


def test_an_empty_answer_of_history_is_not_about_an_unknown_group(estate, tmp_path):
    """`history --groups biling stuck` would say that nothing is stuck."""
    past = Past(tmp_path / "history")
    past.keep(*estate.sync())
    file = properties_file(tmp_path, "a:1", "b:1", f"history.dir = {past.directory}")
    settings = Selector(file).select().settings
    with pytest.raises(UsageError, match="Did you mean `billing`"):
        history._require_known_group(settings, (), "biling")
    history._require_known_group(settings, (), "bill.*")


def test_one_flow_with_a_match_is_enough(estate, tmp_path):
    """The way back has no such group yet; and of a cluster that is away the command tells."""
    lines = ("B->A.enabled = true",)
    selection = Selector(
        properties_file(tmp_path, "a:1", "b:1", *lines), (), "billing", "orders"
    ).select()
    require_match(selection, Notices(), estate.connect)
    estate["A"].unreachable = estate["B"].unreachable = True
    other = Selector(properties_file(tmp_path, "a:1", "b:1"), (), "biling", None).select()
    require_match(other, Notices(), estate.connect)
