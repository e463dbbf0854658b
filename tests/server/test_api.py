"""The REST API: what each path answers, and what it says where there is nothing to answer."""

import gc
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from tests.serving import (
    AT,
    FLOW,
    PATH,
    TOKEN,
    ServedFlows,
    bearing,
    many_rows,
    problem,
    row,
    skipped,
)
from tsoffset.daemon.points import POINTS_KEPT
from tsoffset.daemon.status import Board, FlowState, Instance, Lead
from tsoffset.flow.settings import ServerSettings
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason

TROUBLE = {"outcome": OutcomeKind.FAILED, "reason": FailureKind.TIMEOUT, "message": "took too long"}
STRANGE = [
    "a/b",
    "a b",
    "",
    "é%2F",
    "../x",
    "<script>",
    "\x00\n\x1b[31m",
    "\ufffe\U0001f600",
    "a?b#c",
]


@pytest.fixture
def daemon() -> ServedFlows:
    """A->B has had a cycle, B->A none."""
    made = ServedFlows()
    made.cycle(
        [
            row("billing", partition=0),
            row("billing", partition=1, precision=Precision.BOUNDED, reread_bound=3),
            skipped("audit"),
            row("search", topic="clicks", **TROUBLE),
        ]
    )
    return made


@pytest.fixture
def client(daemon) -> TestClient:
    return daemon.client()


def answered(client: TestClient, path: str, **parameters: Any) -> Any:
    response = client.get(path, params=parameters or None)
    assert response.status_code == 200, response.text
    return response.json()


def refused(client: TestClient, path: str, status: int) -> str:
    """The sentence and next step of a problem."""
    return problem(client.get(path), status)


# --- flows --------------------------------------------------------------------------------


def test_flows_are_listed_in_the_order_of_the_file(client):
    """With the process that runs them, and when this was answered."""
    found = answered(client, "/api/v1/flows")
    assert [flow["name"] for flow in found["flows"]] == [FLOW, "B->A"]
    assert found["instance"]["id"] == "0123456789ab"
    assert found["at"] == AT


def test_a_flow_says_how_it_is(client):
    """Its state with messages, its rhythm, its last cycle, its totals."""
    flow = answered(client, PATH)
    assert flow["state"] == "degraded"
    assert "failed" in flow["messages"][0]
    assert (flow["interval_seconds"], flow["limit_seconds"]) == (60, 600)
    assert (flow["source"], flow["target"]) == ("A", "B")
    last = flow["last_cycle"]
    assert (last["number"], last["succeeded"], last["facts"]["flow"]) == (1, False, FLOW)
    assert flow["totals"]["outcomes"] == {"committed": 1, "skipped": 1, "failed": 1}
    assert flow["totals"]["reasons"] == {"GROUP_ACTIVE": 1, "TIMEOUT": 1}


def test_a_flow_that_fails_says_why(daemon, client):
    """What was known of its groups stays."""
    daemon.failure("list groups, cluster A: refused; check A.bootstrap.servers")
    flow = answered(client, PATH)
    assert (flow["state"], flow["failures_in_a_row"]) == ("failed", 1)
    assert "check A.bootstrap.servers" in flow["messages"][0]
    assert flow["last_cycle"]["reached"] is False
    assert flow["totals"]["groups"] == 3
    # The page says "no result" of the last cycle, and counts it so.
    assert flow["failures"] == 1


@pytest.mark.parametrize(
    ("reasons", "state", "step"),
    [
        ((Reason.TARGET_MISSING, Reason.TARGET_MISSING), "degraded", "`tsoffset check`"),
        ((Reason.TARGET_MISSING, Reason.TARGET_REWOUND), "degraded", "`tsoffset check`"),
        ((Reason.TARGET_REWOUND, Reason.GROUP_ACTIVE), "degraded", "message of each group"),
        ((Reason.TARGET_MISSING, None), "running", None),
        ((Reason.GROUP_ACTIVE, Reason.TARGET_AHEAD), "running", None),
    ],
)
def test_a_flow_in_which_nothing_can_be_synced_is_degraded(daemon, client, reasons, state, step):
    """As with the wrong replication policy; but not where consumers on the target are why. `check`
    does not see what the target groups have committed; the groups' messages say it."""
    daemon.cycle(
        [
            row("billing", partition=number)
            if reason is None
            else skipped("billing", partition=number, reason=reason)
            for number, reason in enumerate(reasons)
        ]
    )
    flow = answered(client, PATH)
    assert flow["state"] == state
    if step is not None:
        [message] = flow["messages"]
        assert "no group can be synced: all 2 rows are skipped" in message
        assert step in message.rpartition("; ")[2]


def test_what_was_skipped_has_its_next_step(daemon, client):
    """A command for that group and flow with the daemon's file: of a group, of its rows, and where
    a failover is asked for; what is in place has none, nor has a topic."""
    daemon.board.config = "/etc/mm2.properties"
    expected = {
        "when": "Once its consumers on the target are stopped",
        "command": "tsoffset sync -c /etc/mm2.properties --flow 'A->B' --groups audit",
    }
    found = answered(client, f"{PATH}/groups/audit")
    assert found["group"]["next_step"] == found["rows"][0]["next_step"] == expected
    translated = answered(client, "/api/v1/translate", flow=FLOW, group="audit")
    assert translated["partitions"][0]["next_step"] == expected
    groups = answered(client, f"{PATH}/groups")["groups"]
    assert {one["name"] for one in groups if one["next_step"] is None} == {"billing"}
    topics = answered(client, f"{PATH}/topics")["topics"]
    assert {one["next_step"] for one in topics} == {None}


def test_what_nobody_knows_any_more_is_unknown_since_then(daemon, client):
    """Two intervals after the last cycle that reached both clusters: since when, and at least how
    much, with an estimate once a rate is known. Groups that are not in place are told by reason."""
    flow = answered(client, PATH)
    assert (flow["unknown_since"], flow["lag_estimate_records"]) == (None, None)
    assert flow["totals"]["not_in_place"] == {"GROUP_ACTIVE": 1, "TIMEOUT": 1}
    daemon.now += 60
    daemon.cycle([row("billing", source_offset=170), *map(skipped, ("audit", "busy", "late"))])
    daemon.now += 121
    daemon.failure("list groups, cluster A: refused; check A.bootstrap.servers")
    flow = answered(client, PATH)
    assert flow["unknown_since"] == AT + 60
    assert (flow["totals"]["lag_records"], flow["lag_estimate_records"]) == (30, 30 + 2 * 121)
    daemon.board.update(FLOW, state=FlowState.PAUSED)
    tag = client.get("/api/v1/flows").headers["etag"]
    daemon.now += 100
    later = client.get("/api/v1/flows", headers={"if-none-match": tag})
    assert later.json()["flows"][0]["lag_estimate_records"] == 30 + 2 * 221


def test_a_flow_says_who_else_runs_it_and_what_was_changed(daemon, client):
    """As the board has it."""
    other = Instance("other", "there", 7, AT)
    daemon.board.update(FLOW, others=(other,), lists=("groups: added x.*",), next_at=AT + 5)
    flow = answered(client, PATH)
    assert flow["others"][0]["host"] == "there"
    assert (flow["lists"], flow["next_at"]) == (["groups: added x.*"], AT + 5)


def test_a_flow_without_a_cycle_is_starting(client):
    """Everything is there, and empty."""
    flow = answered(client, "/api/v1/flows/B-%3EA")
    assert (flow["state"], flow["last_cycle"]) == ("starting", None)
    path = "/api/v1/flows/B-%3EA"
    assert answered(client, f"{path}/groups")["total"] == 0
    assert answered(client, f"{path}/topics")["topics"] == []
    assert answered(client, f"{path}/history")["points"] == []
    assert "no cycle has reached" in refused(client, f"{path}/groups/billing", 404)


@pytest.mark.parametrize("rest", ["", "/groups", "/groups/x", "/topics", "/history"])
def test_a_flow_that_is_not_there_is_named_with_those_that_are(client, rest):
    """404, with what to ask for instead."""
    told = refused(client, f"/api/v1/flows/X-%3EY{rest}", 404)
    assert "no flow named X->Y" in told
    assert "A->B, B->A" in told


# --- groups and topics --------------------------------------------------------------------


def test_groups_are_summed_up(daemon, client):
    """A group is as bad as its worst partition; how old it is grows with the time."""
    daemon.now += 30
    found = answered(client, f"{PATH}/groups")
    audit, billing, search = found["groups"]
    assert (billing["pairs"], billing["precision"], billing["reread_bound"]) == (2, "bounded", 3)
    assert (billing["in_sync_at"], billing["lag_seconds"]) == (AT, 30)
    assert (audit["outcome"], audit["lag_records"], audit["lag_seconds"]) == ("skipped", 10, None)
    assert search["reasons"] == [{"reason": "TIMEOUT", "rows": 1}]
    assert search["message"] == "took too long"
    assert (found["total"], found["cycle"]) == (3, 1)


def test_groups_are_chosen_ordered_and_paged(client):
    """By the query; the total is that of all pages."""
    path = f"{PATH}/groups"

    def names(**query: Any) -> list[str]:
        return [group["name"] for group in answered(client, path, **query)["groups"]]

    assert names(search="IL") == ["billing"]
    assert names(outcome=["skipped", "failed"]) == ["audit", "search"]
    assert names(reason="TIMEOUT", outcome="failed", precision="exact") == ["search"]
    assert names(sort="reread_bound", order="desc")[0] == "billing"
    assert names(limit=2, page=2) == ["search"]
    assert names(page=99) == []
    assert answered(client, path, limit=1)["total"] == 3


def test_a_filter_with_a_wrong_name_is_refused(client):
    """Rather than all groups answered."""
    told = refused(client, f"{PATH}/groups?outcomes=failed", 422)
    assert "unknown parameter outcomes; use search, outcome" in told
    assert "remove it" in refused(client, f"{PATH}?x=", 422)


def test_topics_are_summed_up(client):
    """As groups are, by source topic."""
    clicks, orders = answered(client, f"{PATH}/topics")["topics"]
    assert (clicks["name"], clicks["outcome"]) == ("clicks", "failed")
    assert (orders["name"], orders["pairs"], orders["outcome"]) == ("orders", 3, "skipped")
    # Two groups have a commit in one of them.
    assert orders["partitions"] == 2
    assert orders["replication_lag_records"] is None


def test_a_topic_says_what_the_target_lacks(daemon, client):
    """Of the partitions where a pair is proven."""
    of = [("orders", 0, 3, 9), ("orders", 1, 4, 4), ("orders", 2, None, None), ("x", 0, 1, 1)]
    daemon.cycle([row("billing"), row("billing", topic="clicks")], replication=of)
    found = answered(client, f"{PATH}/topics")["topics"]
    assert [one["replication_lag_records"] for one in found] == [None, 7]


def test_a_group_shows_each_partition(client):
    """All fields of a row, and how fresh it is."""
    found = answered(client, f"{PATH}/groups/billing")
    assert [one["partition"] for one in found["rows"]] == [0, 1]
    assert found["rows"][0] == {
        **{"flow": FLOW, "group": "billing", "source_topic": "orders", "partition": 0},
        **{"source_offset": 50, "source_timestamp_ms": 1_799_999_999_000},
        **{"target_topic": "A.orders", "target_offset": 40, "current_target_offset": 30},
        **{"outcome": "committed", "reason": None, "precision": "exact", "reread_bound": 0},
        **{"message": None, "consumer_lag": 7, "next_step": None},
        **{"lag_records": 0, "in_sync_at": AT, "lag_seconds": 0.0},
        "synced_source_offset": 50,
    }
    assert answered(client, f"{PATH}/groups/billing", limit=1, page=2)["rows"] == [found["rows"][1]]


def test_a_group_that_is_not_there_is_told_apart_from_one_that_is(client):
    """404, with where to look."""
    assert f"{PATH}/groups lists the known groups" in refused(client, f"{PATH}/groups/x", 404)


@pytest.mark.parametrize("name", STRANGE)
def test_any_name_can_be_asked_for(name):
    """Percent-encoded in the path or as a query parameter, whatever is in it."""
    daemon = ServedFlows()
    daemon.cycle([row("other"), row(name, topic=name or "orders")])
    client = daemon.client()
    found = answered(client, f"{PATH}/groups/{quote(name, safe='')}")
    assert found["group"]["name"] == found["rows"][0]["group"] == name
    translation = answered(client, "/api/v1/translate", flow=FLOW, group=name)
    assert (translation["group"], len(translation["partitions"])) == (name, 1)
    assert name in [group["name"] for group in answered(client, f"{PATH}/groups")["groups"]]


@pytest.mark.parametrize("name", ["%ff", "%ED%A0%80", "%", "%zz", "%00"])
def test_a_name_that_is_no_text_is_nobodys(client, name):
    """Bytes that are no UTF-8 are answered, not stumbled over."""
    refused(client, f"{PATH}/groups/{name}", 404)
    refused(client, f"/api/v1/flows/{name}", 404)


def test_what_json_cannot_hold_is_replaced(daemon, client):
    """Lone surrogates, from a file name in an error for one."""
    other = Instance("\ud800", "h\udcff", 7, AT)
    daemon.failure("read \udcff: no such file")
    daemon.board.update(FLOW, others=(other,), lists=("\ud800",))
    flow = answered(client, PATH)
    assert flow["messages"] == ["read ?: no such file"]
    assert flow["others"][0]["host"] == "h?"
    assert answered(client, f"{PATH}/history")["points"][-1]["error"] == "read ?: no such file"


def test_a_slash_in_an_alias_is_part_of_it():
    """Only slashes that are not encoded part a path."""
    daemon = ServedFlows()
    (flow, _) = (status.flow for status in daemon.board.statuses())
    object.__setattr__(flow.source, "alias", "eu/A")
    daemon.board.set_flows([flow])
    assert answered(daemon.client(), "/api/v1/flows/eu%2FA-%3EB")["name"] == "eu/A->B"


# --- translate and history ----------------------------------------------------------------


def test_translate_says_where_consumers_would_resume(daemon):
    """What is committed on the target after the cycle, with what it is worth."""
    daemon.cycle([row("g"), skipped("g", partition=1), row("g", partition=2, **TROUBLE)])
    daemon.now += 5
    found = answered(daemon.client(), "/api/v1/translate", flow=FLOW, group="g")
    committed, active, failed = found["partitions"]
    assert (committed["target_topic"], committed["offset"]) == ("A.orders", 40)
    assert (committed["precision"], committed["reread_bound"]) == ("exact", 0)
    assert committed["age_seconds"] == 5
    # It stands where the last translation is not.
    assert (active["offset"], active["precision"], active["reread_bound"]) == (30, None, 10)
    assert (active["reason"], active["age_seconds"]) == ("GROUP_ACTIVE", None)
    assert (failed["offset"], failed["reason"]) == (30, "TIMEOUT")
    assert (found["cycle"], found["cycle_ended_at"], found["at"]) == (2, AT, AT + 5)


def test_a_partition_without_an_offset_is_said_to_have_none(daemon):
    """The consumer's own reset decides there."""
    missing = {"reason": Reason.TARGET_MISSING, "target_offset": None, "precision": None}
    daemon.cycle([skipped("g", **missing, current_target_offset=None, reread_bound=None)])
    (found,) = answered(daemon.client(), "/api/v1/translate", flow=FLOW, group="g")["partitions"]
    assert (found["offset"], found["precision"], found["reread_bound"]) == (None, None, None)


def test_history_has_a_point_a_cycle(daemon, client):
    """From `from` until before `to`, the last `limit` of them."""
    daemon.now += 60
    daemon.failure("away")
    path = f"{PATH}/history"
    first, second = answered(client, path)["points"]
    assert (first["at"], first["committed"], first["failed"]) == (AT, 2, 1)
    assert (second["state"], second["error"], second["groups"]) == ("failed", "away", None)
    assert answered(client, path, **{"from": AT + 1})["points"] == [second]
    assert answered(client, path, to=AT + 1)["points"] == [first]
    assert answered(client, path, limit=1)["points"] == [second]
    refused(client, f"{path}?limit={POINTS_KEPT + 1}", 422)


# --- pause, resume, sync ------------------------------------------------------------------


@pytest.mark.parametrize("action", ["pause", "resume", "sync"])
def test_the_daemon_is_asked(action):
    """And the answer says how the flow is; 404 for a flow that is not there."""
    daemon = ServedFlows(ServerSettings(token=TOKEN))
    client = daemon.client(headers=bearing(TOKEN))
    response = client.post(f"{PATH}/{action}")
    assert response.status_code == 202
    assert response.json() == {"flow": FLOW, "state": "starting"}
    assert client.post(f"/api/v1/flows/X/{action}").status_code == 404
    assert daemon.controls.asked == [(action, FLOW)]


# --- on standby ---------------------------------------------------------------------------

LEADER = Instance("b", "sync-2", 7, AT, url="https://sync-2:8083")
READS = ("/groups", "/groups/billing?limit=1", "/topics", "/history")


def on_standby(daemon: ServedFlows, leader: Instance | None = LEADER, **lead: str) -> TestClient:
    """A client of a daemon whose flow A->B another instance runs."""
    daemon.controls.lead_of[FLOW] = Lead(here=False, leader=leader, **lead)
    return daemon.client(headers=bearing(TOKEN))


@pytest.mark.parametrize("path", [*READS, f"/api/v1/translate?flow={FLOW}&group=billing"])
def test_an_instance_that_knows_nothing_names_the_leader(path):
    """An empty list or 404 would read as if there were no such group."""
    path = path if path.startswith("/api") else f"{PATH}{path}"
    response = on_standby(ServedFlows()).get(path)
    told = response.json()
    assert (response.status_code, told["leader"]) == (409, "https://sync-2:8083")
    assert "host sync-2" in told["detail"]
    encoded = path.replace(">", "%3E")
    assert told["next_step"] == f"send GET https://sync-2:8083{encoded}"


def test_an_instance_on_standby_answers_with_the_age_of_what_it_knows():
    """Of the last cycle that it has run or read of."""
    daemon = ServedFlows()
    daemon.cycle([row("billing")])
    daemon.now += 90
    client = on_standby(daemon)
    for path in READS[:3]:
        assert answered(client, f"{PATH}{path}")["age_seconds"] == 90
    found = answered(client, "/api/v1/translate", flow=FLOW, group="billing")
    assert (found["cycle_ended_at"], found["age_seconds"]) == (AT, 90)
    assert len(answered(client, f"{PATH}/history")["points"]) == 1
    for flow in (answered(client, PATH), answered(client, "/api/v1/flows")["flows"][0]):
        assert (flow["leads"], flow["leader"]["host"], flow["age_seconds"]) == (False, "sync-2", 90)


@pytest.mark.parametrize("action", ["pause", "resume", "sync"])
def test_the_leader_alone_is_asked(action):
    """202 would say that it is done, while the leader goes on."""
    daemon = ServedFlows(ServerSettings(token=TOKEN))
    response = on_standby(daemon).post(f"{PATH}/{action}")
    assert (response.status_code, daemon.controls.asked) == (409, [])
    assert response.json()["next_step"] == f"send POST https://sync-2:8083{PATH}/{action}"


def test_a_flow_that_is_paused_is_resumed_on_any_instance():
    """It may have led when it was paused, or share the pause with the leader."""
    daemon = ServedFlows(ServerSettings(token=TOKEN))
    daemon.board.update(FLOW, state=FlowState.PAUSED)
    assert on_standby(daemon).post(f"{PATH}/resume").status_code == 202
    assert daemon.controls.asked == [("resume", FLOW)]


def test_a_leader_that_is_not_known_or_serves_nothing_is_said_so():
    """The answer says why, if something is wrong, and how to pause the flow nevertheless."""
    daemon = ServedFlows(ServerSettings(token=TOKEN))
    client = on_standby(daemon, None, problem="join group g, cluster B: away")
    assert answered(client, PATH)["messages"] == ["join group g, cluster B: away"]
    unknown = client.get(f"{PATH}/groups")
    assert "leader" not in unknown.json()
    told = "cycle of flow A->B, and it is not known which instance runs it: join"
    assert told in problem(unknown, 409)
    paused = on_standby(daemon, None).post(f"{PATH}/pause").json()
    assert "set A->B.enabled = false" in paused["next_step"]
    serves_nothing = on_standby(daemon, Instance("b", "sync-2", 7, AT))
    told = refused(serves_nothing, f"{PATH}/groups", 409)
    assert "sync-2, process 7" in told
    assert "serves no API" in told


# --- probes, metrics, pages ---------------------------------------------------------------


def test_healthz_asks_for_the_loop_alone():
    """A flow that fails is no reason to restart the process."""
    daemon = ServedFlows()
    daemon.failure("away")
    lives = [True]
    client = daemon.client(alive=lambda: lives[0])
    assert answered(client, "/healthz") == {"ok": True}
    lives[0] = False
    assert "restart" in refused(client, "/healthz", 503)


def test_readyz_waits_for_a_cycle():
    """Of any flow, well or not; not where all are paused or held back, for none would come."""
    daemon, paused = ServedFlows(), ServedFlows()
    assert "no cycle" in refused(daemon.client(), "/readyz", 503)
    daemon.failure("away")
    for name, state in ((FLOW, FlowState.PAUSED), ("B->A", FlowState.FAILED)):
        paused.board.update(name, state=state)
    for one in (daemon, paused):
        assert answered(one.client(), "/readyz") == {"ok": True}


def test_metrics_are_handed_on_as_they_were_asked_for():
    """With the type that they come with; without them there is no such path."""
    client = ServedFlows().client(metrics=lambda accept: (accept.encode(), "text/x; version=1"))
    response = client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert response.text == "application/openmetrics-text"
    assert response.headers["content-type"] == "text/x; version=1"
    refused(ServedFlows().client(), "/metrics", 404)


def test_the_documentation_needs_no_other_site(client):
    """Page, script and style are files of this installation."""
    page = client.get("/docs/").text
    assert "http" not in page
    for name in ("start.js", "swagger-ui/swagger-ui-bundle.js", "swagger-ui/swagger-ui.css"):
        assert f'"{name}"' in page
        assert client.get(f"/docs/{name}").status_code == 200
    assert client.get("/docs").headers["location"] == "/docs/"


def test_every_field_says_what_it_is(client):
    """A description, but for those whose name and type say all."""
    plain = {"flow", "group", "groups", "flows", "topics", "rows", "points", "partitions", "totals"}
    plain |= {"instance", "reasons", "outcome", "source_topic", "partition", "target_topic", "ok"}
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name, schema in schemas.items():
        if "properties" not in schema:
            continue
        assert schema["description"], name
        for field, of in schema["properties"].items():
            assert "description" in of or field in plain, f"{name}.{field}"


# --- large --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_flow_is_answered_in_pages():
    """No answer about 65,000 groups with ten pairs each is larger than its page, and all of them
    are made of one summary a cycle."""
    daemon = ServedFlows()
    daemon.cycle(many_rows(65_000, 10))
    client = daemon.client()
    for path in ("/groups", "/topics", "/history", "", "/groups/group-00000"):
        assert len(client.get(PATH + path).content) < 50_000
    assert len(client.get(f"{PATH}/groups?limit=1000").content) < 500_000
    refused(client, f"{PATH}/groups?limit=1001", 422)
    found = answered(client, f"{PATH}/groups", page=650, sort="lag_records", order="desc")
    assert (len(found["groups"]), found["total"]) == (100, 65_000)


@pytest.mark.thorough
def test_answers_about_large_cycles_leave_nothing_behind():
    """What is kept of one cycle makes room for what is kept of the next."""
    rows = many_rows(20_000, 10)
    daemon = ServedFlows()
    client = daemon.client()

    def held() -> int:
        daemon.cycle(rows)
        for path in (f"{PATH}/groups?limit=1000&sort=lag_records", f"{PATH}/topics"):
            client.get(path)
        gc.collect()
        return int(pa.total_allocated_bytes())

    held()
    first, *others = [held() for _ in range(4)]
    assert max(others) <= first * 1.1


def test_a_summary_is_made_once_a_cycle(monkeypatch):
    """It is made when first asked for, so it costs nothing if it is not used."""
    from tsoffset.daemon import status

    made: list[Any] = []
    real = status.Summary
    monkeypatch.setattr(status, "Summary", lambda *given: made.append(given) or real(*given))
    daemon = ServedFlows()
    daemon.cycle([row("a")])
    assert made == []
    client = daemon.client()
    for _ in range(3):
        answered(client, f"{PATH}/groups")
        answered(client, PATH)
    assert len(made) == 1
    daemon.cycle([row("a")])
    answered(client, PATH)
    assert len(made) == 2


def test_an_empty_board_has_no_flows():
    """Nor is anything wrong with it; but the configuration is not loaded yet."""
    daemon = ServedFlows()
    daemon.board = Board(daemon.board.instance)
    assert answered(daemon.client(), "/api/v1/flows")["flows"] == []
    refused(daemon.client(), "/readyz", 503)
