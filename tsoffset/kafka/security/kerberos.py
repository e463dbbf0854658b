"""GSSAPI with the tickets of a keytab or of the process.

The first step asks a Kerberos server, so it is made in a thread before the login begins.
"""

from collections.abc import Generator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tsoffset.flow.security import KerberosLogin
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.security.failures import KdcUnreachable, KerberosFailed, LoginFailed

_numbers = count()
_NO_LAYER = 1
# The codes of MIT's krb5.h, unsigned as in GSSAPI.
_CACHE_NOT_FOUND = -1765328189 & 0xFFFFFFFF
_KDC_UNREACHABLE = {-1765328228 & 0xFFFFFFFF, -1765328164 & 0xFFFFFFFF}


class Tickets:
    """The tickets of one login, kept in memory by the system's Kerberos."""

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login
        self.asked = object()
        self._store = {"ccache": f"MEMORY:tsoffset-{next(_numbers)}"}

    async def begin(self, loop: Loop, host: str) -> Generator[bytes, bytes, None]:
        """A login at a broker, with its first message made. Raises LoginFailed or
        KdcUnreachable."""
        # Each login has its own key: a ticket is for one connection.
        self.asked = object()
        return _exchange(*await loop.run_in_thread(self.asked, partial(self._begin, host)))

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
            raise self._failure(error) from None

    def _failure(self, error: Any) -> LoginFailed | KdcUnreachable:
        """Kerberos' own text, unless it hides what is wrong with a keytab."""
        code = error.min_code & 0xFFFFFFFF
        texts = error.get_all_statuses(error.min_code, False) if code else [str(error)]
        said = " ".join(" ".join(texts).split())
        if code in _KDC_UNREACHABLE:
            return KdcUnreachable(said)
        login = self._login
        if login.keytab is not None and code == _CACHE_NOT_FOUND:
            # The cache in memory is filled from the keytab, so the keytab lacks something.
            try:
                with Path(login.keytab).open("rb"):
                    said = f"the keytab {login.keytab} holds no key of {login.principal}"
            except OSError as cause:
                said = f"the keytab {login.keytab} cannot be read: {cause.strerror}"
        return KerberosFailed(said)


def _exchange(handshake: Any, token: bytes | None) -> Generator[bytes, bytes, None]:
    """The messages of RFC 4752, each in reply to the broker's. Raises LoginFailed."""
    while not handshake.complete:
        token = handshake.step((yield token or b""))
    answer = yield token or b""
    # The broker's security layers, and its largest message, which counts only with a layer.
    offered = handshake.unwrap(answer).message
    if len(offered) != 4 or not offered[0] & _NO_LAYER:
        raise LoginFailed("the broker does not offer GSSAPI without a security layer")
    # No user is named: the broker uses the ticket's.
    if (yield handshake.wrap(bytes((_NO_LAYER, 0, 0, 0)), False).message):
        raise LoginFailed("the broker sent more after the end of the login")
