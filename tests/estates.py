"""Made-up estates, as rich as real ones: for the tests of the page, and to look at it.

`python -m tests.estates` serves one at http://127.0.0.1:8084, with a cycle every few seconds.
"""

import random
import time
from dataclasses import replace

from tests.memory_flows import flow
from tests.serving import READ_TOKEN, TOKEN, ServedFlows, row
from tsoffset.daemon.status import FlowState, Instance
from tsoffset.flow.settings import ServerSettings
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row, Skipped, TopicPartition
from tsoffset.rule import reasons

HOME, BACK, EDGE = "frankfurt->dublin", "dublin->frankfurt", "edge-7->frankfurt"
UNREACHED = (
    "list groups, cluster edge-7 (10 s): connection refused by both bootstrap addresses; check"
    " edge-7.bootstrap.servers"
)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "team/billing?page=2#x",
    "\u202egnp.exe\u202c",
    "\x00\x07\n\x1b[31mred",
    "مجموعة-الفواتير",
    "nul\u200bl width",
    " leading and trailing ",
    "n" * 249,
    "a%2Fb",
    ".",
    "z" + "\u0301\u0323" * 30,
    "\U0001f600 \ufffe",
    "line\u2028line",
    "",
)
# Parts of the pairs that have such a fate.
ACTIVE, DENIED = 0.08, 0.02
_TOPICS = ("orders", "payments", "clicks", "inventory", "shipments", "audit.events")
_TEAMS = ("checkout", "billing", "fraud", "search", "ledger", "warehouse", "mail", "reports")
_WORK = ("enricher", "writer", "alerts", "export", "projection", "dedup")


def estate_rows(number: int, name: str = HOME, teams: int = len(_TEAMS)) -> list[Row]:
    """Rows of a cycle, of six groups a team, most of which are well. How far they are depends on
    the cycle's number; now and then groups run on the target, or may not be committed for."""
    chance = random.Random(number)
    rows = []
    for group in (f"{team}.{work}" for team in _TEAMS[:teams] for work in _WORK):
        fixed = random.Random(f"{group} {name}")
        for topic in fixed.sample(_TOPICS, 2):
            fate, count = fixed.random(), fixed.choice((3, 6))
            if (fate < ACTIVE and number % 40 < 22) or (fate > 1 - DENIED and number % 60 < 50):
                fate = 0.5
            moved = chance.random() < 0.6
            rows += [
                _row(chance, fate, group, topic, partition, name, moved=moved)
                for partition in range(count)
            ]
    return rows


def _row(
    chance: random.Random,
    fate: float,
    group: str,
    topic: str,
    partition: int,
    name: str,
    *,
    moved: bool,
) -> Row:
    source, _, target = name.partition("->")
    offset = chance.randrange(10_000, 9_000_000)
    there = offset - 4_000
    made = row(
        group,
        topic,
        partition,
        flow=name,
        source_offset=offset,
        target_topic=f"{source}.{topic}",
        target_offset=there,
        current_target_offset=there - (chance.randrange(1, 400) if moved else 0),
        consumer_lag=None if chance.random() < 0.02 else chance.choice((0, 0, 3, 41, 1_870)),
    )
    if fate < ACTIVE:
        told = f"group {group} has members on {target}, which own its offsets there; stop them"
        back = replace(made, current_target_offset=there - chance.randrange(400, 2_400))
        return _skipped(back, Skipped(Reason.GROUP_ACTIVE, told))
    place = TopicPartition(topic, partition)
    if fate < ACTIVE + 0.02:
        return _skipped(_untranslated(made), reasons.no_proof(place, offset, None))
    if fate < ACTIVE + 0.03:
        return _skipped(_untranslated(made), reasons.expired(offset, offset + 900))
    if fate > 1 - DENIED:
        told = (
            f"commit {group}, cluster {target}: not authorized; grant READ on group {group} to the"
            " principal of tsoffset"
        )
        reason, outcome = FailureKind.AUTHORIZATION, OutcomeKind.FAILED
        return replace(made, outcome=outcome, reason=reason, message=told)
    if made.current_target_offset == there:
        return replace(made, outcome=OutcomeKind.UNCHANGED)
    if fate > 0.88:
        return replace(made, precision=Precision.BOUNDED, reread_bound=chance.randrange(2, 90))
    if fate > 0.84:
        return replace(made, precision=Precision.FRONTIER)
    return made


def _skipped(made: Row, skip: Skipped) -> Row:
    return replace(
        made, outcome=OutcomeKind.SKIPPED, reason=skip.reason, message=skip.message, precision=None
    )


def _untranslated(made: Row) -> Row:
    return replace(made, target_offset=None, current_target_offset=None, reread_bound=None)


def daemon_of(*names: str, settings: ServerSettings | None = None) -> ServedFlows:
    """A daemon with these flows, none of which has had a cycle; its clock stands at the present."""
    daemon = ServedFlows(settings or ServerSettings(listeners=("http://127.0.0.1:0",)))
    daemon.now = time.time()
    daemon.board.instance = Instance("0123456789ab", "kafka-ops-1", 4711, daemon.now - 86_400)
    daemon.board.set_flows([])
    daemon.board.set_flows([flow(*name.split("->")) for name in names])
    return daemon


def rich(settings: ServerSettings | None = None) -> ServedFlows:
    """Three flows after 60 cycles, of which some came to nothing; one cannot reach its
    source, and one is paused. Another instance is at work, and a list was changed."""
    daemon = daemon_of(HOME, BACK, EDGE, settings=settings)
    end = daemon.now
    for number in range(60):
        daemon.now = end - 60.0 * (59 - number) - 8
        if number in (21, 22, 23, 41):
            daemon.failure(UNREACHED.replace("edge-7", "frankfurt"), HOME)
        else:
            daemon.cycle(estate_rows(number), HOME, replication=lags(number))
        if number > 30:
            daemon.cycle(estate_rows(number, BACK, 2), BACK)
        if number < 40:
            daemon.cycle(estate_rows(number, EDGE, 4), EDGE)
        else:
            daemon.failure(UNREACHED, EDGE)
    daemon.now = end
    for name in (HOME, EDGE):
        daemon.board.update(name, next_at=end + 52)
    daemon.board.update(BACK, state=FlowState.PAUSED)
    other = Instance("ba9876543210", "kafka-ops-2", 812, end - 3_000)
    lists = ("groups: added checkout\\..*", "topics.exclude: added audit\\..*")
    daemon.board.update(HOME, others=(other,), lists=lists, late=2, over_limit=1)
    return daemon


def lags(seed: int) -> list[tuple[str, int, int, int]]:
    """Replication lags, of each topic a partition."""
    chance = random.Random(seed)
    return [(topic, 0, chance.randrange(900), 0) for topic in _TOPICS]


def main() -> None:
    daemon = rich(ServerSettings(listeners=("http://127.0.0.1:8084",), token=TOKEN))
    with daemon.serve() as addresses:
        print(*addresses, f"token to change: {TOKEN}", f"to read: {READ_TOKEN}", sep="\n")  # noqa: T201
        number = 100
        while True:
            time.sleep(8)
            daemon.now, number = time.time(), number + 1
            daemon.cycle(estate_rows(number), HOME, replication=lags(number))
            daemon.board.update(HOME, next_at=daemon.now + 8)


if __name__ == "__main__":
    main()
