"""What stands between the API and those who ask: tokens, headers, limits, names of this machine."""

import json

import pytest
from starlette.testclient import TestClient

from tests.serving import AT, FLOW, PATH, READ_TOKEN, TOKEN, ServedFlows, bearing, problem, row
from tsoffset.flow.settings import ServerSettings
from tsoffset.server.guard import BODY_BYTES, HEADER_BYTES, TARGET_BYTES, Hosts, is_local

DATA = ("/api/v1/flows", PATH, f"{PATH}/groups", "/api/v1/remotes", "/metrics")
NO_DATA = ("/healthz", "/readyz", "/docs/", "/docs/start.js", "/openapi.json")
PATHS = (*DATA, *NO_DATA, "/", "/docs", "/nothing", f"{PATH}/groups?limit=0")
SECRET = "s3cr3t-canary"


def asking(settings: ServerSettings | None = None, **how: object) -> TestClient:
    """Somebody who asks a daemon that has had a cycle, and has metrics."""
    daemon = ServedFlows(settings)
    daemon.cycle([row("billing")])
    return daemon.client(metrics=lambda _accept: (b"", "text/plain"), **how)


# --- tokens -------------------------------------------------------------------------------


def test_without_tokens_everybody_reads_and_nobody_changes():
    """403 says what to set, whatever token is shown."""
    client = asking()
    for path in DATA:
        assert client.get(path).status_code == 200
    for headers in ({}, bearing(TOKEN), bearing("")):
        told = problem(client.post(f"{PATH}/pause", headers=headers), 403)
        assert "set listeners.token" in told


def test_with_a_token_to_read_what_holds_data_asks_for_it():
    """The token to change reads, too; probes, the documentation and pages hold no data."""
    client = asking(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    for path in DATA:
        response = client.get(path)
        assert "listeners.read.token" in problem(response, 401)
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert client.get(path, headers=bearing(READ_TOKEN)).status_code == 200
        assert client.get(path, headers=bearing(TOKEN)).status_code == 200
    for path in NO_DATA:
        assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        bearing(TOKEN[:-1]),
        bearing(TOKEN + "x"),
        bearing(""),
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer t\xf6ken"},
    ],
)
def test_a_wrong_token_is_not_known(headers):
    """Nor is a part of one, or one that is no ASCII."""
    client = asking(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    raw = [(name, value.encode("latin-1")) for name, value in headers.items()]
    problem(client.get(PATH, headers=raw), 401)
    problem(client.post(f"{PATH}/pause", headers=raw), 401)


def test_the_token_to_read_changes_nothing():
    """403: it is known, and not enough."""
    client = asking(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    told = problem(client.post(f"{PATH}/pause", headers=bearing(READ_TOKEN)), 403)
    assert "only allows reading" in told


def test_a_flow_is_not_guessed_without_a_token():
    """Who may not read is not told what there is."""
    client = asking(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    assert client.get("/api/v1/flows/X").status_code == 401
    assert client.post("/api/v1/flows/X/pause").status_code == 401


# --- secrets ------------------------------------------------------------------------------


def test_no_answer_holds_a_secret():
    """Neither tokens, nor what errors and facts of a cycle quote."""
    daemon = ServedFlows(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    told = f"connect with password={SECRET}: refused"
    daemon.cycle([row("g", message=told)], facts={"password": SECRET, "more": [told]})
    daemon.failure(told)
    daemon.board.warnings = (told,)
    client = daemon.client(headers=bearing(TOKEN))
    paths = ("/api/v1/flows", PATH, f"{PATH}/groups", f"{PATH}/groups/g", f"{PATH}/history")
    for path in (*paths, f"/api/v1/translate?flow={FLOW}&group=g", "/openapi.json"):
        response = client.get(path)
        assert response.status_code == 200
        for secret in (SECRET, TOKEN, READ_TOKEN, "127.0.0.1:1"):
            assert secret not in response.text


# --- headers ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_keeps_browsers_strict(path):
    """Nothing is run, framed, guessed, or lent to other sites; nothing says which server it is."""
    headers = asking().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert policy.startswith(("default-src 'none'", "default-src 'self'"))
    assert "unsafe" not in policy
    assert not {"server", "access-control-allow-origin"} & {*headers}


def test_other_sites_may_not_ask():
    """There is no CORS: a preflight is no method of any path."""
    origin = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    response = asking().options(f"{PATH}/pause", headers=origin)
    problem(response, 405)
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "path", ["/<script>alert(1)</script>", f"{PATH}/groups/<script>", f"{PATH}/groups?limit=<b>"]
)
def test_what_was_asked_comes_back_as_json_or_not_at_all(path):
    """No browser takes it for a page."""
    response = asking().get(path)
    assert response.status_code in (404, 422)
    assert response.headers["content-type"] == "application/problem+json"
    json.loads(response.text)


# --- ETag ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/flows", PATH, f"{PATH}/groups", f"{PATH}/history"])
def test_an_answer_is_sent_again_only_after_a_change(path):
    """Time alone is none; a cycle, a new state and another process are."""
    daemon = ServedFlows()
    daemon.cycle([row("billing")])
    client = daemon.client()
    tag = client.get(path).headers["etag"]
    daemon.now += 10
    known = {"if-none-match": f'"other", {tag}'}
    response = client.get(path, headers=known)
    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == tag
    daemon.board.update(FLOW, next_at=AT + 60)
    changed = client.get(path, headers=known)
    assert changed.status_code == 200
    daemon.cycle([row("billing")])
    assert client.get(path).headers["etag"] not in (tag, changed.headers["etag"])
    assert ServedFlows().client().get("/api/v1/flows").headers["etag"] != tag


# --- limits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-length": str(BODY_BYTES + 1)}, 413),
        ({"content-length": "0"}, 200),
        ({"transfer-encoding": "chunked"}, 413),
        ({"x-long": "x" * HEADER_BYTES}, 431),
    ],
)
def test_large_requests_are_refused(headers, status):
    """Before anything is done with them; the connection ends."""
    response = asking().get(PATH, headers=headers)
    assert response.status_code == status
    if status != 200:
        problem(response, status)
        assert response.headers["connection"] == "close"


def test_a_long_address_is_refused():
    """414, before it is looked at."""
    problem(asking().get(f"{PATH}/groups?search={'x' * TARGET_BYTES}"), 414)


def test_a_mistake_of_ours_is_a_problem_too():
    """It says nothing of what went wrong: the log does."""
    daemon = ServedFlows()
    client = daemon.client(metrics=lambda _accept: 1 / 0)
    client._transport.raise_server_exceptions = False
    response = client.get("/metrics")
    assert "ZeroDivision" not in problem(response, 500)
    assert response.headers["x-content-type-options"] == "nosniff"


def test_head_is_answered_like_get():
    """As HTTP has it; checks by HEAD are common."""
    assert asking().head("/healthz").status_code == 200


# --- who is meant -------------------------------------------------------------------------


MACHINE = ("sync-1", "sync-1.example")


def hosts(listener: str, *configured: str) -> Hosts:
    """The names of a listener on a machine that has these of MACHINE."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "Sync-1")
        patch.setattr("socket.getfqdn", lambda: MACHINE[1])
        return Hosts.of(listener, configured)


LOCAL, ANY_ADDRESS = "127.0.0.1", "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize(
    ("listener", "configured", "host"),
    [
        *(
            (LOCAL, (), host)
            for host in ("localhost", "localhost:8083", "127.0.0.1:1", "LOCALHOST.")
        ),
        (LOCAL, (), "[::1]:8083"),
        (LOCAL, ("tunnel.example",), "Tunnel.example:1"),
        ("localhost.example", (), "localhost.example"),
        *(
            (ANY_ADDRESS, (), host)
            for host in (*MACHINE, "SYNC-1:8083", "localhost", "192.0.2.1:1")
        ),
        (ANY_ADDRESS, (), "[2001:db8::1]:8083"),
        (ANY_ADDRESS, ("sync.example",), "sync.example"),
        (ANY_ADDRESS, ("sync.example",), "192.0.2.1"),
        (ANY_ADDRESS, ("*",), "whatever.example"),
    ],
)
def test_a_listener_has_its_names(listener, configured, host):
    """With any port, which a tunnel may change: what it is bound to, and this machine's names or
    the configured ones. An address is no site's name."""
    client = asking(hosts=hosts(listener, *configured))
    assert client.get(PATH, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("listener", "configured", "host"),
    [
        *(
            (LOCAL, (), host)
            for host in ("evil.example", "localhost.evil.example", "[::2]", "[", "")
        ),
        *((LOCAL, (), host) for host in ("evil.example:8083", "192.0.2.1", *MACHINE)),
        *((ANY_ADDRESS, (), host) for host in ("evil.example", "sync-1.evil.example", "[", "")),
        *((ANY_ADDRESS, ("sync.example",), host) for host in ("evil.example", *MACHINE)),
    ],
)
def test_a_listener_answers_under_no_other_name(listener, configured, host):
    """A page of another site, whose name was made to lead here, reads nothing (DNS rebinding)."""
    client = asking(hosts=hosts(listener, *configured))
    for path in ("/api/v1/flows", "/healthz", "/docs/"):
        response = client.get(path, headers={"host": host})
        assert "listeners.hosts" in problem(response, 421)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("sync.example", False),
    ],
)
def test_which_listeners_only_this_machine_reaches(host, local):
    """By address or by the one name that has to be one."""
    assert is_local(host) is local
