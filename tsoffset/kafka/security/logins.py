"""SASL: the messages of a login, and what has to be fetched before it begins."""

from collections.abc import Generator

from kafka.errors import SaslAuthenticationFailedError

from tsoffset.flow.security import KerberosLogin, Login, PasswordLogin, TokenLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.kerberos import Tickets
from tsoffset.kafka.security.scram import SCRAM, scram
from tsoffset.kafka.security.tokens import Tokens

Exchange = Generator[bytes, bytes, None]
"""What a login sends, in turn with what the broker answers; at its end the login is done."""


class Logins:
    def __init__(self, login: Login) -> None:
        self._login = login
        self._tokens = Tokens(login) if isinstance(login, TokenLogin) else None
        self._tickets = Tickets(login) if isinstance(login, KerberosLogin) else None

    @property
    def mechanism(self) -> str:
        return self._login.mechanism

    def is_asking(self, loop: Loop) -> bool:
        """Whether a token was requested and has not arrived."""
        return self._tokens is not None and loop.is_under_way(self._tokens)

    async def begin(self, loop: Loop, host: str) -> Exchange:
        """A login at that host that will not block. Raises LoginFailed or TokenUnavailable."""
        if self._tickets is not None:
            return await self._tickets.begin(loop, host)
        if self._tokens is not None:
            await self._tokens.fresh(loop)
            return _oauthbearer(self._tokens)
        assert isinstance(self._login, PasswordLogin)
        name, password = self._login.username, self._login.password
        if self.mechanism in SCRAM:
            return scram(self.mechanism, name, password)
        return _plain(name, password)


def _plain(username: str, password: str) -> Exchange:
    """RFC 4616."""
    if (yield "\0".join((username, username, password)).encode()):
        raise SaslAuthenticationFailedError("Failed to authenticate via SASL PLAIN")


def _oauthbearer(tokens: Tokens) -> Exchange:
    """RFC 7628. A broker refuses a token with an error that has to be acknowledged first."""
    extensions = "".join(f"\1{key}={value}" for key, value in tokens.extensions().items())
    if (yield f"n,,\1auth=Bearer {tokens.token()}{extensions}\1\1".encode()):
        yield b"\1"
        raise SaslAuthenticationFailedError("Failed to authenticate via SASL OAUTHBEARER")
