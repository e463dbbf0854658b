"""KIP-1292's first table, beside MirrorMaker 2's own checkpoints of the same groups on the same
logs."""

import json
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.invoking import invoke
from tests.producing import Contents, Written
from tests.scenarios.flows import CHECKPOINTS, Flows, newest_checkpoints, prepare_mirror
from tests.waiting import wait_until
from tsoffset.model import TopicPartition
from tsoffset.replicators.checkpoints import CheckpointKey

pytestmark = [pytest.mark.integration, pytest.mark.long]

SOURCE, TARGET = "north", "south"
FLOW = f"{SOURCE}->{TARGET}"
MILLION = "a-million"
# A million records were written; the source has lost the first of them before the mirror began.
WRITTEN, SHIFT = 1_000_000, 100_000
MIRRORED = WRITTEN - SHIFT
# The offsets of the table: at the log's end, and ever further behind it.
POSITIONS = (
    *(1_000_000, 999_999, 999_890, 999_650, 999_200, 998_400, 996_800, 993_600),
    *(987_200, 974_400, 948_800, 897_600, 795_200, 590_400),
)
# It moves when the others have come to rest, and so tells that they were served.
LATE = "table-late"

Compare = Callable[..., dict[str, dict[str, Any]]]
_CHUNK = 100_000


@dataclass(frozen=True, slots=True)
class MirroredTable:
    """The topic mirrored, and what MirrorMaker 2 says of the groups; it is stopped.

    `theirs` is group to the target offset of its newest checkpoint.
    """

    source: Contents
    target: Contents
    flows: Flows
    theirs: Mapping[str, int]


@pytest.fixture(scope="session")
def mirrored(source, target, tmp_path_factory) -> MirroredTable:
    """MirrorMaker 2 with offset syncs and checkpoints, each a second. The groups are there before
    the mirror begins, as a running estate has them, and go to their positions when all is mirrored,
    as consumers do that lag."""
    clusters = {SOURCE: source, TARGET: target}
    overrides = {"groups": "table-.*", **CHECKPOINTS}
    folder, topics = tmp_path_factory.mktemp("first-table"), {FLOW: [MILLION]}
    mirror_maker = prepare_mirror(folder, clusters, topics, overrides, name="first-table")
    flows = Flows(clusters, mirror_maker)
    fill(source)
    groups = {f"table-{position}": position for position in POSITIONS}
    for group in (*groups, LATE):
        source.commit_offsets(group, {(MILLION, 0): SHIFT})
    with mirror_maker:
        remote = flows.remote(FLOW, MILLION)
        mirror_maker.wait_for_topic(target.bootstrap, remote)
        wait_until(
            lambda: target.log_range(remote)[1] == MIRRORED,
            "the million is mirrored",
        )
        for group, position in groups.items():
            source.commit_offsets(group, {(MILLION, 0): position})
        theirs = settled_checkpoints(source, target, remote)
    return MirroredTable(source, target, flows, theirs)


def fill(source: Contents) -> None:
    """A million records with timestamps of their own."""
    source.create_topic(MILLION)
    start_ms = int(time.time() * 1000) - WRITTEN
    for first in range(0, WRITTEN, _CHUNK):
        records = [
            Written(start_ms + number, b"value-%d" % number)
            for number in range(first, first + _CHUNK)
        ]
        source.produce(MILLION, records, batch=1000)
    source.delete_records(MILLION, SHIFT)


def settled_checkpoints(source: Contents, target: Contents, remote: str) -> dict[str, int]:
    """What MirrorMaker 2 says when it has looked at all groups as they are now: it has noted
    the last record of the topic, and after that served one group twice."""
    syncs, last = f"mm2-offset-syncs.{TARGET}.internal", WRITTEN - 1
    wait_until(
        lambda: offset_syncs(source, syncs, MILLION)[-1:] == [(last, last - SHIFT)],
        "the last record is noted",
    )
    for position in (WRITTEN - 1, WRITTEN):
        source.commit_offsets(LATE, {(MILLION, 0): position})
        there = position - SHIFT

        def served(there: int = there) -> bool:
            about = CheckpointKey(LATE, TopicPartition(remote, 0))
            found = newest_checkpoints(target, SOURCE).get(about)
            return found is not None and found.target_offset == there

        wait_until(served, f"{LATE} has its checkpoint at {there}")
    return {key.group: it.target_offset for key, it in newest_checkpoints(target, SOURCE).items()}


def offset_syncs(contents: Contents, topic: str, of_topic: str) -> list[tuple[int, int]]:
    """The source and target offsets that MirrorMaker 2 has noted in `topic` for partition 0 of one
    topic, in their order; empty where there is no such topic."""
    if topic not in contents.admin.list_topics():
        return []
    about = struct.pack(">h", len(of_topic)) + of_topic.encode() + struct.pack(">i", 0)
    return [
        struct.unpack(">qq", record.value or b"")
        for record in contents.read(topic)
        if record.key == about
    ]


@pytest.fixture(scope="module")
def compare(mirrored, tmp_path_factory) -> Compare:
    """`tsoffset compare` over the groups of the table; its report goes to a file, for a person to
    look at, and the table to the terminal with `pytest -s`."""
    remote = mirrored.flows.remote(FLOW, MILLION)
    assert mirrored.source.log_range(MILLION) == (SHIFT, WRITTEN)
    assert mirrored.target.log_range(remote) == (0, MIRRORED)
    folder = tmp_path_factory.mktemp("compare")
    groups = "|".join(f"table-{position}" for position in POSITIONS)

    def asked(*words):
        report = folder / f"report{''.join(words)}.html"
        result = invoke(
            *("compare", "-c", str(mirrored.flows.mirror_maker.properties_path)),
            *("--groups", groups, "--format", "json", "--html", str(report), *words),
        )
        assert result.exit_code == 0, result.output
        sys.stdout.write(f"\n{report}\n")
        found = [json.loads(line) for line in result.stdout.splitlines()]
        return {pair["group"]: pair for pair in found}

    return asked


def test_compare_has_the_table(mirrored, compare):
    """MirrorMaker 2's checkpoints are safe, and grow coarser with the lag, by as many records as
    lie between them and the true position; beside each of them lies our offset, which reads
    nothing again."""
    pairs = compare()
    assert len(pairs) == len(POSITIONS)
    lines = [f"{'source':>9} {'true':>9} {'theirs':>9} {'re-read':>9} {'ours':>9} {'re-read':>9}"]
    theirs_again = []
    for position in POSITIONS:
        pair = pairs[f"table-{position}"]
        true = position - SHIFT
        again = true - mirrored.theirs[f"table-{position}"]
        theirs_again.append(again)
        assert (pair["lag"], pair["true_position"]) == (WRITTEN - position, true)
        assert (pair["theirs"], pair["records"]) == (true - again, again)
        assert pair["verdict"] == ("reread" if again else "equal")
        assert (pair["ours"], pair["ours_reread_bound"]) == (true, 0)
        columns = (position, true, pair["theirs"], again, pair["ours"], pair["ours_reread_bound"])
        lines.append(" ".join(f"{column:>9}" for column in columns))
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert min(theirs_again) >= 0, "unsafe"
    # Where the syncs lie that it keeps, 64 at most, differs from run to run.
    assert max(theirs_again) > 1000


def test_the_plain_rule_beside_ours_on_the_same_table(compare):
    """Each record has a time of its own here, so KIP-1292's rule finds the next one; to a
    caught-up group it never answers."""
    pairs = compare("--against", "timestamps")
    verdicts = {group: pair["verdict"] for group, pair in pairs.items()}
    assert verdicts.pop(f"table-{WRITTEN}") == "none"
    assert set(verdicts.values()) == {"equal"}
