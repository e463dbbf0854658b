"""Certificates of a private authority, in the stores that Kafka's clients and brokers read."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tsoffset.lab.embedded.ports import HOST
from tsoffset.lab.embedded.server import write_private

LOCAL_HOSTS = (HOST, "localhost")
VALID_FOR = timedelta(days=30)
# Clocks of one machine do not differ, but notBefore is in whole seconds.
_EARLIER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A private key, its certificate and that of the authority that signed it."""

    key: ec.EllipticCurvePrivateKey
    signed: x509.Certificate
    authority: x509.Certificate

    def key_pem(self, password: str | None = None) -> str:
        """The key as PEM (PKCS #8), encrypted (PBES2) if there is a password. Kafka on Java 17
        cannot read an encrypted PEM key: give it a plain one, or another kind of store."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _encryption(password)
        ).decode()

    def chain_pem(self) -> str:
        return _pem(self.signed) + _pem(self.authority)

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Write key and chain into one file, which only its owner can read; return its path."""
        return write_private(path, self.key_pem(password) + self.chain_pem())

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write key and chain as a PKCS #12 key store; return its path."""
        store = pkcs12.serialize_key_and_certificates(
            b"key", self.key, self.signed, [self.authority], _encryption(password)
        )
        return write_private(path, store)


class Authority:
    """A certificate authority; each has its own key, so none trusts another's certificates."""

    def __init__(self, name: str = "tsoffset embedded authority") -> None:
        """Create the authority, valid as long as its certificates."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _x509_name(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        self.certificate = (
            _builder(self._name, self._name, self._key.public_key(), VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def issue(
        self, name: str, hosts: Sequence[str] = (), *, valid_for: timedelta = VALID_FOR
    ) -> Certificate:
        """A certificate for `CN=name`: a server's if it is for `hosts` (names or addresses), else a
        client's. It is expired if `valid_for` is negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        use = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        own, issuer = self._key.public_key(), x509.AuthorityKeyIdentifier
        builder = (
            _builder(_x509_name(name), self._name, key.public_key(), valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(issuer.from_issuer_public_key(own), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Certificate(key, builder.sign(self._key, hashes.SHA256()), self.certificate)

    def pem(self) -> str:
        return _pem(self.certificate)

    def write_pem(self, path: Path) -> Path:
        return write_private(path, self.pem())

    def write_pkcs12(self, path: Path, password: str) -> Path:
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        return write_private(
            path, pkcs12.serialize_java_truststore([trusted], _encryption(password))
        )


def _x509_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid_for: timedelta
) -> x509.CertificateBuilder:
    until = datetime.now(UTC) + valid_for
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(until, datetime.now(UTC)) - _EARLIER)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encryption(password: str | None) -> serialization.KeySerializationEncryption:
    if password is None:
        return serialization.NoEncryption()
    return serialization.BestAvailableEncryption(password.encode())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
