"""Stores of keys, without a broker."""

import pytest
from cryptography.x509 import load_pem_x509_certificates

from tests.java_stores import write_jks
from tsoffset.flow.security import CertificateStore
from tsoffset.kafka.security.failures import StoreUnusable
from tsoffset.kafka.security.stores import certificates, client_identity
from tsoffset.lab.embedded.certificates import Authority

PASSWORD = "changeit"


def subjects(store: CertificateStore) -> set[str]:
    found = load_pem_x509_certificates(certificates(store).encode())
    return {one.subject.rfc4514_string() for one in found}


def test_of_a_key_store_only_its_own_certificate_is_trusted(tmp_path):
    """As by Java: not the authority, which may have issued many others."""
    authority = Authority()
    path = authority.issue("alice").write_pkcs12(tmp_path / "own.p12", PASSWORD)
    assert subjects(CertificateStore(False, str(path), PASSWORD)) == {"CN=alice"}
    path = authority.write_pkcs12(tmp_path / "trust.p12", PASSWORD)
    assert len(subjects(CertificateStore(False, str(path), PASSWORD))) == 1


def test_pem_text_may_be_on_one_line():
    """As a properties file makes it of lines that are continued."""
    alice = Authority().issue("alice")
    in_one = CertificateStore(
        True,
        certificates=alice.chain_pem().replace("\n", " "),
        key=alice.key_pem(PASSWORD).replace("\n", " "),
        key_password=PASSWORD,
    )
    assert subjects(in_one) == subjects(CertificateStore(True, certificates=alice.chain_pem()))
    assert "ENCRYPTED PRIVATE KEY" in client_identity(in_one).key


@pytest.mark.parametrize("body", ["ü", "AAAA", "", "-"])
def test_damaged_pem_is_named(body):
    text = f"-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----"
    with pytest.raises(StoreUnusable, match="the PEM text: "):
        certificates(CertificateStore(True, certificates=text))


@pytest.mark.integration
def test_a_trust_store_of_java_needs_no_password(tmp_path):
    """Java reads it without one, unverified."""
    path = Authority().write_pkcs12(tmp_path / "trust.p12", PASSWORD)
    jks = write_jks(path, tmp_path / "trust.jks", PASSWORD)
    assert len(subjects(CertificateStore(False, str(jks)))) == 1


def test_without_java_a_store_of_java_is_named(tmp_path, monkeypatch):
    """It is a store that cannot be used, and no broker's fault."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "x.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(StoreUnusable, match="keytool"):
        certificates(CertificateStore(False, str(tmp_path / "x.jks"), PASSWORD))
