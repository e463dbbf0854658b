"""The REST endpoint that translates offsets an application keeps itself."""

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.memory_flows import Estate, mirrored_estate
from tests.serving import PATH, TOKEN, ServedFlows, bearing, problem
from tests.waiting import TIMEOUT_SECONDS
from tsoffset.errors import ConfigurationError, ConfigurationProblem
from tsoffset.flow.settings import ClusterSettings, FlowSettings, ServerSettings
from tsoffset.server.guard import TRANSLATIONS_BODY_BYTES
from tsoffset.testing.memory_cluster import MemoryCluster

ADDRESS = f"{PATH}/translations"


def position(offset: Any = 40, topic: str = "orders", partition: Any = 0) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "offset": offset}


@pytest.fixture
def estate() -> Estate:
    return mirrored_estate(100, first_offset=400)


@pytest.fixture
def client(estate) -> TestClient:
    made = ServedFlows(ServerSettings(token=TOKEN))
    return made.client(connect=estate.connect, headers=bearing(TOKEN))


def test_offsets_are_answered_with_their_rows(client):
    """In the order of the request, those without a translation with their reason."""
    asked = [position(100), position(40), position(101), position(topic="unknown")]
    answer = client.post(ADDRESS, json={"positions": asked})
    assert answer.status_code == 200, answer.text
    rows = answer.json()["rows"]
    assert [(row["target_offset"], row["precision"]) for row in rows] == [
        (500, "exact"),
        (440, "exact"),
        (None, None),
        (None, None),
    ]
    assert rows[2]["reason"] == "PAST_LOG_END"
    assert [row["source_offset"] for row in rows] == [100, 40, 101, 40]


def test_the_token_for_changes_is_needed(estate):
    """A translation costs both clusters."""
    client = ServedFlows(ServerSettings(token=TOKEN)).client(connect=estate.connect)
    assert client.post(ADDRESS, json={"positions": [position()]}).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b'{"positions":[]}', 422),
        (b'{"positions":[{"topic":"o","partition":0,"offset":-1}]}', 422),
        (b'{"positions":[{"topic":"o","partition":0,"offset":"4"}]}', 422),
        (b'{"positions":[{"topic":"o","partition":0,"offset":4,"x":1}]}', 422),
        (b" " * (TRANSLATIONS_BODY_BYTES + 1), 413),
    ],
)
def test_a_bad_body_is_refused_with_a_problem(client, body, status):
    answer = client.post(ADDRESS, content=body, headers={"content-type": "application/json"})
    problem(answer, status)


def test_a_thousand_offsets_are_taken_and_no_more(client):
    longest = position(2**53 - 1, "t" * 249, 2**31 - 1)
    answer = client.post(ADDRESS, json={"positions": [longest] * 1_000})
    assert (answer.status_code, len(answer.json()["rows"])) == (200, 1_000)
    assert client.post(ADDRESS, json={"positions": [longest] * 1_001}).status_code == 422


def test_one_translation_runs_at_a_time(estate):
    """A second request is refused at once, and answered when the first has ended."""
    asked, go_on = threading.Event(), threading.Event()

    def connect(settings: ClusterSettings) -> MemoryCluster:
        asked.set()
        assert go_on.wait(TIMEOUT_SECONDS)
        return estate.connect(settings)

    client = ServedFlows(ServerSettings(token=TOKEN)).client(
        connect=connect, headers=bearing(TOKEN)
    )
    body = {"positions": [position()]}
    first = threading.Thread(target=lambda: client.post(ADDRESS, json=body))
    first.start()
    assert asked.wait(TIMEOUT_SECONDS)
    assert client.post(ADDRESS, json=body).status_code == 429
    go_on.set()
    first.join()
    assert client.post(ADDRESS, json=body).status_code == 200


def test_settings_that_cannot_be_read_any_more_are_a_problem(estate):
    """The file of a secret that is gone, in words; not an internal error."""

    def gone(_flow: str) -> FlowSettings:
        raise ConfigurationError(
            (ConfigurationProblem("B.sasl.jaas.config", None, "no such file"),)
        )

    daemon = ServedFlows(ServerSettings(token=TOKEN))
    daemon.controls.settings = gone  # type: ignore[method-assign]
    client = daemon.client(connect=estate.connect, headers=bearing(TOKEN))
    answer = client.post(ADDRESS, json={"positions": [position()]})
    assert "no such file" in problem(answer, 503)


def test_an_unknown_flow_is_not_found(client):
    body = {"positions": [position()]}
    assert client.post("/api/v1/flows/X-%3EY/translations", json=body).status_code == 404
