"""MirrorMaker 2's checkpoint connector that syncs groups, and tsoffset's daemon, at the same time,
each started and ended at random; and what `tsoffset compare` says of what they leave."""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.copies import CopiedPartition
from tests.daemons import DaemonProcess, named
from tests.invoking import invoke
from tests.producing import Contents
from tests.scenarios.flows import SYNCED_GROUPS
from tests.soak.soaking import FLOW, GROUPS, MEMBERS, two_clusters
from tests.traffic import StepBack, Traffic
from tsoffset.history.files import HistoryTable, days, files_of_day
from tsoffset.lab.embedded import MirrorMaker
from tsoffset.replicators.checkpoints import decode_key, decode_value
from tsoffset.stores import store_at

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

SECONDS = 75.0
CHECKPOINTS = "A.checkpoints.internal"
SYNCING = {"groups": f"{GROUPS[0].partition('-')[0]}-.*", **SYNCED_GROUPS}
Commit = tuple[str, str, int, int]


@dataclass
class SideBySideResult:
    """What is left when all has come to rest."""

    pairs: list[dict[str, Any]]
    truth: Mapping[tuple[str, int], CopiedPartition]
    commits_judged: int
    steps_back: list[StepBack]
    by_ours: set[Commit]
    by_theirs: set[Commit]
    actions: Counter[str]
    counts: Mapping[str, int]

    def figures(self) -> str:
        verdicts = Counter(one["verdict"] for one in self.pairs)
        return (
            f"{dict(self.actions)}, {dict(self.counts)}; {self.commits_judged} commits judged, "
            f"{len(self.steps_back)} steps back, of which "
            f"{sum(self.is_ours(one) for one in self.steps_back)} by tsoffset; "
            f"{sum(one.repeated for one in self.truth.values())} copies repeated; "
            f"{len(self.pairs)} pairs: {dict(verdicts)}; re-read from MirrorMaker 2's offsets "
            f"{sum(p['records'] or 0 for p in self.pairs if p['verdict'] == 'reread')}, tsoffset's "
            f"{sum(one['ours_reread_bound'] or 0 for one in self.pairs)}"
        )

    def is_ours(self, step: StepBack) -> bool:
        """Whether tsoffset's daemon, and not MirrorMaker 2, went there."""
        to = (*step.place, step.after)
        return to in self.by_ours and to not in self.by_theirs


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[SideBySideResult]:
    """Both at work for a while under load, ended and started at random; then all is copied, both
    are ended, and what they left is compared."""
    folder = tmp_path_factory.mktemp("side-by-side")
    with ExitStack() as running:
        clusters = running.enter_context(two_clusters(folder, overrides=SYNCING))
        daemons = _Daemons(clusters.file, folder)
        running.callback(daemons.end)
        actions: Counter[str] = Counter()
        with Traffic(*clusters.links, members=MEMBERS, deletes=True, seed=15) as traffic:
            daemons.start()
            _at_random(clusters.mirror, daemons, actions)
            traffic.rest()
            daemons.cycles(2)
            judged = traffic.judge(may_go_back=True)
        daemons.end()
        clusters.mirror.stop()
        target = running.enter_context(closing(Contents(clusters.target.bootstrap)))
        result = invoke("compare", "-c", str(clusters.file), "--format", "json")
        assert result.exit_code == 0, result.output
        found = SideBySideResult(
            [json.loads(line) for line in result.stdout.splitlines()],
            traffic.logs(),
            judged,
            traffic.steps_back,
            _by_ours(folder / "history"),
            _by_theirs(target),
            actions,
            traffic.counts,
        )
        sys.stdout.write(f"\n{found.figures()}\n")
        yield found


class _Daemons:
    """`tsoffset run`, one process after the other."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._file = file
        self._folder = folder
        self._runs = 0
        self._now: DaemonProcess | None = None

    def start(self) -> None:
        """Start it, unless it runs, and wait for its first cycle."""
        if self._now is not None:
            return
        self._runs += 1
        here = self._folder / f"run-{self._runs}"
        here.mkdir()
        self._now = DaemonProcess("-c", str(self._file), folder=here)
        self._now.wait_for(lambda events: bool(named(events, "cycle_finished", FLOW)))

    def cycles(self, more: int) -> None:
        before = len(named(self._now.events(), "cycle_finished", FLOW))
        self._now.wait_for(
            lambda events: len(named(events, "cycle_finished", FLOW)) >= before + more
        )

    def end(self, *, kill: bool = False) -> None:
        if self._now is None:
            return
        if kill:
            self._now.process.kill()
            self._now.process.communicate()
        else:
            self._now.__exit__()
        self._now = None


def _at_random(mirror: MirrorMaker, daemons: _Daemons, actions: Counter[str]) -> None:
    """One of the two goes away, in order or killed, and comes back, while the other goes on."""
    chance = random.Random(15)
    works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "MirrorMaker 2 ended": (mirror.stop, mirror.start),
        "MirrorMaker 2 killed": (mirror.kill, mirror.start),
        "tsoffset ended": (daemons.end, daemons.start),
        "tsoffset killed": (lambda: daemons.end(kill=True), daemons.start),
    }
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(2, 6))
        name = chance.choice(list(works))
        go, come = works[name]
        go()
        time.sleep(chance.uniform(0, 2))
        come()
        actions[name] += 1


def _by_ours(directory: Path) -> set[Commit]:
    """What the daemon has committed, as its history has it."""
    root = store_at(directory)
    return {
        (one["group"], one["source_topic"], one["partition"], one["target_offset"])
        for day in days(root, HistoryTable.PAIRS, FLOW)
        for file in files_of_day(root, HistoryTable.PAIRS, FLOW, day).files
        for one in file.table().to_pylist()
        if one["outcome"] == "committed"
    }


def _by_theirs(target: Contents) -> set[Commit]:
    """What MirrorMaker 2 may have committed: all that any checkpoint said."""
    found = set()
    for record in target.read(CHECKPOINTS):
        key, value = decode_key(record.key), decode_value(record.value or b"")
        topic = key.target.topic.removeprefix("A.")
        found.add((key.group, topic, key.target.partition, value.target_offset))
    return found


def test_nothing_is_skipped(run):
    """No commit that was seen on the target leaves out a record that the group had not read."""
    assert run.commits_judged > len(GROUPS)


def test_tsoffset_never_goes_back(run):
    """Whatever MirrorMaker 2 writes in between: the daemon moves no group backwards."""
    assert not [one for one in run.steps_back if run.is_ours(one)]


def test_each_number_is_that_of_the_records(run):
    """tsoffset's and MirrorMaker 2's offsets, the true position, the re-read records and the target
    groups' offsets agree with the number that each record carries."""
    judged: Counter[str] = Counter()
    for pair in run.pairs:
        if pair["source_offset"] is None or pair["ours"] is None:
            judged["without a translation"] += 1
            continue
        part = run.truth[pair["source_topic"], pair["partition"]]
        committed, ours = pair["source_offset"], pair["ours"]
        safe = part.largest_safe(committed)
        assert pair["lag"] == part.source_end - committed
        assert ours <= safe, pair
        assert len(part.reread(committed, ours)) <= pair["ours_reread_bound"], pair
        if pair["ours_precision"] == "exact":
            true = pair["true_position"]
            assert ours <= true <= safe, pair
            assert part.between(ours, true) == 0, pair
        theirs, records = pair["theirs"], pair["records"]
        verdict = pair["verdict"]
        judged[verdict] += 1
        if verdict == "equal":
            assert part.between(min(ours, theirs), max(ours, theirs)) == 0, pair
        elif verdict == "reread":
            assert theirs < ours, pair
            # Each offset here holds a record.
            assert records == part.between(theirs, ours), pair
            again = len(part.reread(committed, theirs)) - len(part.reread(committed, ours))
            assert again <= records, pair
            if not part.repeated:
                assert again == records, pair
        elif verdict == "unsafe":
            assert theirs > safe, pair
        elif verdict == "beyond":
            assert records == 0, pair
            assert theirs <= safe, pair
        else:
            assert (verdict, theirs) == ("none", None), pair
        if (there := pair["target_commit"]) is not None:
            # One past the translation is no offset to resume at.
            again = part.between(there, ours) + pair["ours_reread_bound"]
            assert pair["target_commit_reread"] == (again if there <= ours else None), pair
    sys.stdout.write(f"\nheld to the records: {dict(judged)}\n")
    assert judged["equal"] + judged["reread"] > len(GROUPS)
    assert not judged["unsafe"]


def test_both_were_at_work(run):
    """Commits of both were there, and each was ended while the other went on."""
    assert run.by_ours
    assert run.by_theirs
    assert any(name.startswith("MirrorMaker 2") for name in run.actions)
    assert any(name.startswith("tsoffset") for name in run.actions)
