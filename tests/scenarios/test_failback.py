"""Back to the original, without a data flow back: what a group did on the replica is found there.

Replicas are written here as MirrorMaker 2 writes them, from an offset on and up to one, so that
each log is as the case wants it; tests/scenarios/mirror_maker_tests has the same with itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.configured import properties_file
from tests.producing import Contents, numbered
from tests.scenarios.flows import IDENTITY, Rows, one_cycle, read_on
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = pytest.mark.integration

# What the original has, where the replica begins in it and how far it has come.
RECORDS, FIRST, MIRRORED = 300, 100, 250


@dataclass(slots=True)
class Place:
    """A topic on A and its replica on B, and the flow back, as an operator configures it."""

    a: Contents
    b: Contents
    flow: FlowSettings
    group: str
    topic: str
    replica: str

    def back(self) -> Rows:
        """One cycle of the flow back."""
        return one_cycle(self.flow)

    def comes_back_to(self, offset: int, bound: int = 0) -> None:
        """The group is moved to that offset, exactly unless a bound is stated; once more changes
        nothing."""
        precision = Precision.BOUNDED if bound else Precision.EXACT
        for _ in range(2):
            row = self.back().of(self.group, self.replica)
            assert (row.target_topic, row.target_offset) == (self.topic, offset), row
            assert (row.precision, row.reread_bound) == (precision, bound), row
        assert row.outcome is OutcomeKind.UNCHANGED

    def values_on_a(self) -> list[bytes | None]:
        """What the group's consumer gets on A now."""
        return [record.value for record in read_on(self.a, self.group, (self.topic, 0))]


@pytest.fixture(
    params=["default", pytest.param("identity", marks=pytest.mark.thorough)],
)
def place(
    request: pytest.FixtureRequest,
    source: Contents,
    target: Contents,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> Place:
    topic, group = unique("orders"), unique("billing")
    keeps_names = request.param == "identity"
    replica = topic if keeps_names else f"A.{topic}"
    records = numbered(RECORDS)
    source.create_topic(topic)
    source.produce(topic, records)
    target.create_topic(replica)
    target.produce(replica, records[FIRST:MIRRORED])
    lines = [
        "B->A.enabled = true",
        f"B->A.topics = {topic}, A\\.{topic}",
        f"groups = {group}",
        *([f"replication.policy.class = {IDENTITY}"] if keeps_names else []),
    ]
    file = properties_file(tmp_path, source.bootstrap, target.bootstrap, *lines)
    flow = Configuration.read(file).resolve().flow("B->A")
    return Place(source, target, flow, group, topic, replica)


def originals(first: int, end: int = RECORDS) -> list[bytes]:
    return [b"value-%d" % number for number in range(first, end)]


def test_a_group_that_was_only_ever_on_the_replica(place: Place) -> None:
    """It goes on at the original of what it would read next, and gets what was never mirrored."""
    place.b.commit_offsets(place.group, {(place.replica, 0): (60, "kept")})
    place.comes_back_to(FIRST + 60)
    assert place.a.committed_offsets(place.group) == {(place.topic, 0): (FIRST + 60, "kept")}
    assert place.values_on_a() == originals(FIRST + 60)


def test_records_that_were_never_mirrored_are_not_skipped(place: Place) -> None:
    """A group that has read all of the replica resumes behind the last record that was mirrored,
    not at the end."""
    _, end = place.b.log_range(place.replica)
    place.b.commit_offsets(place.group, {(place.replica, 0): end})
    place.comes_back_to(MIRRORED)
    assert place.values_on_a() == originals(MIRRORED)


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["identity"], indirect=True)
def test_records_that_only_the_replica_has_do_not_lead_past_the_originals(place: Place) -> None:
    """Producers that wrote to the replica while it was in charge, under one name: a group that has
    read on there resumes behind the last record that was mirrored. What it read there alone counts
    as read again, at most, for content cannot tell that nobody will mirror it back."""
    _, end = place.b.log_range(place.replica)
    place.b.produce(place.replica, numbered(50, first=10_000))
    for read in (25, 50):
        place.b.commit_offsets(place.group, {(place.replica, 0): end + read})
        place.comes_back_to(MIRRORED, bound=read)
    place.a.produce(place.topic, numbered(20, first=RECORDS))
    place.comes_back_to(MIRRORED, bound=50)
    assert place.values_on_a() == originals(MIRRORED, RECORDS + 20)


def test_an_older_commit_on_the_original_moves_forwards_a_younger_one_stays(place: Place) -> None:
    """What the group had left behind there is brought up to what it did on the replica; where it
    has read on there itself it is never moved back."""
    place.a.commit_offsets(place.group, {(place.topic, 0): 120})
    place.b.commit_offsets(place.group, {(place.replica, 0): 60})
    place.comes_back_to(FIRST + 60)
    place.a.commit_offsets(place.group, {(place.topic, 0): 280})
    row = place.back().of(place.group, place.replica)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
    assert (row.target_offset, row.current_target_offset) == (FIRST + 60, 280)
    assert place.values_on_a() == originals(280)


@pytest.mark.parametrize("place", ["default"], indirect=True)
def test_progress_on_the_replicas_own_topic_is_no_matter_of_it(
    place: Place, unique: Callable[[str], str]
) -> None:
    """A topic of the same name that belongs to B leads to another one on A, which is not there; its
    records and commits do not touch what comes back."""
    place.b.create_topic(place.topic)
    place.b.produce(place.topic, numbered(80, first=20_000))
    both = {(place.replica, 0): 60, (place.topic, 0): 70}
    place.b.commit_offsets(place.group, both)
    place.comes_back_to(FIRST + 60)
    row = place.back().of(place.group, place.topic)
    assert (row.target_topic, row.reason) == (f"B.{place.topic}", Reason.TARGET_MISSING)
    assert set(place.a.committed_offsets(place.group)) == {(place.topic, 0)}
    assert place.values_on_a() == originals(FIRST + 60)
