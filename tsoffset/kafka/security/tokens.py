"""OAUTHBEARER's tokens: fetched, kept, and renewed before they expire."""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3
from kafka.errors import KafkaError

from tsoffset.flow.security import MskToken, TokenEndpoint, TokenFile, TokenLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import LoginFailed, TokenUnavailable
from tsoffset.kafka.security.tls import explain_failure, new_context

_LARGEST_ANSWER, _PIECE = 1_000_000, 65_536
# The shortest time between two requests, and the pause after a failed one (as in Kafka).
_LEAST_SECONDS, _PAUSE_SECONDS = 1.0, 10.0
_MESSAGE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz_")
_FOR_EVER = float("inf")


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its expiry, in seconds since 1970; infinite if it has none."""

    text: str = field(repr=False)
    ends: float = _FOR_EVER


class Tokens:
    """The tokens of one cluster's connections.

    `fresh` fetches one if that is due; then a login takes it with `token`. While the loop runs, it
    is renewed in time for connections that authenticate again.
    """

    def __init__(self, login: TokenLogin, clock: Callable[[], float] = time.time) -> None:
        self._login = login
        self._clock = clock
        self._token: Token | None = None
        self._due = 0.0
        self._renewal: asyncio.Task[None] | None = None

    def token(self) -> str:
        assert self._token is not None
        return self._token.text

    def extensions(self) -> Mapping[str, str]:
        return self._login.extensions

    async def fresh(self, loop: Loop) -> None:
        """Ensure a token that is not due for renewal, or that is valid if no new one is available.

        Raises LoginFailed or TokenUnavailable, or why a trust store cannot be used.
        """
        if self._token is not None and self._clock() < self._due:
            return
        try:
            token = await loop.run_in_thread(self, partial(fetch, self._login))
            if token.ends <= self._clock():
                raise LoginFailed("the token has already expired; compare the clocks")
        except KafkaError:
            if self._token is None or self._token.ends <= self._clock():
                raise
            self._due = self._clock() + _PAUSE_SECONDS
        else:
            # Several connections may have waited for the same one.
            if token is not self._token:
                self._token, self._due = token, self._due_of(token)
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew(loop))

    async def _renew(self, loop: Loop) -> None:
        while True:
            await asyncio.sleep(max(_LEAST_SECONDS, self._due - self._clock()))
            try:
                await self.fresh(loop)
            except KafkaError:
                # The next login gets the error again, and reports it.
                await asyncio.sleep(_PAUSE_SECONDS)

    def _due_of(self, token: Token) -> float:
        """As Kafka's ExpiringCredentialRefreshingLogin, without its jitter."""
        now, login = self._clock(), self._login
        if token.ends == _FOR_EVER:
            # A file may change at any time, and without an expiry nothing else says when.
            return now + login.refresh_least_seconds
        early = now + (token.ends - now) * login.refresh_factor
        due = min(early, token.ends - login.refresh_buffer_seconds)
        due = max(due, now + login.refresh_least_seconds)
        return due if due < token.ends else early


def fetch(login: TokenLogin) -> Token:
    """A token from its source; blocks. Raises LoginFailed or TokenUnavailable."""
    match login.origin:
        case TokenEndpoint() as endpoint:
            return _from_endpoint(endpoint)
        case TokenFile(path):
            return _from_file(path)
        case MskToken() as msk:
            return _from_aws(msk)


def _from_file(path: str) -> Token:
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        raise LoginFailed(f"no token in {path}: {cause}") from None
    if not text or not text.isprintable():
        raise LoginFailed(f"no token in {path}: it is {'not one line' if text else 'empty'}")
    return Token(text, _end_of(text))


def _from_endpoint(endpoint: TokenEndpoint) -> Token:
    parts = [endpoint.client_id, endpoint.client_secret]
    if endpoint.url_encoded_header:
        parts = [quote(part, safe="") for part in parts]
    credentials = base64.b64encode(":".join(parts).encode()).decode()
    fields = {"grant_type": "client_credentials"}
    if endpoint.scope:
        fields["scope"] = endpoint.scope
    try:
        # An unshared context: the library sets options in it.
        with urllib3.PoolManager(
            ssl_context=new_context(endpoint.tls),
            assert_hostname=None if endpoint.tls.verify_host_name else False,
        ) as pool:
            answer = pool.request(
                "POST",
                endpoint.url,
                fields=fields,
                encode_multipart=False,
                headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
                timeout=urllib3.Timeout(
                    connect=endpoint.connect_timeout_ms / 1000,
                    read=endpoint.read_timeout_ms / 1000,
                ),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            body = _body(answer, time.monotonic() + endpoint.read_timeout_ms / 1000)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _not_asked(endpoint, error) from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    fields_found: Mapping[str, Any] = found if isinstance(found, dict) else {}
    text = fields_found.get("access_token")
    if answer.status != 200 or not isinstance(text, str) or not text.isprintable():
        said = fields_found.get("error")
        named = isinstance(said, str) and 0 < len(said) < 60 and {*said} <= _MESSAGE_CHARACTERS
        later = answer.status >= 500 or answer.status == 429
        raise (TokenUnavailable if later else LoginFailed)(
            f"no token from {_host_and_port(endpoint)}: it answers {answer.status}"
            + (f" ({said})" if named else " without a token" if answer.status == 200 else "")
        )
    seconds = fields_found.get("expires_in")
    ends = time.time() + seconds if isinstance(seconds, int | float) else _FOR_EVER
    return Token(text, min(_end_of(text), ends))


def _host_and_port(endpoint: TokenEndpoint) -> str:
    """Host and port only: the rest of an address may contain a secret."""
    parts = urlsplit(endpoint.url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _body(answer: Any, moment: float) -> bytes:
    """The answer's content, by that moment of the monotonic clock. Raises TokenUnavailable."""
    body = b""
    while len(body) < _LARGEST_ANSWER and (some := answer.read1(_PIECE)):
        body += some
        if time.monotonic() > moment:
            raise TokenUnavailable("no token: its answer takes too long")
    return body


def _end_of(text: str) -> float:
    """The expiry in a JSON web token (RFC 7519, `exp`); infinite if it has none."""
    try:
        payload = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
        return _FOR_EVER


def _from_aws(msk: MskToken) -> Token:
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError:
        raise LoginFailed("no token from AWS: install tsoffset[msk]") from None
    try:
        if msk.role_arn is not None:
            words = [msk.role_session_name] if msk.role_session_name else []
            text, ends_ms = Signer.generate_auth_token_from_role_arn(
                msk.region, msk.role_arn, *words
            )
        elif msk.profile is not None:
            text, ends_ms = Signer.generate_auth_token_from_profile(msk.region, msk.profile)
        else:
            text, ends_ms = Signer.generate_auth_token(msk.region)
    except Exception as error:  # any error of botocore: no credentials, no route to AWS
        raise LoginFailed(f"no token from AWS: {type(error).__name__}") from None
    return Token(text, ends_ms / 1000)


def _not_asked(endpoint: TokenEndpoint, error: BaseException) -> LoginFailed | TokenUnavailable:
    """Why it gave no token, in the system's words, which contain no part of the request."""
    address = _host_and_port(endpoint)
    told = "no answer in time" if isinstance(error, urllib3.exceptions.TimeoutError) else ""
    found: BaseException | None = error
    while found is not None:
        for one in (found, *found.args):
            if isinstance(one, ssl.SSLCertVerificationError):
                why = explain_failure(one, endpoint.tls, "its")
                return LoginFailed(
                    f"no token from {address}: {why}; its authority must be in ssl.truststore.* of"
                    " sasl.jaas.config, or among the system's"
                )
            if isinstance(one, OSError) and not isinstance(one, urllib3.exceptions.HTTPError):
                told = explain_failure(one, endpoint.tls, "its")
        found = found.__cause__ or found.__context__
    return TokenUnavailable(f"no token from {address}: {told or type(error).__name__}")
