"""What a broker may offer at the end of a login by GSSAPI (RFC 4752)."""

from types import SimpleNamespace

import pytest

from tsoffset.kafka.security.failures import LoginFailed
from tsoffset.kafka.security.kerberos import _exchange


class Handshake:
    """A context of GSSAPI that is complete and seals nothing."""

    complete = True

    def wrap(self, message: bytes, _encrypt: bool) -> SimpleNamespace:
        return SimpleNamespace(message=message)

    def unwrap(self, message: bytes) -> SimpleNamespace:
        return SimpleNamespace(message=message)


def test_no_layer_is_chosen_of_those_offered():
    """Without a layer the size of messages is 0, whatever the broker's is, and no user is named."""
    login = _exchange(Handshake(), None)
    assert next(login) == b""
    assert login.send(b"\x07\x00\x40\x00") == b"\x01\x00\x00\x00"
    with pytest.raises(StopIteration):
        login.send(b"")


@pytest.mark.parametrize("offered", [b"", b"\x01", b"\x06\x00\x40\x00", b"\x01\x00\x00\x00root"])
def test_an_offer_without_no_layer_or_of_another_form_is_refused(offered):
    login = _exchange(Handshake(), b"token")
    assert next(login) == b"token"
    with pytest.raises(LoginFailed, match="without a security layer"):
        login.send(offered)
