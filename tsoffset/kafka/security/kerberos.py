"""GSSAPI with the tickets of a keytab or of the process.

The first step asks a Kerberos server, so it is made in a thread before the login begins.
"""

from collections.abc import Generator
from functools import partial
from itertools import count
from typing import Any

from tsoffset.flow.security import KerberosLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import LoginFailed

_numbers = count()
_NO_LAYER = 1


class Tickets:
    """The tickets of one login, kept in memory by the system's Kerberos."""

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login
        self._store = {"ccache": f"MEMORY:tsoffset-{next(_numbers)}"}

    async def begin(self, loop: Loop, host: str) -> Generator[bytes, bytes, None]:
        """A login at a broker, of which the first message is made. Raises LoginFailed."""
        return _exchange(*await loop.beside(object(), partial(self._begin, host)))

    def _begin(self, host: str) -> tuple[Any, bytes]:
        try:
            import gssapi
        except ImportError:
            raise LoginFailed("GSSAPI needs tsoffset[kerberos] and the system's Kerberos") from None
        login = self._login
        try:
            credentials = None
            if login.principal is not None:
                principal = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
                store = {}
                if login.keytab is not None:
                    store = {**self._store, "client_keytab": login.keytab}
                credentials = gssapi.Credentials(
                    name=principal, usage="initiate", store=store or None
                )
            service = gssapi.Name(f"{login.service_name}@{host}", gssapi.NameType.hostbased_service)
            handshake = gssapi.SecurityContext(name=service, creds=credentials, usage="initiate")
            return handshake, handshake.step(None)
        except gssapi.exceptions.GSSError as error:
            raise LoginFailed(f"Kerberos: {' '.join(str(error).split())}") from None


def _exchange(handshake: Any, token: bytes | None) -> Generator[bytes, bytes, None]:
    """The messages of RFC 4752, each sent in return for the broker's. Raises LoginFailed."""
    while not handshake.complete:
        token = handshake.step((yield token or b""))
    answer = yield token or b""
    # The broker's layers and its largest message; Kafka knows no layer but none.
    offered = handshake.unwrap(answer).message
    chosen = bytes((offered[0] & _NO_LAYER,)) + offered[1:]
    if (yield handshake.wrap(chosen, False).message):
        raise LoginFailed("the broker goes on after the end of the login")
