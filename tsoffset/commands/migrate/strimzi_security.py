"""Converts the security of a cluster in a Strimzi resource into settings of Kafka's clients.

The operator passes Kubernetes secrets to the connectors itself. tsoffset reads them from folders in
which its pod mounts them, one for each secret, below `SECRETS_FOLDER`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tsoffset.commands.migrate.setup import Heading, MirrorSetting, OmittedSetting
from tsoffset.commands.migrate.yaml_parts import YamlValue
from tsoffset.config import security_keys as keys
from tsoffset.config.jaas import jaas_text

SECRETS_FOLDER = "/etc/tsoffset/secrets"
_KAFKA = "org.apache.kafka.common.security."
_PASSWORD_LOGINS = {
    "plain": ("PLAIN", f"{_KAFKA}plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_KAFKA}scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_KAFKA}scram.ScramLoginModule"),
}
_OAUTH_MODULE = f"{keys.OAUTH_PACKAGE}OAuthBearerLoginModule"
# The fields of `type: oauth` without an equivalent in Kafka's own clients.
_OAUTH_UNSUPPORTED = (
    "audience",
    "username",
    "passwordSecret",
    "refreshToken",
    "accessTokenIsJwt",
    "maxTokenExpirySeconds",
    "httpRetries",
    "httpRetryPauseMs",
    "includeAcceptHeader",
    "enableMetrics",
)
# `${secrets:namespace/name:key}` of the operator's provider, under any of its names.
_OF_KUBERNETES = re.compile(
    r"\$\{(?:strimzi)?(?P<kind>secrets|configmaps):(?:[^}/:]*/)?(?P<name>[^}/:]+):(?P<key>[^}:]+)\}"
)
_OF_STRIMZI = re.compile(r"\$\{strimzi(?P<provider>env|file|dir):")


@dataclass(slots=True)
class ResourceNotes:
    """The secrets that have to be mounted, and the fields that have no equivalent setting."""

    secrets: dict[str, None] = field(default_factory=dict)
    omitted: list[OmittedSetting] = field(default_factory=list)

    def path(self, secret: str, key: str) -> str:
        self.secrets[secret] = None
        return f"{SECRETS_FOLDER}/{secret}/{key}"

    def reference(self, secret: str, key: str) -> str:
        folder = self.path(secret, "").rstrip("/")
        return f"${{dir:{folder}:{key}}}"

    def convert_references(self, text: str) -> str:
        """The text, with references to the providers of Kubernetes and Strimzi converted."""
        text = _OF_KUBERNETES.sub(lambda found: self.reference(found["name"], found["key"]), text)
        return _OF_STRIMZI.sub(r"${\g<provider>:", text)


def security_settings(cluster: YamlValue, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    """The settings of a cluster's `tls` and `authentication`, by their names without prefixes."""
    tls, authentication = cluster.get("tls"), cluster.get("authentication")
    kind = authentication.member_text("type")
    sasl = kind in (*_PASSWORD_LOGINS, "oauth") or (
        kind == "custom" and authentication.member_text("sasl") == "true"
    )
    protocol = ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT")
    yield MirrorSetting((tls or authentication or cluster).entry(), keys.PROTOCOL.name, protocol)
    yield from _trust_settings(tls, notes)
    if not authentication:
        return
    if kind == "tls":
        yield from _certificate(authentication, notes)
    elif kind in _PASSWORD_LOGINS:
        yield from _password_login(authentication, kind, notes)
    elif kind == "oauth":
        yield from _oauth(authentication, notes)
    elif kind == "custom":
        yield from own_settings(authentication.get("config"), notes)
    else:
        authentication.refuse(
            "must have a `type` of tls, plain, scram-sha-256, scram-sha-512, oauth or custom"
        )


def own_settings(config: YamlValue, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    """The members of a `config`: Kafka's own settings."""
    for name, part in config.members().items():
        text = part.text()
        referred = notes.convert_references(text)
        change = "tsoffset does not have the operator's secret provider."
        yield MirrorSetting(part.entry(text), name, referred, None if text == referred else change)


def _trust_settings(tls: YamlValue, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    listed = tls.get("trustedCertificates").items()
    if not listed:
        return  # the system's certificates
    entry = tls.entry()
    files = [(one.required_text("secretName"), one.member_text("certificate")) for one in listed]
    change = None
    if not all(name for _, name in files):
        change = "Only ca.crt of a secret with a `pattern` is used; add its other certificates."
        files = [(secret, name or "ca.crt") for secret, name in files]
    yield MirrorSetting(entry, keys.TRUST_TYPE.name, "PEM")
    if len(files) == 1:
        yield MirrorSetting(entry, keys.TRUST_LOCATION.name, notes.path(*files[0]), change)
    else:
        text = "\n".join(notes.reference(*file) for file in files)
        yield MirrorSetting(entry, keys.TRUST_CERTIFICATES.name, text, change)


def _certificate(authentication: YamlValue, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    part = authentication.get("certificateAndKey")
    if not part:
        authentication.refuse("must have `certificateAndKey`")
        return
    entry = part.entry()
    yield MirrorSetting(entry, keys.OWN_TYPE.name, "PEM")
    for key, name in ((keys.OWN_CHAIN, "certificate"), (keys.OWN_KEY, "key")):
        yield MirrorSetting(entry, key.name, notes.reference(*_secret(part, name)))


def _secret(part: YamlValue, key: str) -> tuple[str, str]:
    """The name of a secret, and the key in it that a member names."""
    return part.required_text("secretName"), part.required_text(key)


def _password_login(
    authentication: YamlValue, kind: str, notes: ResourceNotes
) -> Iterator[MirrorSetting]:
    mechanism, module = _PASSWORD_LOGINS[kind]
    entry = authentication.entry()
    options = {"username": authentication.required_text("username")}
    password = authentication.get("passwordSecret")
    if not password:
        authentication.refuse("must have `passwordSecret`")
    else:
        options["password"] = notes.reference(*_secret(password, "password"))
    yield MirrorSetting(entry, keys.MECHANISM.name, mechanism)
    yield MirrorSetting(entry, keys.JAAS.name, jaas_text(module, options))


def _oauth(authentication: YamlValue, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    """Strimzi's own login, converted to Kafka's as far as that has equivalents."""
    entry = authentication.entry()
    for name in _OAUTH_UNSUPPORTED:
        if part := authentication.get(name):
            why = "A setting of Strimzi's own login class; Kafka's class does not have it."
            notes.omitted.append(OmittedSetting(part.entry(), Heading.REFUSED, why))
    options: dict[str, str] = {}
    yield MirrorSetting(entry, keys.MECHANISM.name, "OAUTHBEARER")
    if token := authentication.get("accessToken"):
        address = f"file:{notes.path(*_secret(token, 'key'))}"
    elif location := authentication.get("accessTokenLocation"):
        address = f"file:{location.text()}"
    else:
        address = authentication.required_text("tokenEndpointUri")
        options["clientId"] = authentication.required_text("clientId")
        if secret := authentication.get("clientSecret"):
            options["clientSecret"] = notes.reference(*_secret(secret, "key"))
        if scope := authentication.member_text("scope"):
            options["scope"] = scope
        options |= _tls_of_tokens(authentication, notes)
    yield MirrorSetting(entry, keys.TOKEN_ADDRESS.name, address)
    yield MirrorSetting(entry, keys.JAAS.name, jaas_text(_OAUTH_MODULE, options))
    for name, key in (
        ("connectTimeoutSeconds", keys.TOKEN_CONNECT_MS),
        ("readTimeoutSeconds", keys.TOKEN_READ_MS),
    ):
        if part := authentication.get(name):
            yield MirrorSetting(part.entry(), key.name, f"{part.text()}000")


def _tls_of_tokens(authentication: YamlValue, notes: ResourceNotes) -> dict[str, str]:
    """The certificates for the token endpoint, which belong into `sasl.jaas.config`."""
    options: dict[str, str] = {}
    certificates = authentication.get("tlsTrustedCertificates")
    for number, one in enumerate(certificates.items()):
        if number:
            certificates.refuse(
                "may have one certificate here; put all of them into one secret's key"
            )
        file = one.member_text("certificate", "ca.crt")
        path = notes.path(one.required_text("secretName"), file)
        options |= {keys.TRUST_TYPE.name: "PEM", keys.TRUST_LOCATION.name: path}
    if authentication.member_text("disableTlsHostnameVerification") == "true":
        options[keys.HOST_NAME_CHECK.name] = ""
    return options
