"""What a broker may ask of a login by SCRAM."""

import pytest

from tsoffset.kafka.security.failures import LoginFailed
from tsoffset.kafka.security.scram import SCRAM, ScramMechanism


def answered(attributes: str, mechanism: str = SCRAM[0]) -> ScramMechanism:
    """A login after the broker's first message, in which NONCE is the client's."""
    login = ScramMechanism(
        sasl_mechanism=mechanism, sasl_plain_username="u", sasl_plain_password="p"
    )
    nonce = login.auth_bytes().rpartition(b"r=")[2].decode()
    login.receive(attributes.replace("NONCE", nonce).encode())
    return login


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("iterations", [4_096, 16_384])
def test_iterations_as_kafka_allows_them_are_computed(mechanism: str, iterations: int) -> None:
    assert answered(f"r=NONCEx,s=c2FsdA==,i={iterations}", mechanism).auth_bytes()


@pytest.mark.parametrize(
    "attributes",
    [
        "r=NONCEx,s=c2FsdA==,i=4095",
        "r=NONCEx,s=c2FsdA==,i=16385",
        "r=NONCEx,s=c2FsdA==,i=1000000",
        "r=NONCEx,s=c2FsdA==,i=" + "9" * 10_000,
        "r=NONCEx,s=c2FsdA==,i=",
        "r=NONCEx,s=c2FsdA==",
        # The library takes the last one.
        "r=NONCEx,s=c2FsdA==,i=4096,i=1",
        "r=NONCEx,s=c2FsdA==,s=eA==,i=4096",
    ],
)
def test_whatever_makes_guessing_cheap_or_the_login_dear_is_refused(attributes: str) -> None:
    """Few iterations let a broker guess the password, many hold the process; one asked for twice
    could be checked as the one and used as the other."""
    with pytest.raises(LoginFailed):
        answered(attributes)


def test_a_signature_is_said_once() -> None:
    login = answered("r=NONCEx,s=c2FsdA==,i=4096")
    with pytest.raises(LoginFailed):
        login.receive(b"v=AAAA,v=BBBB")
