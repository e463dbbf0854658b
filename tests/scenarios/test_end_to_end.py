"""Nothing is skipped end to end: whatever happened until a group stopped on the source, what
it processed there and what it gets on the target hold every record.

Each round writes, mirrors, processes and syncs at the same time, on real brokers and with a
real MirrorMaker 2, and ends at a random moment (`tests.scenarios.rounds`). The seed is told at
the end and with every failure; `TSOFFSET_ROUNDS_SEED` takes it, and pytest a single round as
`tests/scenarios/test_end_to_end.py::test_nothing_is_skipped[round-7]`. The steps of a round are
the same then, their pace is not.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from tests.scenarios.flows import IDENTITY, Flows, prepare_mirror
from tests.scenarios.rounds.foreign_clients import (
    FOREIGN,
    IS_MISSING,
    CommitStyle,
    ForeignApplication,
    metadata_of,
)
from tests.scenarios.rounds.judging import Fate, fates, precisions, settled, wrong_rows
from tests.scenarios.rounds.plans import (
    LONG_ROUNDS,
    ROUNDS,
    SEED_VARIABLE,
    Ending,
    Trouble,
    chosen_seed,
    few,
    plan,
)
from tests.scenarios.rounds.playing import Played, play
from tests.scenarios.rounds.stage import RoundsTestbed

pytestmark = pytest.mark.integration

SEED = chosen_seed()
FEW = few(SEED)
# Behind all others.
FOREIGN_ROUND = LONG_ROUNDS


@pytest.fixture(scope="module")
def totals(request) -> Iterator[Counter[str]]:
    """How all records were read, and all rows by outcome and precision, printed at the end."""
    totals: Counter[str] = Counter()
    yield totals
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        sys.stderr.write(f"\n{SEED_VARIABLE}={SEED}: {dict(sorted(totals.items()))}\n")


@pytest.fixture(scope="module")
def stage(source, target, chosen, tmp_path_factory) -> Iterator[RoundsTestbed]:
    """The clusters, and a MirrorMaker 2 that starts with the first round."""
    clusters = {"A": source, "B": target, "X": source, "Y": target}
    topics = {"A->B": ["round-renamed-.*"], "X->Y": ["round-kept-.*"]}
    overrides = {
        # What it copies in this time is repeated where it is killed.
        "B.offset.flush.interval.ms": "5000",
        "Y.offset.flush.interval.ms": "5000",
        "X->Y.replication.policy.class": IDENTITY,
        "X->Y.source.consumer.isolation.level": "read_committed",
    }
    folder = tmp_path_factory.mktemp("rounds")
    mirror = prepare_mirror(folder, clusters, topics, overrides, name="rounds")
    try:
        with closing(
            RoundsTestbed(source, target, Flows(clusters, mirror), chosen("chosen_round"))
        ) as stage:
            yield stage
    finally:
        # It is not needed any more, and an orderly stop takes a while.
        mirror.kill()


def when(number: int) -> Sequence[pytest.MarkDecorator]:
    """A few rounds are played by `make test`, the rest of the first ones by `make test-all`."""
    if number in FEW:
        return []
    return [pytest.mark.thorough if number < ROUNDS else pytest.mark.long]


@pytest.mark.parametrize(
    "chosen_round",
    [pytest.param(number, marks=when(number)) for number in range(LONG_ROUNDS)],
    ids=lambda number: f"round-{number}",
)
def test_nothing_is_skipped(stage, totals, chosen_round):
    """Every record was processed on the source and committed, or is read on the target; none
    is read again that was committed and mirrored before the last sync. And of every sync on
    the way each row was safe, and its bound held."""
    played = play(stage, plan(SEED, chosen_round))
    totals["rounds"] += 1
    totals["not to come again"] += settled(played)
    totals.update(fate for *_, fate in fates(played))
    totals.update(precisions(played.cycles))
    judge(played)


def judge(played: Played) -> None:
    repeat = f"{SEED_VARIABLE}={SEED}: {played.plan}"
    wrong = [
        f"{group.group}, partition {partition}, source {offset}: {fate}"
        for group, partition, offset, fate in fates(played)
        if fate in (Fate.MISSED, Fate.SETTLED)
    ]
    assert not wrong, f"{repeat}: {len(wrong)} of {wrong[:10]}"
    rows = [*wrong_rows(played)]
    assert not rows, f"{repeat}: {len(rows)} of {rows[:10]}"


@pytest.mark.thorough
@pytest.mark.skipif(IS_MISSING, reason="no package confluent_kafka")
@pytest.mark.parametrize(
    ("number", "trouble"),
    [
        pytest.param(FOREIGN_ROUND, Trouble.NONE, marks=pytest.mark.long),
        (FOREIGN_ROUND + 1, Trouble.PAUSED),
    ],
)
def test_clients_of_others_fail_over(stage, number, trouble):
    """The same of consumers by librdkafka, each committing in its own way, by the classic protocol
    and the new one, also where the mirror stands still for a while. What they really read again is
    within their rows' bounds, and the metadata of their commits comes with them."""
    planned = replace(
        plan(SEED, number),
        trouble=trouble,
        ending=Ending.FINAL,
        keeps_names=number == FOREIGN_ROUND,
        groups=len(FOREIGN),
        late_topic=False,
    )
    kinds = [partial(ForeignApplication, protocol=it, way=way) for it, way in FOREIGN]
    played = play(stage, planned, kinds)
    judge(played)
    held = 0
    for kind, group in zip(FOREIGN, played.groups, strict=True):
        way = kind[1]
        assert way is not CommitStyle.NEVER or not group.committed
        rows = [row for row in group.last_sync.rows if row.group == group.group]
        assert {row.partition: row.source_offset for row in rows} == group.committed, kind
        for row in rows:
            if row.partition is None or row.source_offset is None or row.reread_bound is None:
                continue
            processed = {
                value
                for value, offset in played.logs[row.partition].written.items()
                if offset < row.source_offset
            }
            again = processed & group.got[row.partition].keys()
            assert len(again) <= row.reread_bound, (kind, row)
            held += 1
        if way in (CommitStyle.ASYNC, CommitStyle.SYNC, CommitStyle.TRANSACTION):
            for (_, partition), (_, text) in stage.target.committed_offsets(group.group).items():
                known = {metadata_of(group.group, n) for n in range(group.committed[partition] + 1)}
                # confluent-kafka sends the end of its C string as well.
                assert text.removesuffix("\0") in known, (kind, text)
    # A group that stopped early may have had nothing to commit.
    assert held >= len(FOREIGN) // 2


@pytest.mark.thorough
def test_rounds_were_worth_it(totals):
    """What the rounds judge has happened: records that were read again for good reasons, and syncs
    that found where groups stand."""
    if totals["rounds"] < ROUNDS - len(FEW):
        pytest.skip("not all rounds were chosen to run")
    fates = (Fate.PROCESSED, Fate.GOT, Fate.NOT_COMMITTED, Fate.COMMITTED_LATER)
    assert all(totals[name] for name in ("not to come again", "committed/exact", *fates)), totals
