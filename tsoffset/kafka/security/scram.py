"""SCRAM (RFC 5802, without channel binding), as strict as Kafka's own client or stricter."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator

from tsoffset.kafka.security.failures import LoginFailed

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Of Kafka's ScramMechanism. With fewer, a server could guess the password from the client's proof;
# with more, it decides how long this process computes.
_FEWEST_ITERATIONS, _MOST_ITERATIONS = 4_096, 16_384


def as_saslname(username: str) -> str:
    """The name with the two characters escaped that separate parts of the message."""
    return username.replace("=", "=3D").replace(",", "=2C")


def scram(mechanism: str, username: str, password: str) -> Generator[bytes, bytes, None]:
    """The login's messages, each in reply to the broker's.

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
