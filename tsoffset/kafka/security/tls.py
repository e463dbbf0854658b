"""TLS contexts from settings, and the text of their failures."""

import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

import truststore

from tsoffset.flow.security import CertificateStore, Tls
from tsoffset.kafka.security.failures import StoreUnusable, TlsFailed
from tsoffset.kafka.security.stores import certificates, client_identity

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_NEWEST = "TLSv1.3"
# Signaling values among Java's names of cipher suites.
_NO_CIPHER = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
# OpenSSL's names of alerts about the client's certificate.
_OF_OURS = ("CERTIFICATE", "UNKNOWN_CA", "BAD_CERT", "ACCESS_DENIED")


def context(tls: Tls) -> ssl.SSLContext:
    """The context for these settings, with the current files. Reads from disk.

    Raises StoreUnusable or TlsFailed.
    """
    return _context(tls, _file_state(tls.trust), _file_state(tls.own))


def new_context(tls: Tls) -> ssl.SSLContext:
    """The same, not shared."""
    # It finds the system's authorities where OpenSSL does not, but reads them for each connection.
    return _make_context(tls, truststore.SSLContext if tls.trust is None else ssl.SSLContext)


def _file_state(store: CertificateStore | None) -> tuple[int, ...] | None:
    """Changes with a store's file; if the file cannot be examined, reading it will fail."""
    if store is None or store.location is None:
        return None
    try:
        found = Path(store.location).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=256)
def _context(tls: Tls, *_marks: tuple[int, ...] | None) -> ssl.SSLContext:
    return _make_context(tls)


def _make_context(tls: Tls, kind: type[ssl.SSLContext] = ssl.SSLContext) -> ssl.SSLContext:
    made = kind(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = tls.verify_host_name
    # As in Java: a certificate in the trust store is trusted, whoever issued it.
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _choose_versions(made, tls)
    if tls.trust is None:
        made.load_default_certs()
    else:
        made.load_verify_locations(cadata=certificates(tls.trust))
    if tls.own is not None:
        _load_client_certificate(made, tls.own)
    return made


def _load_client_certificate(made: ssl.SSLContext, store: CertificateStore) -> None:
    """Load the client's certificate. OpenSSL reads it from a file only, which exists for a moment
    with its key encrypted."""
    identity = client_identity(store)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="tsoffset-", suffix=".pem") as file:
            file.write(f"{identity.key}\n{identity.chain}\n")
            file.flush()
            made.load_cert_chain(file.name, password=identity.password)
    except ssl.SSLError as error:
        location = store.location or "the PEM text"
        raise StoreUnusable(f"{location}: {_words(error.reason or 'it cannot be used')}") from None
    except OSError as error:
        raise StoreUnusable(f"no temporary file for a key: {error.strerror}") from None


def _choose_versions(made: ssl.SSLContext, tls: Tls) -> None:
    suites = [name for name in tls.cipher_suites if name not in _NO_CIPHER]
    newer = [name for name in suites if "_WITH_" not in name]
    older = [name for name in suites if "_WITH_" in name]
    protocols = tls.protocols
    if tls.cipher_suites:
        supported = {one["name"] for one in made.get_ciphers() if one["protocol"] == _NEWEST}
        if newer and _NEWEST in protocols and not supported <= {*newer}:
            raise TlsFailed(
                f"ssl.cipher.suites: for {_NEWEST}, list all of {', '.join(sorted(supported))}, or"
                " none"
            )
        protocols = tuple(one for one in protocols if (newer if one == _NEWEST else older))
    if not protocols:
        raise TlsFailed("ssl.cipher.suites: none of them is for a version in ssl.enabled.protocols")
    made.minimum_version, made.maximum_version = _VERSIONS[protocols[0]], _VERSIONS[protocols[-1]]
    if older:
        try:
            made.set_ciphers(":".join(map(_openssl_name, older)))
        except ssl.SSLError:
            raise TlsFailed("ssl.cipher.suites: OpenSSL knows none of them") from None
        known = {one["name"] for one in made.get_ciphers()}
        if unknown := [name for name in older if _openssl_name(name) not in known]:
            raise TlsFailed(f"ssl.cipher.suites: OpenSSL does not know {', '.join(unknown)}")


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite: ECDHE-RSA-AES128-GCM-SHA256 for
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = [cipher] if exchange == "RSA" else [exchange, cipher]
    return "-".join(parts).replace("_", "-")


def is_no_tls(error: OSError) -> bool:
    """Whether the other side answered, but not in TLS."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


def explain_failure(error: OSError, tls: Tls | None, owner: str = "the broker's") -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{owner} certificate is not accepted: {error.verify_message}"
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if "ALERT" in reason and any(word in reason for word in _OF_OURS):
        alert = _words(reason.partition("ALERT_")[2])
        if tls is None or tls.own is None:
            return f"a client certificate is required, and ssl.keystore.* is not set ({alert})"
        return f"the client certificate is not accepted ({alert})"
    if is_no_tls(error):
        return "the other side does not speak TLS"
    return _words(reason) or error.strerror or str(error)


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()
