"""SASL: what the library's connections are given, and what must be ready before they ask for it."""

from typing import Any, Protocol

from tsoffset.flow.security import KerberosLogin, Login, PasswordLogin, Security
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.tokens import Tokens


class Ready(Protocol):
    """What a login fetches before a connection may begin."""

    async def fresh(self, loop: Loop) -> None:
        """Have it ready. Raises LoginFailed."""


class Logins:
    """How connections of one cluster log in.

    `library` are kafka-python's options. What blocks happens in `ready`, for each connection
    before it is made.
    """

    def __init__(self, security: Security) -> None:
        self.library: dict[str, Any] = {"security_protocol": security.protocol}
        self._tokens: Tokens | None = None
        if security.login is not None:
            self.library |= self._options(security.login)

    def _options(self, login: Login) -> dict[str, Any]:
        match login:
            case PasswordLogin(mechanism, username, password):
                return {
                    "sasl_mechanism": mechanism,
                    "sasl_plain_username": username,
                    "sasl_plain_password": password,
                }
            case KerberosLogin():
                raise NotImplementedError
        self._tokens = Tokens(login)
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": self._tokens}

    async def ready(self, loop: Loop, host: str) -> None:
        """Have what a connection to that host will need. Raises LoginFailed."""
        if self._tokens is not None:
            await self._tokens.fresh(loop)
