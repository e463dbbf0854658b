"""The flows of other instances (`status.remote.urls`), which the page shows, too.

This process requests them, so browsers need no access to the other instances. It does so in threads
of its own, at most every few seconds, and only while clients ask for them.
"""

import ssl
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import truststore
import urllib3
from pydantic import ValidationError

from tsoffset.flow.security import keeps_secrets
from tsoffset.flow.settings import ServerSettings
from tsoffset.server.answers import FlowsAnswer, RemoteAnswer

FRESH_SECONDS = 5.0
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 10.0
LARGEST_ANSWER = 8_000_000
_PIECE = 65_536
_PATH = "/api/v1/flows"
_UNREACHABLE = "it cannot be reached; check that it runs, and the network to it"


class NoAnswer(Exception):
    """Another instance did not answer; the text says why, and what to do."""


class Remotes:
    """The other instances, in the order of the configuration."""

    def __init__(
        self,
        settings: ServerSettings,
        now: Callable[[], float] = time.time,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self._token, self._now, self._fresh_seconds = settings.read_token, now, fresh_seconds
        self._lock = threading.Lock()
        self._known = [
            RemoteAnswer(url=_public_address(url), answer=None, answered_at=None, error=None)
            for url in settings.remote_urls
        ]
        # When each may be requested again, by the monotonic clock; infinity while a request runs.
        self._due = [0.0] * len(self._known)

    def known_answers(self) -> tuple[RemoteAnswer, ...]:
        """What is known now. Returns at once, and requests outdated ones in the background."""
        with self._lock:
            for index, due in enumerate(self._due):
                if due <= time.monotonic():
                    self._due[index] = float("inf")
                    threading.Thread(target=self._ask, args=(index,), daemon=True).start()
            return tuple(self._known)

    def _ask(self, index: int) -> None:
        before = self._known[index]
        try:
            found = flows_of(before.url, self._token)
            now = self._now()
            after = RemoteAnswer(url=before.url, answer=found, answered_at=now, error=None)
        except NoAnswer as error:
            after = RemoteAnswer(**{**dict(before), "error": str(error)})
        finally:
            with self._lock:
                self._due[index] = time.monotonic() + self._fresh_seconds
        with self._lock:
            self._known[index] = after


def _public_address(url: str) -> str:
    """The address without user, password, query and fragment, which may be secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def flows_of(url: str, token: str | None) -> FlowsAnswer:
    """The flows of the instance at this address. Raises NoAnswer."""
    headers = {"Accept": "application/json"}
    safe = keeps_secrets(url)
    if token is not None and safe:
        headers["Authorization"] = f"Bearer {token}"
    timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
    try:
        with urllib3.PoolManager(
            ssl_context=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            timeout=timeout,
            retries=False,
        ) as pool:
            answer = pool.request(
                "GET", url + _PATH, headers=headers, redirect=False, preload_content=False
            )
            body = _body(answer)
    except urllib3.exceptions.NewConnectionError:
        # Before TimeoutError, which is a base class of it.
        raise NoAnswer(_UNREACHABLE) from None
    except urllib3.exceptions.TimeoutError:
        raise NoAnswer("no answer in time; check that it runs, and the network to it") from None
    except urllib3.exceptions.SSLError:
        raise NoAnswer(
            "its certificate is not trusted, or it does not use TLS; add its certificate authority"
            " to the file of SSL_CERT_FILE, or correct the address in status.remote.urls"
        ) from None
    except (urllib3.exceptions.HTTPError, OSError):
        raise NoAnswer(_UNREACHABLE) from None
    return _parse(answer.status, body, safe=safe)


def _body(answer: Any) -> bytes:
    body, end = b"", time.monotonic() + ANSWER_SECONDS
    while some := answer.read1(_PIECE):
        body += some
        if len(body) > LARGEST_ANSWER:
            raise NoAnswer("its answer is too large; check what listens at this address")
        if time.monotonic() > end:
            raise NoAnswer("its answer takes too long; check that it runs, and the network to it")
    return body


def _parse(status: int, body: bytes, *, safe: bool) -> FlowsAnswer:
    if status in (401, 403) and safe:
        raise NoAnswer("it rejects this token; give all instances the same listeners.read.token")
    if status in (401, 403):
        raise NoAnswer(
            "it requires a token, which tsoffset does not send over http; use https in"
            " status.remote.urls"
        )
    if status != 200:
        raise NoAnswer(
            f"it answers with status {status}; check what listens at this address, and its log"
        )
    try:
        return FlowsAnswer.model_validate_json(body)
    except ValidationError:
        raise NoAnswer(
            "its answer is not from a compatible version of tsoffset; check what listens at this"
            " address"
        ) from None
