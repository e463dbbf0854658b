"""SCRAM as RFC 5802 has it, where the library is less strict."""

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.scram import SaslMechanismScram

from tsoffset.kafka.security.failures import LoginFailed

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Of Kafka's ScramMechanism. Fewer would let whoever answers guess the password by our proof of it;
# with more, whoever answers says how long this process computes.
_FEWEST_ITERATIONS, _MOST_ITERATIONS = 4_096, 16_384


def as_saslname(username: str) -> str:
    """The name with the two signs escaped that part the message it stands in."""
    return username.replace("=", "=3D").replace(",", "=2C")


class ScramMechanism(SaslMechanismScram):  # type: ignore[misc]  # no types in the library
    """The library's, for brokers that make guessing expensive, and logging in cheap."""

    def receive(self, auth_bytes: bytes) -> bool:
        """Take the broker's message. Raises LoginFailed."""
        attributes = [part.partition(b"=")[::2] for part in auth_bytes.split(b",")]
        told = dict(attributes)
        if len(told) < len(attributes):
            raise LoginFailed("the broker says something twice")
        if self._state == 0:
            iterations = told.get(b"i", b"")
            known = iterations.isdigit() and len(iterations) <= len(str(_MOST_ITERATIONS))
            if not known or not _FEWEST_ITERATIONS <= int(iterations) <= _MOST_ITERATIONS:
                allowed = f"{_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}"
                raise LoginFailed(f"the broker does not ask for {allowed} iterations")
        return bool(super().receive(auth_bytes))


for _name in SCRAM:
    register_sasl_mechanism(_name, ScramMechanism, overwrite=True)
del _name
