"""The addresses of `listeners`, on real sockets: what is bound when, TLS, slow clients, the end."""

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from tests.invoking import succeeds
from tests.serving import PATH, TOKEN, ServedFlows, bearing, row
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.errors import ListenerError
from tsoffset.flow.settings import ServerSettings
from tsoffset.lab.embedded.certificates import Authority
from tsoffset.server.application import Metrics
from tsoffset.server.listeners import ListenerCertificate, TimedProtocol, advertised_url

ANY = "http://127.0.0.1:0"
LOOPBACK = ("127.0.0.1", "localhost")
# By itself httpx waits five seconds.
get = partial(httpx2.get, timeout=TIMEOUT_SECONDS)


@contextmanager
def served(*urls: str, metrics: Metrics | None = None, **more: Any) -> Iterator[tuple[str, ...]]:
    """The addresses of a daemon that has had a cycle."""
    daemon = ServedFlows(ServerSettings(listeners=urls or (ANY,), **more))
    daemon.cycle([row("billing")])
    with daemon.serve(metrics=metrics) as addresses:
        yield addresses


def place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition("/")[2].rpartition(":")
    return host, int(port)


def connected(address: str) -> socket.socket:
    return socket.create_connection(place(address), timeout=TIMEOUT_SECONDS)


def error_of(*urls: str, **more: Any) -> str:
    """Why these cannot be served at."""
    with pytest.raises(ListenerError) as caught, served(*urls, **more):
        pass
    assert caught.value.exit_status == 2
    return str(caught.value)


# --- addresses ----------------------------------------------------------------------------


def test_each_listener_is_served_at():
    """Port 0 is a free one, of which the log tells."""
    with capture_logs() as logs, served(ANY, "http://localhost:0") as addresses:
        assert len(set(addresses)) == 2
        for address in addresses:
            assert get(address + PATH).json()["name"] == "A->B"
    told = [one["addresses"] for one in logs if one["event"] == "listening"]
    assert told == [addresses]


def test_an_ipv6_address_is_written_in_brackets():
    """As in a URL."""
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    with served("http://[::1]:0") as (address,):
        assert address.startswith("http://[::1]:")
        assert get(address + "/healthz").json() == {"ok": True}


def test_without_listeners_nothing_is_served():
    """Nor is it an error."""
    with ServedFlows(ServerSettings(listeners=())).serve() as addresses:
        assert addresses == ()


def test_a_port_that_is_taken_is_an_error_at_once():
    """With what to do; no listener before it stays bound."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        told = error_of(ANY, f"http://127.0.0.1:{port}")
    assert told.startswith(f"listen on http://127.0.0.1:{port}: address already in use; ")
    assert "another port" in told


@pytest.mark.parametrize(
    ("listener", "told"),
    [
        ("http://192.0.2.1:0", "an address of this machine"),
        ("http://no.such.host.invalid:0", "the host name cannot be resolved"),
    ],
)
def test_an_address_of_another_machine_is_an_error(listener, told):
    """So is an unknown address."""
    assert told in error_of(listener)


def test_an_address_can_be_had_again_at_once():
    """A restart is not kept waiting by the connections of the process before."""
    with served() as (address,):
        assert get(address + "/healthz").is_success
    with served(address) as again:
        assert again == (address,)


def test_what_goes_wrong_inside_is_not_taken_for_a_listeners_error():
    """An OSError of a cycle stays one."""
    with pytest.raises(FileNotFoundError), served():
        raise FileNotFoundError("state")


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ((), None),
        (("http://127.0.0.1:1",), "http://127.0.0.1:1"),
        (("http://127.0.0.1:1", "https://192.0.2.1:2"), "https://192.0.2.1:2"),
        (("http://127.0.0.1:1", "http://0.0.0.0:2"), "http://192.0.2.7:2"),
        (("http://[::]:2",), "http://192.0.2.7:2"),
        # Its certificate is for a name.
        (("https://0.0.0.0:2",), "https://sync-1:2"),
    ],
)
def test_other_machines_are_told_an_address_that_they_reach(monkeypatch, addresses, found):
    """None of loopback where there is another, and none that means all addresses."""
    monkeypatch.setattr("socket.gethostname", lambda: "sync-1")
    monkeypatch.setattr("socket.gethostbyname", lambda _: "192.0.2.7")
    assert advertised_url(addresses) == found
    monkeypatch.setattr("socket.gethostbyname", lambda _: "127.0.1.1")
    assert advertised_url(["http://0.0.0.0:2"]) == "http://sync-1:2"


# --- TLS ----------------------------------------------------------------------------------


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem())


@pytest.mark.parametrize("password", [None, "opensesame"])
def test_https_shows_the_certificate_of_the_key_store(tmp_path, password):
    """A PEM file with key and chain, and the key's password if it has one."""
    authority = Authority()
    store = authority.issue("here", LOOPBACK).write_pem(tmp_path / "key.pem", password)
    with served("https://127.0.0.1:0", key_store=str(store), key_password=password) as (address,):
        assert address.startswith("https://")
        assert get(address + PATH, verify=trusting(authority)).is_success


def test_versions_of_tls_before_1_2_are_refused(tmp_path):
    """Whatever the machine's OpenSSL would do."""
    store = Authority().issue("here", LOOPBACK).write_pem(tmp_path / "key.pem")
    certificate = ListenerCertificate(ServerSettings(key_store=str(store)))
    assert certificate.context("https://here").minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("content", "password", "told"),
    [
        (None, None, "cannot be read: No such file or directory; check the path"),
        ("nonsense", None, "put both into the file as PEM"),
        ("encrypted", None, "listeners.https.ssl.key.password"),
        ("encrypted", "wrong-canary", "listeners.https.ssl.key.password"),
        ("other key", None, "private key and certificate"),
        ("no store", None, "set listeners.https.ssl.keystore.location"),
    ],
)
def test_a_key_store_that_cannot_be_used_is_an_error_at_once(tmp_path, content, password, told):
    """With what to do, and neither path nor password, which may come from a secret."""
    store, authority = tmp_path / "canary.pem", Authority()
    match content:
        case "nonsense":
            store.write_text("nonsense")
        case "encrypted":
            authority.issue("here", LOOPBACK).write_pem(store, "opensesame")
        case "other key":
            ours, other = authority.issue("a", LOOPBACK), authority.issue("b", LOOPBACK)
            store.write_text(ours.key_pem() + other.chain_pem())
    key_store = None if content == "no store" else str(store)
    error = error_of("https://127.0.0.1:0", key_store=key_store, key_password=password)
    assert told in error
    assert "canary" not in error


def test_a_new_certificate_is_taken_up(tmp_path):
    """Without a restart; a file that is no certificate leaves the old one, and is told once."""
    before, after = Authority(), Authority()
    store = before.issue("here", LOOPBACK).write_pem(tmp_path / "key.pem")
    certificate = ListenerCertificate(ServerSettings(key_store=str(store)))
    context = certificate.context("https://here")

    def accepted_by(authority: Authority) -> bool:
        inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting(authority).wrap_bio(inside, outside, server_hostname="localhost")
        server = context.wrap_bio(outside, inside, server_side=True)
        for _ in range(4):
            for one in (client, server):
                try:
                    one.do_handshake()
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLCertVerificationError:
                    return False
        return True

    assert accepted_by(before)
    with capture_logs() as logs:
        certificate.renew()
        store.write_text("half of a")
        certificate.renew()
        certificate.renew()
        assert accepted_by(before)
        after.issue("here", LOOPBACK).write_pem(store)
        certificate.renew()
    assert accepted_by(after)
    assert not accepted_by(before)
    assert [one["event"] for one in logs] == ["certificate_not_renewed", "certificate_renewed"]


# --- slow clients --------------------------------------------------------------------------


def ended(client: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    found = b""
    try:
        while more := client.recv(65536):
            found += more
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent"],
)
def test_a_request_that_does_not_come_ends_the_connection(monkeypatch, sent):
    """Whoever sends nothing, or a little, holds no connection (slowloris)."""
    with served() as (address,):
        with monkeypatch.context() as hasty:
            hasty.setattr(TimedProtocol, "exchange_seconds", 0.1)
            with connected(address) as client:
                client.sendall(sent)
                assert ended(client) == b""
        assert get(address + "/healthz").is_success


def test_an_answer_that_nobody_takes_ends_the_connection(monkeypatch):
    """Nor does whoever does not read."""
    monkeypatch.setattr(TimedProtocol, "exchange_seconds", 0.1)
    with capture_logs() as logs, served() as (address,), connected(address) as client:
        request = b"GET /docs/swagger-ui/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        # More than all buffers between both ends can hold.
        client.sendall(request * 50)
        wait_until(
            lambda: any(one["event"] == "connection_too_slow" for one in logs), "it is given up"
        )
        assert len(ended(client)) < 50 * 1_000_000


# --- as a whole ---------------------------------------------------------------------------


def test_the_end_of_the_block_is_the_end_of_its_thread():
    """With idle connections and a request that has not come whole; nothing stays open."""
    # The thread of an earlier block may be ending still.
    before = {*threading.enumerate()}
    with served() as (address,):
        idle, half = connected(address), connected(address)
        half.sendall(b"GET / HTTP/1.1\r\n")
        with httpx2.Client(timeout=TIMEOUT_SECONDS) as client:
            assert client.get(address + "/healthz").is_success
        new = {*threading.enumerate()} - before
        (thread,) = [one for one in new if one.name == "listeners"]
    thread.join(TIMEOUT_SECONDS)
    assert not thread.is_alive()
    for one in (idle, half):
        with one:
            assert ended(one) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(address)


def test_what_the_server_has_to_say_goes_where_all_logs_go(caplog):
    """An error of tsoffset has its traceback; requests are logged at debug, without their token."""
    daemon = ServedFlows(ServerSettings(listeners=(ANY,), token=TOKEN))
    with capture_logs() as logs, daemon.serve(metrics=lambda _: b"" + TOKEN) as (address,):
        assert get(f"{address}/metrics", headers=bearing(TOKEN)).status_code == 500
    (record,) = [one for one in caplog.records if one.name == "uvicorn.error"]
    assert record.exc_info
    (answered,) = [one for one in logs if one["event"] == "request_answered"]
    assert (answered["log_level"], answered["path"], answered["status"]) == (
        "debug",
        "/metrics",
        500,
    )
    assert TOKEN not in str(logs)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_asks_as_the_documentation_says():
    """The flow's name encoded, or as a parameter that curl encodes."""

    def curl(*words: str) -> str:
        return succeeds("curl", "-sS", "--fail-with-body", "--noproxy", "*", *words)

    with served(token=TOKEN) as (address,):
        assert '"billing"' in curl(f"{address}{PATH}/groups")
        assert '"billing"' in curl(f"{address}/api/v1/flows/A->B/groups")
        flow, group = "flow=A->B", "group=billing"
        named = ("--data-urlencode", flow, "--data-urlencode", group)
        assert '"offset":40' in curl("-G", *named, f"{address}/api/v1/translate")
        header = f"authorization: {bearing(TOKEN)['authorization']}"
        assert "A->B" in curl("-X", "POST", "-H", header, f"{address}{PATH}/pause")
