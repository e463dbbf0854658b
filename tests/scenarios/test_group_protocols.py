"""Kafka Streams applications that fail over: of the classic protocol, and of their own (type
`streams`, KIP-1071)."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import IDENTITY, Flows, prepare_mirror
from tests.scenarios.streams import StreamsApplication, streams_jar
from tests.waiting import wait_until
from tsoffset.commands.check.findings import Severity
from tsoffset.commands.check.flow_check import check
from tsoffset.errors import JarsUnavailable
from tsoffset.java import find_java
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

RENAMED, KEPT = "A->B", "X->Y"
PREFIX = {RENAMED: "renamed", KEPT: "kept"}
KEYS = 5


@pytest.fixture(scope="module")
def flows(source, target, tmp_path_factory) -> Iterator[Flows]:
    """One flow that renames topics and one that keeps their names; MirrorMaker 2 runs."""
    clusters = {"A": source, "B": target, "X": source, "Y": target}
    topics = {flow: [f"{prefix}-.*"] for flow, prefix in PREFIX.items()}
    overrides = {f"{KEPT}.replication.policy.class": IDENTITY}
    folder = tmp_path_factory.mktemp("protocols")
    mirror = prepare_mirror(folder, clusters, topics, overrides, name="protocols")
    try:
        yield Flows(clusters, mirror.start())
    finally:
        mirror.kill()


@pytest.fixture(scope="module")
def streams() -> None:
    """Skips where no Streams application can run."""
    try:
        streams_jar()
    except JarsUnavailable as error:
        pytest.skip(str(error))
    if not find_java().resolve().with_name("javac").exists():
        pytest.skip("`java Source.java` needs a JDK, and this Java has no compiler")


def listed(contents: Contents, group: str) -> tuple[str, str]:
    """The type and the state of a group as its broker lists it; empty where it does not."""
    for one in contents.admin.list_groups():
        if one["group_id"] == group:
            return str(one["group_type"]).lower(), str(one["group_state"])
    return "", ""


def records(count: int, first: int = 0) -> list[Written]:
    return [
        Written(one.timestamp_ms, one.value, b"key-%d" % (number % KEYS))
        for number, one in enumerate(numbered(count, first=first))
    ]


def values(of: list[Written]) -> Counter[str]:
    return Counter(str(one.value, "utf-8") for one in of if one.value is not None)


def by_key(of: list[Written]) -> dict[str, int]:
    return dict(Counter(str(one.key, "utf-8") for one in of if one.key is not None))


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize(
    ("flow", "protocol", "keeps_state"),
    [(KEPT, "streams", True), pytest.param(RENAMED, "classic", False, marks=pytest.mark.long)],
)
def test_a_streams_application_moves(flows, unique, tmp_path, flow, protocol, keeps_state):
    """It resumes at its next record and gets each record once. It continues with its counts where
    it finds its changelog under its name, and otherwise counts from zero, which `check` says. While
    it is there, its group is GROUP_ACTIVE."""
    source, target = flows.sides(flow)
    orders = source.create_topic(unique(f"{PREFIX[flow]}-orders"))
    app = unique(f"{PREFIX[flow]}-app")
    before, after = records(60), records(40, first=60)
    source.produce(orders, before)
    with_it = StreamsApplication(source, app, orders, tmp_path, protocol=protocol).start()
    try:
        wait_until(lambda: len(with_it.read()) == len(before), "it has read all")
    finally:
        with_it.stop()
    assert listed(source, app)[0] == protocol
    assert with_it.counts() == by_key(before)
    source.produce(orders, after)
    flows.wait_until_mirrored(flow, orders, f"{app}-counts-changelog")

    row = flows.sync(flow, app).of(app, orders)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT)
    committed = {
        one: next(iter(contents.committed_offsets(app).values()))
        for one, contents in (("source", source), ("target", target))
    }
    # The metadata has the time that the application has come to.
    assert committed["source"] == committed["target"] == (len(before), committed["source"][1])
    assert committed["source"][1]
    checked = check([flows.flow(flow, app)], KafkaCluster)
    told = [one for one in checked.findings if one.subject == "Kafka Streams"]
    assert [one.severity for one in told] == ([] if keeps_state else [Severity.WARNING])
    assert all(app in one.finding for one in told)

    # It commits nothing until it ends.
    there = StreamsApplication(
        *(target, app, flows.remote(flow, orders), tmp_path),
        protocol=protocol,
        commit_interval_ms=3_600_000,
    ).start()
    try:
        wait_until(lambda: len(there.read()) >= len(after), "it has read all on the target")
        assert listed(target, app)[0] == protocol
        wait_until(lambda: listed(source, app)[1] == "Empty", "its member on the source is gone")
        source.commit_offsets(app, {(orders, 0): len(before) + 1})
        row = flows.sync(flow, app).of(app, orders)
        assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)
    finally:
        there.stop()
    assert Counter(there.read()) == values(after)
    assert there.counts() == by_key(before + after if keeps_state else after)
    row = flows.sync(flow, app).of(app, orders)
    assert (row.reason, row.current_target_offset) == (
        Reason.TARGET_AHEAD,
        len(before) + len(after),
    )
