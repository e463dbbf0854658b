"""What a broker may ask of a login by SCRAM."""

from collections.abc import Generator

import pytest

from tsoffset.kafka.security.failures import LoginFailed
from tsoffset.kafka.security.logins import SCRAM, as_saslname, scram

Login = Generator[bytes, bytes, None]


def answered(attributes: str, mechanism: str = SCRAM[0]) -> tuple[Login, bytes]:
    """A login after the broker's first message, in which NONCE is the client's, and what it sends
    in return."""
    login = scram(mechanism, "u", "p")
    nonce = next(login).rpartition(b"r=")[2].decode()
    return login, login.send(attributes.replace("NONCE", nonce).encode())


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("iterations", [4_096, 16_384])
def test_iterations_as_kafka_allows_them_are_computed(mechanism, iterations):
    _, proof = answered(f"r=NONCEx,s=c2FsdA==,i={iterations}", mechanism)
    assert b",p=" in proof


@pytest.mark.parametrize(
    "attributes",
    [
        "r=NONCEx,s=c2FsdA==,i=4095",
        "r=NONCEx,s=c2FsdA==,i=16385",
        "r=NONCEx,s=c2FsdA==,i=1000000",
        "r=NONCEx,s=c2FsdA==,i=" + "9" * 10_000,
        "r=NONCEx,s=c2FsdA==,i=",
        "r=NONCEx,s=c2FsdA==",
        "r=NONCEx,s=c2FsdA==,i=4096,i=1",
        "r=NONCEx,s=c2FsdA==,s=eA==,i=4096",
        "r=other,s=c2FsdA==,i=4096",
    ],
)
def test_whatever_makes_guessing_cheap_or_the_login_dear_is_refused(attributes):
    """Few iterations let a broker guess the password, many hold the process; one asked for twice
    could be checked as the one and used as the other."""
    with pytest.raises(LoginFailed):
        answered(attributes)


@pytest.mark.parametrize("signature", [b"v=AAAA,v=BBBB", b"v=AAAA", b"e=other-error"])
def test_a_broker_that_does_not_know_the_password_is_refused(signature):
    login, _ = answered("r=NONCEx,s=c2FsdA==,i=4096")
    with pytest.raises(LoginFailed):
        login.send(signature)


def test_a_name_is_escaped_for_scram():
    """RFC 5802, saslname."""
    assert as_saslname("a,b=c") == "a=2Cb=3Dc"
