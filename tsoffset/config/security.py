"""From security settings to how connections are secured.

The settings mean what Kafka's SslConfigs and SaslConfigs say. One that tsoffset cannot apply is a
problem. Values are never shown.
"""

from collections.abc import Callable, Collection, Mapping
from urllib.parse import unquote, urlsplit

from tsoffset.config import security_keys as keys
from tsoffset.config.findings import Findings
from tsoffset.config.jaas import LoginModule, login_module
from tsoffset.config.key_table import Key
from tsoffset.config.scopes import Setting
from tsoffset.config.security_keys import SECURITY_KEYS
from tsoffset.config.values import TLS_VERSIONS
from tsoffset.flow.patterns import split_list
from tsoffset.flow.security import (
    CertificateStore,
    KerberosLogin,
    Login,
    MskToken,
    PasswordLogin,
    Security,
    Tls,
    TokenEndpoint,
    TokenFile,
    TokenLogin,
    is_local,
    keeps_secrets,
)

Refuse = Callable[[str, str], None]
"""Reports a problem: the name of a setting, and what is allowed."""

_PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")
_OAUTH_MODULE = "OAuthBearerLoginModule"
_KERBEROS_MODULE = "Krb5LoginModule"
_MSK_MODULE = "IAMLoginModule"
_MODULES = {
    "PLAIN": _PASSWORD_MODULES,
    "SCRAM-SHA-256": _PASSWORD_MODULES,
    "SCRAM-SHA-512": _PASSWORD_MODULES,
    "OAUTHBEARER": (_OAUTH_MODULE, _MSK_MODULE),
    "GSSAPI": (_KERBEROS_MODULE,),
    keys.MSK_MECHANISM: (_MSK_MODULE,),
}
_EXTENSION = "extension_"
_UNSECURED = "unsecuredLogin"
# The accepted options of Java's Kerberos login. Only those for keytab, principal, service name and
# initiator matter here; the others have no effect.
_KERBEROS_WORDS = """
    useKeyTab keyTab principal storeKey useTicketCache doNotPrompt refreshKrb5Config renewTGT
    isInitiator debug serviceName
"""
_KERBEROS_OPTIONS = frozenset(_KERBEROS_WORDS.split())


def security_of(
    settings: Mapping[str, Setting], brokers: tuple[str, ...], missing: Refuse, findings: Findings
) -> Security:
    """How a cluster's connections are secured by these settings, which have names without prefix.

    `brokers` are its bootstrap addresses. Problems are added to `findings`; for a setting that is
    missing, `missing` is called. After a problem, the result must not be used.
    """
    if not all(setting.usable for setting in settings.values()):
        return Security()  # reported already

    def refuse(name: str, allowed: str) -> None:
        if name in settings:
            findings.problem(settings[name].entry, allowed, with_value=False)
        else:
            missing(name, allowed)

    texts = {name: SECURITY_KEYS[name].read(setting.value) for name, setting in settings.items()}
    protocol = _of(texts, keys.PROTOCOL) or "PLAINTEXT"
    for name, setting in settings.items():
        if _family(name) not in protocol and name != setting.entry.key:
            findings.warning(setting.entry, f"has no effect with security.protocol = {protocol}")
    login = _login(texts, brokers, refuse) if "SASL" in protocol else None
    origin = login.origin if isinstance(login, TokenLogin) else None
    endpoint = origin if isinstance(origin, TokenEndpoint) else None
    if endpoint is not None and not keeps_secrets(endpoint.url):
        findings.warning(
            settings[keys.TOKEN_ADDRESS.name].entry,
            "the client's secret is sent there unencrypted; use https",
        )
    tls = _tls(texts, refuse) if "SSL" in protocol else None
    if tls is None and _shows_secrets(login) and not all(map(_is_loopback, brokers)):
        findings.warning(
            settings[keys.PROTOCOL.name].entry,
            "tsoffset's credentials are sent to the brokers unencrypted, so anybody on the network"
            " can read and use them; use SASL_SSL",
        )
    for name, secured in (
        (keys.HOST_NAME_CHECK.name, tls),
        (keys.JAAS.name, None if endpoint is None else endpoint.tls),
    ):
        if secured is not None and not secured.verify_host_name:
            findings.warning(
                settings[name].entry,
                f"{keys.HOST_NAME_CHECK.name} is empty, so anybody with a certificate of a trusted"
                " authority, for any host, can pose as the broker; remove this key",
            )
    return Security(tls, login)


def warn_of_unused(
    top: Mapping[str, Setting], secured: Collection[Security], findings: Findings
) -> None:
    """Warn of settings at the top level, for all clusters, that no cluster uses."""
    for name, setting in top.items():
        if name in SECURITY_KEYS and not any(_family(name) in one.protocol for one in secured):
            findings.warning(setting.entry, "has no effect: no cluster's security.protocol uses it")


def _family(name: str) -> str:
    """The part of a protocol's name that a setting is for; empty if it is for all."""
    family = name.partition(".")[0].upper()
    return family if family in ("SSL", "SASL") else ""


def _shows_secrets(login: Login | None) -> bool:
    """True if brokers get credentials that another party could use."""
    return isinstance(login, TokenLogin) or (
        isinstance(login, PasswordLogin) and login.mechanism == "PLAIN"
    )


def _is_loopback(broker: str) -> bool:
    """True for a loopback address `host:port`."""
    return is_local(broker.rpartition("://")[2].rpartition(":")[0].strip("[]"))


def _of(texts: Mapping[str, str], key: Key[str | None]) -> str | None:
    return texts.get(key.name) or None


def _or_default(texts: Mapping[str, str], key: Key[str | None]) -> str:
    return texts.get(key.name) or key.shown_default


# --- TLS -----------------------------------------------------------------------------------


def _tls(texts: Mapping[str, str], refuse: Refuse) -> Tls:
    return Tls(
        trust=_trust(texts, refuse),
        own=_own(texts, refuse),
        # An empty algorithm turns the check off.
        verify_host_name=texts.get(keys.HOST_NAME_CHECK.name) != "",
        protocols=tuple(split_list(_or_default(texts, keys.PROTOCOLS))) or TLS_VERSIONS,
        cipher_suites=tuple(split_list(texts.get(keys.CIPHER_SUITES.name, ""))),
    )


def _trust(texts: Mapping[str, str], refuse: Refuse) -> CertificateStore | None:
    location = _of(texts, keys.TRUST_LOCATION)
    certificates = _of(texts, keys.TRUST_CERTIFICATES)
    password = _of(texts, keys.TRUST_PASSWORD)
    is_pem = _is_pem(texts, keys.TRUST_TYPE, (keys.TRUST_CERTIFICATES,), refuse)
    if location and certificates:
        refuse(
            keys.TRUST_LOCATION.name, f"must be removed if {keys.TRUST_CERTIFICATES.name} is set"
        )
    if is_pem and password:
        refuse(keys.TRUST_PASSWORD.name, "must be removed: a PEM trust store has no password")
    if location is None and certificates is None:
        if password:
            refuse(keys.TRUST_LOCATION.name, "must name the trust store, since its password is set")
        return None
    return CertificateStore(is_pem, location, password, certificates)


def _own(texts: Mapping[str, str], refuse: Refuse) -> CertificateStore | None:
    location = _of(texts, keys.OWN_LOCATION)
    chain, key = _of(texts, keys.OWN_CHAIN), _of(texts, keys.OWN_KEY)
    password, key_password = _of(texts, keys.OWN_PASSWORD), _of(texts, keys.OWN_KEY_PASSWORD)
    is_pem = _is_pem(texts, keys.OWN_TYPE, (keys.OWN_CHAIN, keys.OWN_KEY), refuse)
    if location and (chain or key):
        refuse(keys.OWN_LOCATION.name, f"must be removed if {keys.OWN_KEY.name} is set")
    if is_pem and password:
        refuse(keys.OWN_PASSWORD.name, "must be removed: with PEM the key has ssl.key.password")
    if (chain is None) != (key is None):
        absent = keys.OWN_CHAIN if chain is None else keys.OWN_KEY
        refuse(absent.name, "must be set: a certificate and its key belong together")
    if location is None and key is None:
        if password or key_password:
            refuse(keys.OWN_LOCATION.name, "must name the key store, since its password is set")
        return None
    if not is_pem and password is None:
        refuse(keys.OWN_PASSWORD.name, "must be set: a key store has a password")
    return CertificateStore(is_pem, location, password, chain, key, key_password)


def _is_pem(
    texts: Mapping[str, str],
    kind: Key[str | None],
    of_pem: tuple[Key[str | None], ...],
    refuse: Refuse,
) -> bool:
    is_pem = _of(texts, kind) == "PEM"
    for key in of_pem:
        if not is_pem and _of(texts, key):
            refuse(key.name, f"is PEM text, so {kind.name} must be PEM")
    return is_pem


# --- SASL ----------------------------------------------------------------------------------


def _login(texts: Mapping[str, str], brokers: tuple[str, ...], refuse: Refuse) -> Login | None:
    mechanism = _or_default(texts, keys.MECHANISM)
    allowed = _MODULES[mechanism]
    kind, wrong = "", f"must name {' or '.join(allowed)}"
    try:
        module = login_module(texts.get(keys.JAAS.name, ""))
        kind = module.name.rpartition(".")[2]
    except ValueError as error:
        if keys.JAAS.name in texts:
            wrong = str(error)
    if kind not in allowed:
        refuse(keys.JAAS.name, f"{wrong}, for sasl.mechanism = {mechanism}")
        return None
    if kind in _PASSWORD_MODULES:
        return _password_login(mechanism, module, refuse)
    if kind == _KERBEROS_MODULE:
        return _kerberos_login(texts, module, refuse)
    if kind == _MSK_MODULE or _of(texts, keys.LOGIN_HANDLER) == keys.MSK_LOGIN_HANDLER:
        return _msk_login(texts, module, brokers, refuse)
    return _token_login(texts, module, refuse)


def _check_options(module: LoginModule, options: frozenset[str], refuse: Refuse) -> None:
    """Refuse other options than these, without their names: after a misplaced quotation mark, a
    part of a secret looks like an option."""
    if not module.options.keys() <= options:
        name = module.name.rpartition(".")[2]
        refuse(
            keys.JAAS.name,
            f"has an unsupported option; {name} supports: {', '.join(sorted(options))}",
        )


def _password_login(mechanism: str, module: LoginModule, refuse: Refuse) -> Login:
    _check_options(module, frozenset({"username", "password"}), refuse)
    for name in ("username", "password"):
        if not module.options.get(name):
            refuse(keys.JAAS.name, f"must have the option {name}")
    return PasswordLogin(
        mechanism, module.options.get("username", ""), module.options.get("password", "")
    )


def _kerberos_login(texts: Mapping[str, str], module: LoginModule, refuse: Refuse) -> Login:
    _check_options(module, _KERBEROS_OPTIONS, refuse)
    options = module.options
    if options.get("isInitiator", "true").lower() != "true":
        refuse(keys.JAAS.name, "must not have isInitiator=false: the client initiates the login")
    service = _of(texts, keys.KERBEROS_SERVICE) or options.get("serviceName")
    if not service:
        refuse(keys.KERBEROS_SERVICE.name, "must be set for GSSAPI; usually it is kafka")
    by_keytab = options.get("useKeyTab", "").lower() == "true"
    keytab = options.get("keyTab") if by_keytab else None
    if by_keytab and not keytab:
        refuse(keys.JAAS.name, "must have the option keyTab, since useKeyTab is set")
    if keytab and not options.get("principal"):
        refuse(keys.JAAS.name, "must have the option principal, whose key the keytab holds")
    return KerberosLogin(
        service or "", options.get("principal"), keytab and keytab.removeprefix("file:")
    )


def _msk_login(
    texts: Mapping[str, str], module: LoginModule, brokers: tuple[str, ...], refuse: Refuse
) -> Login:
    taken = frozenset({"awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion"})
    _check_options(module, taken, refuse)
    options = module.options
    region = options.get("awsStsRegion") or _msk_region(brokers)
    if region is None:
        refuse(
            keys.JAAS.name,
            "must have the option awsStsRegion, since bootstrap.servers names no region of AWS",
        )
    if "SSL" not in (_of(texts, keys.PROTOCOL) or ""):
        refuse(keys.PROTOCOL.name, "must be SASL_SSL for AWS: a token is as secret as a password")
    return TokenLogin(
        MskToken(
            region or "",
            options.get("awsProfileName"),
            options.get("awsRoleArn"),
            options.get("awsRoleSessionName"),
        )
    )


def _msk_region(brokers: tuple[str, ...]) -> str | None:
    """The region in `b-1.name.abc.c2.kafka.eu-west-1.amazonaws.com:9098`."""
    for broker in brokers:
        labels = broker.rpartition(":")[0].split(".")
        if "amazonaws" in labels[2:]:
            return labels[labels.index("amazonaws") - 1]
    return None


def _token_login(texts: Mapping[str, str], module: LoginModule, refuse: Refuse) -> Login:
    options = module.options
    extensions = {
        name.removeprefix(_EXTENSION): text
        for name, text in options.items()
        if name.startswith(_EXTENSION)
    }
    if not all(name.isalpha() and name != "auth" for name in extensions):
        refuse(
            keys.JAAS.name,
            "has an extension whose name is `auth` or has other characters than letters",
        )
    if any(name.startswith(_UNSECURED) for name in options):
        refuse(
            keys.JAAS.name,
            "has options of unsecured tokens, which tsoffset does not support; set"
            f" {keys.TOKEN_ADDRESS.name}",
        )
    else:
        taken = {"clientId", "clientSecret", "scope", *(_EXTENSION + name for name in extensions)}
        _check_options(module, frozenset(taken | _tls_options(options).keys()), refuse)
    address = _of(texts, keys.TOKEN_ADDRESS)
    if address is None:
        refuse(
            keys.TOKEN_ADDRESS.name, "must be the address of the token endpoint, for OAUTHBEARER"
        )
        return TokenLogin(TokenFile(""))
    is_file = address.startswith("file:")
    wanted = {keys.CLIENT_CREDENTIALS: False, keys.TOKEN_FILE: True}
    if wanted.get(_of(texts, keys.RETRIEVER) or "", is_file) is not is_file:
        refuse(keys.RETRIEVER.name, f"does not fit {keys.TOKEN_ADDRESS.name}")
    origin: TokenEndpoint | TokenFile
    if is_file:
        origin = TokenFile(unquote(urlsplit(address).path))
    else:
        origin = _endpoint(texts, address, options, refuse)
    return TokenLogin(
        origin,
        extensions,
        refresh_factor=float(_or_default(texts, keys.REFRESH_FACTOR)),
        refresh_least_seconds=int(_or_default(texts, keys.REFRESH_LEAST)),
        refresh_buffer_seconds=int(_or_default(texts, keys.REFRESH_BUFFER)),
    )


def _endpoint(
    texts: Mapping[str, str], address: str, options: Mapping[str, str], refuse: Refuse
) -> TokenEndpoint:
    client = _of(texts, keys.TOKEN_CLIENT) or options.get("clientId")
    secret = _of(texts, keys.TOKEN_SECRET) or options.get("clientSecret")
    for key, option, text in (
        (keys.TOKEN_CLIENT, "clientId", client),
        (keys.TOKEN_SECRET, "clientSecret", secret),
    ):
        if not text:
            refuse(key.name, f"must be set, or {option} in {keys.JAAS.name}")

    def refuse_option(name: str, allowed: str) -> None:
        refuse(keys.JAAS.name, f"option {name}: {allowed}")

    of_tls: dict[str, str] = {}
    for name, text in _tls_options(options).items():
        try:
            of_tls[name] = SECURITY_KEYS[name].read(text)
        except ValueError as error:
            refuse_option(name, str(error))
    return TokenEndpoint(
        address,
        client or "",
        secret or "",
        _of(texts, keys.TOKEN_SCOPE) or options.get("scope"),
        url_encoded_header=_or_default(texts, keys.TOKEN_HEADER_ENCODED).lower() == "true",
        tls=_tls(of_tls, refuse_option),
        connect_timeout_ms=int(_or_default(texts, keys.TOKEN_CONNECT_MS)),
        read_timeout_ms=int(_or_default(texts, keys.TOKEN_READ_MS)),
    )


def _tls_options(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of TLS inside of `sasl.jaas.config`."""
    return {
        name: text
        for name, text in options.items()
        if name.startswith("ssl.") and name in SECURITY_KEYS
    }
