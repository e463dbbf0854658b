"""A->B->A->B: groups move to and fro while MirrorMaker 2 copies from A to B alone; consumers count
by content what they get."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.configured import properties_file
from tests.producing import Contents, numbered
from tests.scenarios.flows import one_cycle, read_on
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import Settings
from tsoffset.lab.embedded import MirrorMaker
from tsoffset.model import OutcomeKind, Row

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

PARTITIONS = 2
GROUPS = ("early", "middle", "late")


@dataclass(slots=True)
class Rounds:
    """A topic, its mirror, and groups that read on either side."""

    clusters: dict[str, Contents]
    mirror: MirrorMaker
    settings: Settings
    topics: dict[str, str]
    written: int = 0
    got: dict[str, Counter[bytes | None]] = field(
        default_factory=lambda: {name: Counter() for name in GROUPS}
    )
    bounds: Counter[str] = field(default_factory=Counter)

    def group(self, name: str) -> str:
        return f"{name}-{self.topics['A']}"

    def write(self, count: int) -> None:
        """The next records of each partition, on A."""
        for partition in range(PARTITIONS):
            first = partition * 1_000_000 + self.written
            records = numbered(count, first=first)
            self.clusters["A"].produce(self.topics["A"], records, partition=partition, batch=7)
        self.written += count

    def wait(self) -> None:
        sides = (self.clusters[alias].bootstrap for alias in "AB")
        self.mirror.wait_until_mirrored(*sides, {self.topics["A"]: self.topics["B"]})

    def read(self, alias: str, **most: int | None) -> None:
        """Let each group read so many records of each partition there; None: to the end."""
        for name, number in most.items():
            got = read_on(
                self.clusters[alias],
                self.group(name),
                *((self.topics[alias], partition) for partition in range(PARTITIONS)),
                most=number,
                reset="none" if self.got[name] else "earliest",
                commits=True,
            )
            self.got[name].update(record.value for record in got)

    def move(self, flow: str) -> dict[str, list[Row]]:
        """Bring all groups over; their rows by group, of which each is in place."""
        rows = one_cycle(self.settings.flow(flow)).all
        found: dict[str, list[Row]] = {}
        for name in GROUPS:
            found[name] = [row for row in rows if row.group == self.group(name)]
            assert len(found[name]) == PARTITIONS
            for row in found[name]:
                assert row.outcome in (OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED), row
                self.bounds[name] += row.reread_bound
        return found

    @property
    def everything(self) -> set[bytes]:
        return {
            b"value-%d" % (partition * 1_000_000 + number)
            for partition in range(PARTITIONS)
            for number in range(self.written)
        }


@pytest.fixture
def rounds(source, target, mirror, unique, tmp_path) -> Rounds:
    topic = source.create_topic(unique("orders"), PARTITIONS)
    names = {"A": topic, "B": f"A.{topic}"}
    file = properties_file(
        tmp_path,
        source.bootstrap,
        target.bootstrap,
        "B->A.enabled = true",
        f"A->B.topics = {topic}",
        f"B->A.topics = {names['B'].replace('.', chr(92) + '.')}",
        f"groups = .*-{topic}",
    )
    settings = Configuration.read(file).resolve()
    return Rounds({"A": source, "B": target}, mirror(topic), settings, names)


def test_three_rounds_skip_nothing_and_read_again_what_was_stated(rounds):
    """Three groups, of which one is ahead of the mirror when it moves, and another comes back to
    what was not mirrored by then: each gets every record, and none more often than its rows had
    said. The group that the mirror always was ahead of reads nothing twice."""
    rounds.write(200)
    rounds.wait()
    rounds.read("A", early=30, middle=120, late=None)
    rounds.mirror.stop()
    rounds.write(40)
    rounds.read("A", late=None)
    moved = rounds.move("A->B")
    assert [row.reread_bound for row in moved["late"]] == [40, 40]
    assert rounds.bounds["early"] == rounds.bounds["middle"] == 0

    rounds.read("B", early=50, middle=None, late=None)
    rounds.mirror.start()
    rounds.write(60)
    rounds.wait()
    rounds.read("B", middle=20, late=None)
    rounds.mirror.stop()
    rounds.write(30)
    rounds.move("B->A")

    rounds.read("A", early=40, middle=None, late=10)
    rounds.mirror.start()
    rounds.wait()
    rounds.move("A->B")

    rounds.read("B", early=None, middle=None, late=None)
    for name in GROUPS:
        assert set(rounds.got[name]) == rounds.everything
        again = rounds.got[name].total() - len(rounds.everything)
        assert again <= rounds.bounds[name], (name, again, rounds.bounds)
    assert rounds.got["early"].total() == len(rounds.everything)
