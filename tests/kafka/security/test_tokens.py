"""OAUTHBEARER's tokens, without a broker."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator

import pytest

from tests.kafka.security.test_stores import PASSWORD
from tests.token_endpoint import TokenEndpoint
from tests.waiting import wait_until
from tsoffset.flow.security import CertificateStore, Tls, TokenFile, TokenLogin
from tsoffset.flow.security import TokenEndpoint as Endpoint
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import LoginFailed
from tsoffset.kafka.security.tls import context, new_context
from tsoffset.kafka.security.tokens import Tokens, fetch
from tsoffset.lab.embedded.certificates import Authority


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    loop.start()
    yield loop
    loop.close()


@pytest.fixture
def theirs() -> Iterator[TokenEndpoint]:
    with TokenEndpoint({"me": "secret"}) as endpoint:
        yield endpoint


def login(theirs: TokenEndpoint, tls: Tls | None = None, **refresh: float) -> TokenLogin:
    origin = Endpoint(theirs.token_url, "me", "secret", None, False, tls or Tls(), 60_000, 60_000)
    return TokenLogin(origin, refresh_least_seconds=0, refresh_buffer_seconds=0, **refresh)


class HeldTime:
    """The time of a loop and of its tokens: it stands still until a test moves it forward."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._now = time.time()
        loop._events.time = self.time

    def time(self) -> float:
        return self._now

    def skip(self, seconds: float, tokens: Tokens) -> None:
        """Let time pass at once, and a renewal that is due by then end."""
        self._now += seconds
        self._loop.run(self._turns)
        wait_until(lambda: not self._loop.is_under_way(tokens), "the renewal has ended")
        self._loop.run(self._turns)

    async def _turns(self) -> None:
        """As many turns of the loop as a timer needs to start a thread."""
        for _ in range(5):
            await asyncio.sleep(0)


# A token that is due a third of a second after it was issued.
SOON = {"refresh_factor": 0.001}


def test_a_token_is_asked_for_once_until_it_is_due(loop, theirs):
    ahead = [0.0]
    tokens = Tokens(login(theirs), clock=lambda: time.time() + ahead[0])
    for _ in range(3):
        loop.run(tokens.fresh, loop)
    assert theirs.requests["/token", 200] == 1
    first = tokens.token()
    ahead[0] = 0.8 * theirs.lifetime_seconds + 1
    loop.run(tokens.fresh, loop)
    assert theirs.requests["/token", 200] == 2
    assert theirs.issued == [first, tokens.token()]


def test_a_token_that_lasts_serves_while_no_other_is_to_be_had(loop, theirs):
    """To its end, and not past it; the address is not asked at each connection."""
    ahead = [0.0]
    tokens = Tokens(login(theirs), clock=lambda: time.time() + ahead[0])
    loop.run(tokens.fresh, loop)
    held = tokens.token()
    theirs.clients.clear()
    ahead[0] = 0.8 * theirs.lifetime_seconds + 1
    for _ in range(3):
        loop.run(tokens.fresh, loop)
    assert tokens.token() == held
    assert theirs.requests["/token", 401] == 1
    ahead[0] = theirs.lifetime_seconds + 1
    with pytest.raises(LoginFailed, match="answers 401"):
        loop.run(tokens.fresh, loop)


def test_a_token_that_lasts_serves_where_a_store_cannot_be_read(loop, theirs, tmp_path):
    """As while its file is replaced. (The address itself needs none here.)"""
    path = Authority().write_pkcs12(tmp_path / "trust.p12", PASSWORD)
    tls = Tls(CertificateStore(False, str(path), PASSWORD))
    ahead = [0.0]
    tokens = Tokens(login(theirs, tls), clock=lambda: time.time() + ahead[0])
    loop.run(tokens.fresh, loop)
    path.unlink()
    ahead[0] = 0.8 * theirs.lifetime_seconds + 1
    loop.run(tokens.fresh, loop)
    assert [tokens.token()] == theirs.issued


def test_a_token_that_has_ended_is_named_and_not_asked_for_again_and_again(loop, theirs):
    """This happens if clocks differ, or if no process renews a file."""
    theirs.lifetime_seconds = -5
    held = HeldTime(loop)
    tokens = Tokens(login(theirs), clock=held.time)
    with pytest.raises(LoginFailed, match="has already expired; compare the clocks"):
        loop.run(tokens.fresh, loop)
    held.skip(60, tokens)
    assert theirs.requests["/token", 200] == 1


def test_an_address_that_refuses_is_left_alone_after_the_last_token_has_ended(loop, theirs):
    """Repeating a wrong secret each second may lock an account."""
    held = HeldTime(loop)
    tokens = Tokens(login(theirs, **SOON), clock=held.time)
    loop.run(tokens.fresh, loop)
    theirs.clients.clear()
    held.skip(2 * theirs.lifetime_seconds, tokens)
    assert theirs.requests["/token", 401] == 1
    for seconds in (8.8, 1.1):
        held.skip(seconds, tokens)
    assert theirs.requests["/token", 401] == 1
    for seconds in (0.2, 1.1):
        held.skip(seconds, tokens)
    assert theirs.requests["/token", 401] == 2


def test_tokens_are_exchanged_while_the_loop_runs(loop, theirs):
    """For connections that prove again who they are; not more often than once a second."""
    held = HeldTime(loop)
    tokens = Tokens(login(theirs, **SOON), clock=held.time)
    loop.run(tokens.fresh, loop)
    for renewals in range(3):
        held.skip(0.9, tokens)
        assert theirs.requests["/token", 200] == 1 + renewals
        held.skip(0.2, tokens)
        assert theirs.requests["/token", 200] == 2 + renewals


@pytest.mark.parametrize(
    ("content", "why"), [("", "empty"), ("a\nb", "not one line"), (b"\xff\xfe", "not text")]
)
def test_a_file_without_a_token_is_named(tmp_path, content, why):
    """What goes to a broker is one printable line."""
    path = tmp_path / "token"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(LoginFailed, match=why):
        fetch(TokenLogin(TokenFile(str(path))))


@pytest.mark.parametrize("claims", [{}, {"exp": "soon"}, {"exp": 1e999}, {"exp": None}, []])
def test_a_token_that_tells_no_end_is_taken(tmp_path, claims):
    """Tokens need not be of JSON, nor tell their end."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    (tmp_path / "token").write_text(f"a.{body}.c")
    assert fetch(TokenLogin(TokenFile(str(tmp_path / "token")))).ends == float("inf")


def test_who_asks_for_tokens_shares_no_context_with_brokers():
    """The library that asks sets options of it, checks of host names among them."""
    assert context(Tls()) is context(Tls())
    assert new_context(Tls()) is not context(Tls())
