"""SASL: what the library's connections are given, and what must be ready before they ask for it."""

from typing import Any

from tsoffset.flow.security import KerberosLogin, Login, PasswordLogin, Security
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.kerberos import Tickets
from tsoffset.kafka.security.scram import SCRAM, as_saslname
from tsoffset.kafka.security.tokens import Tokens


class Logins:
    """How connections of one cluster log in.

    `library` are kafka-python's options. What blocks is done by `ready`, before each login.
    """

    def __init__(self, security: Security) -> None:
        self.library: dict[str, Any] = {"security_protocol": security.protocol}
        self._tokens: Tokens | None = None
        self._tickets: Tickets | None = None
        if security.login is not None:
            self.library |= self._options(security.login)

    def _options(self, login: Login) -> dict[str, Any]:
        match login:
            case PasswordLogin(mechanism, username, password):
                if mechanism in SCRAM:
                    username = as_saslname(username)
                return {
                    "sasl_mechanism": mechanism,
                    "sasl_plain_username": username,
                    "sasl_plain_password": password,
                }
            case KerberosLogin():
                self._tickets = Tickets(login)
                return {"sasl_mechanism": "GSSAPI", "sasl_kerberos_name": self._tickets}
        self._tokens = Tokens(login)
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": self._tokens}

    def is_asking(self, loop: Loop) -> bool:
        """Whether a token is asked for, and has not come."""
        return self._tokens is not None and loop.is_under_way(self._tokens)

    async def ready(self, loop: Loop, host: str) -> None:
        """Have what a login at that host will need. Raises LoginFailed or TokenUnavailable."""
        if self._tokens is not None:
            await self._tokens.fresh(loop)
        if self._tickets is not None:
            await self._tickets.fresh(loop, host)
