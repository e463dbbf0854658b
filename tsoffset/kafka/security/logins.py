"""SASL: the messages of a login, and what has to be fetched before it begins."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator

from kafka.errors import SaslAuthenticationFailedError

from tsoffset.flow.security import KerberosLogin, Login, PasswordLogin, TokenLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import LoginFailed, TokenRefused
from tsoffset.kafka.security.kerberos import Tickets
from tsoffset.kafka.security.tokens import Tokens

Exchange = Generator[bytes, bytes, None]
"""What a login sends, in turn with what the broker answers; at its end the login is done."""

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# The limits of Kafka's ScramMechanism. With fewer iterations, a server could guess the password
# from the client's proof; with more, it could keep this process computing as long as it likes.
_FEWEST_ITERATIONS, _MOST_ITERATIONS = 4_096, 16_384


class Logins:
    def __init__(self, login: Login) -> None:
        self._login = login
        self._tokens = Tokens(login) if isinstance(login, TokenLogin) else None
        self._tickets = Tickets(login) if isinstance(login, KerberosLogin) else None

    @property
    def mechanism(self) -> str:
        return self._login.mechanism

    def waits_for(self, loop: Loop) -> str | None:
        """The server that was asked for a token or a ticket, and has not answered."""
        if self._tokens is not None and loop.is_under_way(self._tokens):
            return "the token endpoint"
        if self._tickets is not None and loop.is_under_way(self._tickets.asked):
            return "the Kerberos server"
        return None

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
        raise TokenRefused("Failed to authenticate via SASL OAUTHBEARER")


def as_saslname(username: str) -> str:
    """The name with the two characters escaped that separate parts of the message."""
    return username.replace("=", "=3D").replace(",", "=2C")


def scram(mechanism: str, username: str, password: str) -> Exchange:
    """RFC 5802 without channel binding, as strict as Kafka's own client or stricter.

    Raises LoginFailed if the broker's message is wrong, ValueError if it is no message.
    """
    name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    nonce = secrets.token_hex(16).encode()
    first = b"n=" + as_saslname(username).encode() + b",r=" + nonce
    answer = yield b"n,," + first
    told = _attributes(answer)
    if not told.get(b"r", b"").startswith(nonce):
        raise LoginFailed("the broker answered another login")
    iterations = _iterations(told.get(b"i", b""))
    salt = b64decode(told.get(b"s", b""), validate=True)
    final = b"c=biws,r=" + told[b"r"]
    signed = b",".join((first, answer, final))
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    key = hmac.digest(salted, b"Client Key", name)
    proof = hmac.digest(hashlib.new(name, key).digest(), signed, name)
    hidden = bytes(one ^ other for one, other in zip(key, proof, strict=True))
    told = _attributes((yield final + b",p=" + b64encode(hidden)))
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(b64decode(told.get(b"v", b"")), expected):
        raise LoginFailed("the broker could not prove that it knows the password")


def _attributes(message: bytes) -> dict[bytes, bytes]:
    attributes = [part.partition(b"=")[::2] for part in message.split(b",")]
    told = dict(attributes)
    if len(told) < len(attributes):
        raise LoginFailed("the broker sent an attribute twice")
    return told


def _iterations(text: bytes) -> int:
    known = text.isdigit() and len(text) <= len(str(_MOST_ITERATIONS))
    if not known or not _FEWEST_ITERATIONS <= int(text) <= _MOST_ITERATIONS:
        allowed = f"{_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}"
        raise LoginFailed(f"the broker does not ask for {allowed} iterations")
    return int(text)
