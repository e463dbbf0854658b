"""SCRAM as RFC 5802 has it, where the library is less strict."""

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.scram import SaslMechanismScram

from tsoffset.kafka.security.failures import LoginFailed

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Of Kafka's ScramMechanism. Fewer would let whoever answers guess the password by our proof of it.
_FEWEST_ITERATIONS = 4096


def as_saslname(username: str) -> str:
    """The name with the two signs escaped that part the message it stands in."""
    return username.replace("=", "=3D").replace(",", "=2C")


class ScramMechanism(SaslMechanismScram):  # type: ignore[misc]  # no types in the library
    """The library's, for brokers that make guessing expensive."""

    def receive(self, auth_bytes: bytes) -> bool:
        """Take the broker's message. Raises LoginFailed."""
        if self._state == 0:
            told = [part[2:] for part in auth_bytes.split(b",") if part.startswith(b"i=")]
            if not told or not told[0].isdigit() or int(told[0]) < _FEWEST_ITERATIONS:
                raise LoginFailed(f"the broker asks for fewer than {_FEWEST_ITERATIONS} iterations")
        return bool(super().receive(auth_bytes))


for _name in SCRAM:
    register_sasl_mechanism(_name, ScramMechanism, overwrite=True)
del _name
