"""GSSAPI with the tickets of a keytab, without waiting for a Kerberos server in the loop.

The library's mechanism takes the process's own tickets alone, and asks for those of a broker while
all connections wait. Here the first step, which is the one that asks, is made beforehand.
"""

from functools import partial
from itertools import count
from typing import Any

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from tsoffset.flow.security import KerberosLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import LoginFailed

_numbers = count()


class Tickets:
    """The tickets of one login, kept in memory by the system's Kerberos."""

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login
        self._store = {"ccache": f"MEMORY:tsoffset-{next(_numbers)}"}
        self._begun: dict[str, tuple[Any, bytes]] = {}

    async def fresh(self, loop: Loop, host: str) -> None:
        """Have a handshake with a broker begun. Raises LoginFailed."""
        self._begun[host] = await loop.beside(object(), partial(self._begin, host))

    def handshake(self, host: str) -> tuple[Any, bytes]:
        """A handshake and its first message: one that was begun, or where a connection proves
        again who we are a new one, for which the tickets are mostly there."""
        return self._begun.pop(host, None) or self._begin(host)

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


class KerberosMechanism(SaslMechanismGSSAPI):  # type: ignore[misc]  # no types in the library
    """The library's mechanism from its second step on."""

    def __init__(self, **config: Any) -> None:
        tickets, host = config["sasl_kerberos_name"], config["host"]
        self._is_done = self._is_authenticated = False
        self.auth_id = ""
        self._client_ctx, self._next_token = tickets.handshake(host)


register_sasl_mechanism("GSSAPI", KerberosMechanism, overwrite=True)
