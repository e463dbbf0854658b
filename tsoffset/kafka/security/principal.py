"""The principal by which brokers know this client."""

from cryptography.x509 import Certificate, NameOID, load_pem_x509_certificate

from tsoffset.flow.security import CertificateStore, KerberosLogin, PasswordLogin, Security
from tsoffset.kafka.security.failures import StoreUnusable
from tsoffset.kafka.security.stores import client_identity

# Attributes that Java names by a word (RFC 2253); it writes others in its own form.
_WORDS = {
    NameOID.COMMON_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.DOMAIN_COMPONENT,
    NameOID.LOCALITY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.USER_ID,
}


def principal(security: Security) -> str | None:
    """`User:alice`, as ACLs name this client by the brokers' default rules; None if only the
    brokers know it.

    It may read a key store.
    """
    login = security.login
    if isinstance(login, PasswordLogin):
        return f"User:{login.username}"
    if isinstance(login, KerberosLogin):
        # `alice` of `alice/host@REALM`.
        name = None if login.principal is None else login.principal.partition("@")[0]
        return None if name is None else f"User:{name.partition('/')[0]}"
    if login is not None:
        return None
    if security.tls is None or security.tls.own is None:
        return "User:ANONYMOUS"
    return _subject(security.tls.own)


def _subject(store: CertificateStore) -> str | None:
    try:
        certificate: Certificate = load_pem_x509_certificate(client_identity(store).chain.encode())
    except (StoreUnusable, ValueError):
        return None
    if any(attribute.oid not in _WORDS for attribute in certificate.subject):
        return None
    return f"User:{certificate.subject.rfc4514_string()}"
