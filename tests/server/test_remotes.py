"""Other instances, which the daemon asks for the page: what is shown of them, what is sent to them,
and what the page says of those that do not answer well."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest

from tests.http_server import http_server
from tests.serving import FLOW, READ_TOKEN, ServedFlows, row
from tests.waiting import wait_until
from tsoffset.flow.security import keeps_secrets
from tsoffset.flow.settings import ServerSettings
from tsoffset.server import remotes
from tsoffset.server.answers import RemoteAnswer
from tsoffset.server.remotes import Remotes

ANY = "http://127.0.0.1:0"
SECRET = "s3cr3t-canary"


@contextmanager
def served(**settings: object) -> Iterator[tuple[ServedFlows, str]]:
    """Another daemon that has had a cycle, and where."""
    daemon = ServedFlows(ServerSettings(listeners=(ANY,), **settings))
    daemon.cycle([row("billing")])
    with daemon.serve() as (address,):
        yield daemon, address


Answer = Callable[[BaseHTTPRequestHandler], None]


def answering(answer: Answer) -> AbstractContextManager[str]:
    """The address of something that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return http_server(Handler)


def said(status: int, body: bytes = b"", **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def of(*urls: str, token: str | None = None, fresh: float = 0.0) -> Remotes:
    settings = ServerSettings(remote_urls=urls, read_token=token)
    return Remotes(settings, lambda: 7.0, fresh)


def asked(one: Remotes) -> RemoteAnswer:
    """What is known of the first when it has answered, or not."""
    one.known_answers()
    wait_until(
        lambda: (
            one.known_answers()[0].error is not None or one.known_answers()[0].answer is not None
        )
    )
    return one.known_answers()[0]


def refusal(url: str, token: str | None = None) -> str:
    found = asked(of(url, token=token))
    assert found.answer is None
    assert found.error is not None
    return found.error


def test_an_instance_is_shown_as_it_answers():
    """Its flows, and when that was by the clock here."""
    with served() as (daemon, address):
        found = asked(of(address))
    assert found.answer is not None
    assert [flow.name for flow in found.answer.flows] == [FLOW, "B->A"]
    assert found.answer.instance.id == daemon.board.instance.id
    assert (found.answered_at, found.error) == (7.0, None)


def test_an_instance_that_is_away_leaves_what_it_last_said():
    """With the reason why it does not answer any more."""
    with served() as (_, address):
        known = of(address)
        asked(known)
    wait_until(lambda: known.known_answers()[0].error is not None)
    (found,) = known.known_answers()
    assert found.answer is not None
    assert "cannot be reached; check that it runs" in (found.error or "")


def test_nobody_waits_for_others():
    """What is known is answered at once; one that hangs delays neither the rest nor us."""
    with socket.create_server(("127.0.0.1", 0)) as silent, served() as (_, address):
        known = of(f"http://127.0.0.1:{silent.getsockname()[1]}", address)
        assert [one.answer for one in known.known_answers()] == [None, None]
        wait_until(lambda: known.known_answers()[1].answer is not None)
        assert known.known_answers()[0].error is None
        assert known.known_answers()[0].url == f"http://127.0.0.1:{silent.getsockname()[1]}"


def test_others_are_asked_only_every_few_seconds():
    """However often somebody asks here, and never twice at a time."""
    requests = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        requests.append(request.path)
        said(503)(request)

    with answering(answer) as address:
        known = of(address, fresh=3_600)
        asked(known)
        for _ in range(20):
            known.known_answers()
    assert requests == ["/api/v1/flows"]


# --- tokens -------------------------------------------------------------------------------


def test_one_token_to_read_serves_all_instances():
    """It is sent to this machine, and by https; the token to change is sent nowhere."""
    with served(read_token=READ_TOKEN) as (_, address):
        assert asked(of(address, token=READ_TOKEN)).answer is not None
        assert "give all instances the same listeners.read.token" in refusal(
            address, "other-token-0123"
        )


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://sync.example", True),
        ("http://127.0.0.1:8083", True),
        ("http://localhost:8083", True),
        ("http://sync.example", False),
        ("http://localhost.example", False),
    ],
)
def test_a_token_never_goes_over_a_network_in_the_clear(url, sent):
    """By https, or to this machine alone."""
    assert keeps_secrets(url) is sent


def test_the_address_is_shown_without_what_may_be_secret():
    """User, password, query and fragment are neither shown nor sent."""
    with served() as (_, address):
        host = address.removeprefix("http://")
        found = asked(of(f"http://user:{SECRET}@{host}/?token={SECRET}#{SECRET}"))
    assert found.url == address
    assert found.answer is not None


def test_an_address_with_a_path_is_taken_for_a_prefix():
    """As behind a proxy."""
    paths = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        paths.append(request.path)
        said(404)(request)

    with answering(answer) as address:
        refusal(f"{address}/sync/")
    # It is asked repeatedly.
    assert set(paths) == {"/sync/api/v1/flows"}


# --- answers that are none ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"<html>", "not from a compatible version"),
        (200, b'{"flows": 1}', "not from a compatible version"),
        (200, b"", "not from a compatible version"),
        (500, b"", "answers with status 500"),
        (401, b"", "rejects this token"),
        # It is not followed: it could lead anywhere, with our token.
        (302, b"", "answers with status 302"),
    ],
)
def test_what_is_no_answer_has_a_sentence(status, body, told):
    """With a next step, and nothing of the body."""
    with answering(said(status, body, Location="http://127.0.0.1:1/")) as address:
        error = refusal(address)
    assert told in error
    assert ";" in error


def test_an_answer_without_end_is_left(monkeypatch):
    """By its size."""
    monkeypatch.setattr(remotes, "LARGEST_ANSWER", 1_000)
    with answering(said(200, b"x" * 100_000)) as address:
        assert "too large" in refusal(address)


def test_a_slow_answer_is_left(monkeypatch):
    """By the time for all of it, however often a byte comes. Here a second passes whenever somebody
    looks."""
    seconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(remotes, "time", clock)
    ended = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not ended.wait(0.02):
            try:
                request.wfile.write(b" ")
            except OSError:
                return

    with answering(answer) as address:
        assert "too long" in refusal(address)
        ended.set()


def test_an_instance_that_says_nothing_is_left(monkeypatch):
    """After its time."""
    monkeypatch.setattr(remotes, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = refusal(f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert "no answer in time" in error


def test_https_that_is_none_says_what_to_do():
    """The certificate, or the scheme."""
    with answering(said(200)) as address:
        assert "SSL_CERT_FILE" in refusal(address.replace("http:", "https:"))


# --- the API ------------------------------------------------------------------------------


def test_the_api_shows_other_instances():
    """By their address, with what they last answered."""
    with served() as (_, address):
        client = ServedFlows(ServerSettings(remote_urls=(address,))).client()
        wait_until(lambda: client.get("/api/v1/remotes").json()["remotes"][0]["answer"] is not None)
    response = client.get("/api/v1/remotes")
    (found,) = response.json()["remotes"]
    assert (found["url"], found["answer"]["flows"][0]["name"]) == (address, FLOW)


def test_without_other_instances_there_are_none():
    """Nor is anything asked."""
    client = ServedFlows().client()
    response = client.get("/api/v1/remotes")
    assert response.json() == {"remotes": []}
    known = {"if-none-match": response.headers["etag"]}
    assert client.get("/api/v1/remotes", headers=known).status_code == 304
