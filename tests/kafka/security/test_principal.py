"""The principal by which brokers know this client."""

from tsoffset.flow.security import (
    CertificateStore,
    PasswordLogin,
    Security,
    Tls,
    TokenFile,
    TokenLogin,
)
from tsoffset.kafka.security.principal import principal
from tsoffset.lab.embedded.certificates import Authority


def test_principals_are_those_of_the_login(tmp_path):
    """A user's name, a certificate's subject; tokens' are the brokers' to know."""
    pem = Authority().issue("alice").write_pem(tmp_path / "alice.pem")
    own = CertificateStore(is_pem=True, location=str(pem))
    assert principal(Security(login=PasswordLogin("PLAIN", "alice", "?"))) == "User:alice"
    assert principal(Security(tls=Tls(own=own))) == "User:CN=alice"
    assert principal(Security(tls=Tls())) == principal(Security()) == "User:ANONYMOUS"
    assert principal(Security(login=TokenLogin(TokenFile("/token")))) is None
