"""Options and lists that match nothing: bad usage with what is near, in every command that narrows,
before Spark is started."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import Result

from tests.configured import properties_file
from tests.invoking import in_memory
from tests.memory_flows import Estate, mirrored_estate
from tests.past_cycles import Past
from tsoffset.commands import history
from tsoffset.commands.scope import warn_of_no_match
from tsoffset.config.selection import Selector
from tsoffset.errors import UsageError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.spark import session
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import MemoryCluster

OF_SOURCE = "check", "plan", "sync", "export", "compare", "failover"
WITHOUT_SOURCE = "failover without source"
ALL = (*OF_SOURCE, WITHOUT_SOURCE, "snapshot", "restore")


def run(
    command: str, estate: Estate, folder: Path, *words: str, lines: Sequence[str] = ()
) -> Result:
    """A command over clusters in memory; what it needs besides is given to it."""
    if command == WITHOUT_SOURCE:
        command, estate["A"].unreachable = "failover", True
    if command == "snapshot":
        words += ("-o", str(folder / "one.snapshot"))
    if command == "restore":
        whole = folder / "whole.snapshot"
        if not whole.exists():
            in_memory(estate, folder, "snapshot", "-o", str(whole))
        words += (str(whole), "--dry-run")
    return in_memory(estate, folder, command, *words, lines=lines)


@pytest.fixture
def estate() -> Estate:
    """A group `billing` with commits on both sides."""
    estate = mirrored_estate(100, billing=60)
    estate.commit("billing", "A.orders", 60, on="B")
    return estate


def refusal(
    command: str, estate: Estate, folder: Path, *words: str, lines: Sequence[str] = ()
) -> str:
    """Why the command ends as bad usage. It has printed nothing that could be followed: what
    `check` prints are its findings, since one may say why this user does not see the name."""
    result = run(command, estate, folder, *words, lines=lines)
    assert result.exit_code == 2, result.output
    assert (result.stdout == "") is (command != "check")
    return result.stderr


@pytest.mark.parametrize("command", ALL)
def test_a_group_that_no_name_matches_is_bad_usage(command, estate, tmp_path):
    """The sentence has the name that is near."""
    why = refusal(command, estate, tmp_path, "--groups", "biling")
    assert "No group" in why
    assert "matches `biling`. Did you mean `billing`?" in why


@pytest.mark.parametrize("command", ["plan", "failover", WITHOUT_SOURCE, "snapshot"])
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
    refusal(command, estate, tmp_path, "--groups", "biling")
    assert unseen == []


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def spark_session(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("Spark is started")

    monkeypatch.setattr(session, "spark_session", spark_session)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clusters that are connected to, one after the other."""
    found: list[str] = []
    connect = Estate.connect

    def noted(estate: Estate, settings: ClusterSettings) -> MemoryCluster:
        found.append(settings.alias)
        return connect(estate, settings)

    monkeypatch.setattr(Estate, "connect", noted)
    return found


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("command", ["plan", "sync", "export", "compare", "failover"])
def test_a_cluster_that_hangs_is_waited_for_once(command, estate, tmp_path, connected):
    """The answer that it cannot be reached holds for the whole command, so Spark is not started."""
    estate["A"].unreachable = True
    assert run(command, estate, tmp_path).exit_code == 3
    assert connected.count("A") == 1


def test_so_is_the_target_of_a_snapshot(estate, tmp_path, connected):
    """`--groups` lists the target's groups, and so does the snapshot."""
    estate["B"].unreachable = True
    assert run("snapshot", estate, tmp_path, "--groups", "billing").exit_code == 3
    assert connected == ["B"]


@pytest.mark.usefixtures("no_spark")
def test_whether_a_group_is_ahead_of_a_lost_source_is_not_known(estate, tmp_path, monkeypatch):
    """`sync --allow-rewind` says nothing about its groups."""
    estate["A"].unreachable = True
    rewind = "tsoffset.commands.snapshots.run.rewind"
    monkeypatch.setattr(rewind, lambda *_, **__: pytest.fail("rewound"))
    assert run("sync", estate, tmp_path, "--allow-rewind", "--yes").exit_code == 3


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("command", ["sync", "failover"])
def test_unreadable_lists_are_refused_before_spark_is_started(command, estate, tmp_path):
    """They may exclude groups, so nothing is committed."""
    (tmp_path / "A-%3EB.lists.json").write_text("{")
    result = run(command, estate, tmp_path, lines=(f"state.dir = {tmp_path}",))
    assert result.exit_code == 1
    assert "nothing is committed until then" in result.stderr


@pytest.mark.parametrize("command", [*OF_SOURCE, "restore"])
def test_so_is_a_topic(command, estate, tmp_path):
    """By its name on the source; a snapshot has the target's names."""
    why = refusal(command, estate, tmp_path, "--topics", "ordrs")
    assert "matches `ordrs`. Did you mean `" in why


@pytest.mark.parametrize("command", OF_SOURCE)
def test_so_are_lists_of_the_file(command, estate, tmp_path):
    """What the file's lists let through is nothing: the sentence names the list; and a group that
    they leave out is not offered."""
    why = refusal(command, estate, tmp_path, lines=("groups = biling",))
    assert "`groups` and `groups.exclude` of flow A->B" in why
    assert "Did you mean `billing`?" in why
    lines = ("groups.exclude = billing",)
    why = refusal(command, estate, tmp_path, "--groups", "billing", lines=lines)
    assert "exclude `billing`" in why


def test_a_cluster_without_groups_is_said(tmp_path):
    """Nothing to fail over is no failover that went well; other commands go on, and warn. So does
    `snapshot`, which would put nothing back."""
    estate = mirrored_estate(10)
    none = "Cluster A shows this user no consumer groups"
    assert none in refusal("failover", estate, tmp_path)
    for command, said in (("plan", none), ("snapshot", "Cluster B has no committed offset")):
        result = run(command, estate, tmp_path)
        assert (result.exit_code, said in result.stderr) == (0, True), result.output


def test_groups_without_offsets_to_sync_are_said(tmp_path):
    """Brokers hide topics that the user may not describe, and the offsets on them: `plan` does not
    end as if all were well."""
    estate = mirrored_estate(10)
    estate.commit("billing", "elsewhere", 5)
    result = run("plan", estate, tmp_path, lines=("topics = orders",))
    assert result.exit_code == 0, result.output
    assert "nothing is synced, because cluster A shows this user no group" in result.stderr
    assert "run `tsoffset check`" in result.stderr


def test_a_filter_that_raises_may_have_a_match(estate, tmp_path):
    """The command reports the group by itself."""
    lines = ("group.filter.class = tests.memory_flows:RaisingGroups",)
    result = run("plan", estate, tmp_path, lines=lines)
    assert (result.exit_code, "raised KeyError" in result.stdout) == (1, True), result.output


def test_a_daemon_that_matches_nothing_says_so_and_runs(estate, tmp_path, monkeypatch, capsys):
    """The group may still be created; without options that narrow, the page and metrics tell."""
    file = properties_file(tmp_path, "a:1", "b:1")
    monkeypatch.setattr("tsoffset.kafka.cluster.KafkaCluster", estate.connect)
    for groups in ("biling", "billing", None):
        warn_of_no_match(Selector(file, (), groups, None).select(), Notices())
    (said,) = capsys.readouterr().err.splitlines()
    assert "No group listed by A matches `biling`. Did you mean `billing`?" in said


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
    words = ("--groups", "billing", "--topics", "orders")
    assert run("plan", estate, tmp_path, *words, lines=lines).exit_code == 0
    estate["A"].unreachable = estate["B"].unreachable = True
    assert run("plan", estate, tmp_path, "--groups", "biling").exit_code == 3
