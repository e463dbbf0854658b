"""Trust stores and key stores: PEM text, PKCS12, and Java's own formats."""

import os
import re
import secrets
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
from cryptography.x509 import Certificate, load_pem_x509_certificate

from tsoffset.errors import EmbeddedError
from tsoffset.flow.security import CertificateStore
from tsoffset.java import keytool
from tsoffset.kafka.security.failures import StoreUnusable

# The first bytes of Java's own formats, JKS and JCEKS.
_JAVAS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----")
_KEY = re.compile(
    r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----((?:(?!-----).)+)-----END \1-----", re.DOTALL
)
_ENTRY = re.compile(
    r"^Alias name: (?P<alias>.+)\n(?:(?!Alias name: |Entry type: ).+\n)*+"
    "Entry type: PrivateKeyEntry",
    re.MULTILINE,
)
_KEYTOOL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The client's certificate with its chain, and its key, as PEM text. The key is encrypted with
    `password`, a random one that is used nowhere else."""

    chain: str
    key: str = field(repr=False)
    password: str = field(repr=False)


def certificates(store: CertificateStore) -> str:
    """The certificates of a trust store, as PEM text. Raises StoreUnusable."""
    if store.is_pem:
        return _in_pem(store, store.certificates or _text(store))
    contents = _pkcs12(store, store.password)
    # Java also trusts the certificate of a key's entry, but not the rest of its chain.
    trusted = [one.certificate for one in contents.additional_certs]
    if contents.cert is not None:
        trusted = [contents.cert.certificate, *_not_above(contents.cert.certificate, trusted)]
    if not trusted:
        raise _unusable(store, "it holds no certificate")
    return _as_pem(trusted)


def _not_above(certificate: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """The others without those of the chain from the certificate to its authority."""
    left = list(others)
    issuer: Certificate | None = certificate
    while issuer is not None:
        name = issuer.issuer
        issuer = next((one for one in left if one.subject == name), None)
        if issuer is not None:
            left.remove(issuer)
    return left


def client_identity(store: CertificateStore) -> ClientIdentity:
    """The key of a key store with its certificates. Raises StoreUnusable."""
    if store.is_pem:
        text = store.key or _text(store)
        pem = _in_pem(store, store.certificates or text)
        found = _KEY.search(text)
        if not found:
            raise _unusable(store, "it holds no private key")
        try:
            given = store.key_password.encode() if store.key_password else None
            key = load_pem_private_key(_lines(*found.groups()), given)
        except TypeError:
            asked = "needs" if store.key_password is None else "has no"
            raise _unusable(store, f"its key {asked} ssl.key.password") from None
        except (ValueError, UnsupportedAlgorithm):
            what = "its key has an unknown format, or ssl.key.password is wrong"
            raise _unusable(store, what) from None
    else:
        contents = _pkcs12(store, store.key_password or store.password)
        if contents.key is None or contents.cert is None:
            raise _unusable(store, "it holds no private key with a certificate")
        key = contents.key
        pem = _as_pem(one.certificate for one in (contents.cert, *contents.additional_certs))
    password = secrets.token_urlsafe(32)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
    )
    return ClientIdentity(pem, encrypted.decode(), password)


def _in_pem(store: CertificateStore, text: str) -> str:
    """The certificates of PEM text, whose lines may have been joined, as in a properties file."""
    try:
        found = [
            load_pem_x509_certificate(_lines("CERTIFICATE", body))
            for body in _CERTIFICATE.findall(text)
        ]
    except ValueError:
        raise _unusable(store, "one of its certificates is damaged") from None
    if not found:
        raise _unusable(store, "it holds no certificate in PEM form")
    return _as_pem(found)


def _lines(kind: str, body: str) -> bytes:
    """A part of PEM text in its normal form; one with headers, whose lines matter, unchanged."""
    if ":" not in body:
        body = "\n" + "\n".join(textwrap.wrap("".join(body.split()), 64)) + "\n"
    return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n".encode()


def _as_pem(certificates: Iterable[Certificate]) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _pkcs12(store: CertificateStore, password: str | None) -> PKCS12KeyAndCertificates:
    content = _content(store)
    if b"-----BEGIN " in content:
        what = "it is PEM, but ssl.keystore.type or ssl.truststore.type does not say so"
        raise _unusable(store, what)
    if content.startswith(_JAVAS):
        content, password = _from_java(store, password)
    try:
        return pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        what = "it is neither PKCS12 nor JKS, or its password is wrong"
        raise _unusable(store, what) from None


def _from_java(store: CertificateStore, key_password: str | None) -> tuple[bytes, str]:
    """A store in Java's own format as PKCS12, and its new password. Java's tool reads it, with
    passwords in its environment, which no list of processes shows."""
    new = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="tsoffset-") as folder:
        target = Path(folder) / "store.p12"
        words = ["-srckeystore", str(store.location)]
        # Java also reads a trust store without its password, and does not verify it then.
        words += ["-srcstorepass:env", "STORE"] if store.password else []
        words += ["-destkeystore", str(target), "-deststoretype", "PKCS12"]
        words += ["-deststorepass:env", "NEW", "-noprompt", "-importkeystore"]
        passwords = {"STORE": store.password or "", "NEW": new, "KEY": key_password or ""}
        if key_password != store.password:
            listed = ["-list", "-v", "-keystore", str(store.location), "-storepass:env", "STORE"]
            alias = _ENTRY.search(_keytool(store, listed, passwords))
            if alias is None:
                raise _unusable(store, "it holds no private key")
            words += ["-srcalias", alias["alias"], "-srckeypass:env", "KEY"]
            words += ["-destkeypass:env", "NEW"]
        _keytool(store, words, passwords)
        return target.read_bytes(), new


def _keytool(store: CertificateStore, words: list[str], passwords: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            [str(keytool()), "-J-Duser.language=en", *words],
            env={**os.environ, **passwords},
            input="\n",
            capture_output=True,
            text=True,
            timeout=_KEYTOOL_SECONDS,
            check=False,
        )
    except (OSError, EmbeddedError, subprocess.TimeoutExpired) as error:
        raise _unusable(store, f"keytool of Java cannot be run: {type(error).__name__}") from None
    if done.returncode != 0:
        raise _unusable(store, "it is damaged, or its password or the key's is wrong")
    return done.stdout


def _text(store: CertificateStore) -> str:
    return _content(store).decode("utf-8", "replace")


def _content(store: CertificateStore) -> bytes:
    assert store.location is not None
    try:
        return Path(store.location).read_bytes()
    except OSError as error:
        raise _unusable(store, f"{error.strerror}") from None


def _unusable(store: CertificateStore, why: str) -> StoreUnusable:
    return StoreUnusable(f"{store.location or 'the PEM text'}: {why}")
