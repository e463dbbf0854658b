"""Bearer tokens: which requests may read, and which may pause, resume, sync and translate."""

import hmac
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tsoffset.flow.settings import ServerSettings
from tsoffset.server.problems import Refused

_BEARER = HTTPBearer(auto_error=False, description="`listeners.token` or `listeners.read.token`.")
Shown = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


def require_reader(settings: ServerSettings) -> Callable[..., None]:
    """A dependency that refuses requests that may not read."""
    if settings.read_token is None:

        def allow_all() -> None:
            """Without a token in the configuration, every client may read."""

        return allow_all

    def reader(shown: Shown) -> None:
        if not _matches(shown, settings.read_token) and not _matches(shown, settings.token):
            raise _unauthorized(shown, "listeners.read.token")

    return reader


def require_writer(settings: ServerSettings) -> Callable[..., None]:
    """A dependency that refuses requests that may not change anything."""

    def changer(shown: Shown) -> None:
        if settings.token is None:
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "pause, resume, sync and translations are disabled because no token is configured",
                "set listeners.token in the configuration file, and restart",
            )
        if _matches(shown, settings.token):
            return
        if _matches(shown, settings.read_token):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "this token only allows reading",
                "send the token of listeners.token",
            )
        raise _unauthorized(shown, "listeners.token")

    return changer


def _matches(shown: HTTPAuthorizationCredentials | None, token: str | None) -> bool:
    """True for the right token; compared in constant time."""
    given = "" if shown is None else shown.credentials
    return hmac.compare_digest(given.encode(), (token or "").encode()) and token is not None


def _unauthorized(shown: HTTPAuthorizationCredentials | None, key: str) -> Refused:
    return Refused(
        HTTPStatus.UNAUTHORIZED,
        "a bearer token is needed" if shown is None else "this bearer token is wrong",
        f"send the header `Authorization: Bearer TOKEN` with the token of {key}",
        www_authenticate='Bearer realm="tsoffset"',
    )
