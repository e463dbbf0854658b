"""Who may enter a broker and by which door, and how a client enters one."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ADMIN = "admin"

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    **dict.fromkeys(_SCRAM, "scram.ScramLoginModule"),
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_VALIDATOR = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
)


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """A port for clients, and what it asks of them.

    `protocol` is SSL, SASL_PLAINTEXT or SASL_SSL. With TLS it shows the certificate of
    `key_store` (PEM, key and chain), and asks for the client's by `client_auth` (none,
    requested or required, as in ssl.client.auth). `mechanisms` are those of SASL.
    `properties` are further settings of this listener alone.
    """

    name: str
    protocol: str
    key_store: Path | None = None
    client_auth: str = "none"
    mechanisms: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerTokens:
    """Which tokens OAUTHBEARER takes: signed by a key that `jwks_url` serves, with this issuer
    and this audience."""

    jwks_url: str
    issuer: str
    audience: str


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """What a broker asks of its clients; what no ACL allows is refused.

    It has these `listeners`, and one for its administrator, who is a super user: other nodes,
    and whoever sets up the cluster, enter there. `superusers` are further principals of that
    kind. `trust_store` (PEM) holds the authority of clients' certificates, `passwords` those
    of users, for PLAIN and SCRAM alike; SCRAM takes those that are there when the data folder
    is made. Passwords may hold anything but a comma or a line break.
    """

    listeners: tuple[BrokerListener, ...]
    trust_store: Path | None = None
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    superusers: tuple[str, ...] = ()
    tokens: BrokerTokens | None = None
    admin_password: str = field(default_factory=secrets.token_urlsafe, repr=False)

    def properties(self) -> dict[str, str]:
        """The broker's settings, but for the listeners' addresses and protocols."""
        both = {"username": ADMIN, "password": self.admin_password}
        admin = jaas("PLAIN", both | {f"user_{ADMIN}": self.admin_password})
        found = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": ";".join((f"User:{ADMIN}", *self.superusers)),
            "inter.broker.listener.name": ADMIN_LISTENER.name,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
        }
        for name in (ADMIN_LISTENER.name, "CONTROLLER"):
            found |= _prefixed(name, _sasl({"PLAIN": admin}))
        for listener in self.listeners:
            found |= _prefixed(listener.name, self._of_listener(listener))
        return found

    def java_options(self) -> tuple[str, ...]:
        """What its Java must be told besides: Kafka fetches only what is named there."""
        if self.tokens is None:
            return ()
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.jwks_url}",)

    def scram_users(self) -> list[str]:
        """The users as kafka-storage takes them, with --add-scram before each."""
        taken = {mechanism for listener in self.listeners for mechanism in listener.mechanisms}
        return [
            # The tool takes off quotation marks around a word, so it gets some.
            f'{mechanism}=[name={user},password="{password}"]'
            for mechanism in _SCRAM
            if mechanism in taken
            for user, password in self.passwords.items()
        ]

    def _of_listener(self, listener: BrokerListener) -> dict[str, str]:
        found = {"ssl.client.auth": listener.client_auth}
        if listener.key_store is not None:
            found |= _store("keystore", listener.key_store)
        if self.trust_store is not None:
            found |= _store("truststore", self.trust_store)
        # Only PLAIN has its users here: SCRAM's are in the cluster's metadata.
        users = {f"user_{user}": password for user, password in self.passwords.items()}
        found |= _sasl(
            {each: jaas(each, users if each == "PLAIN" else {}) for each in listener.mechanisms}
        )
        if "OAUTHBEARER" in listener.mechanisms and self.tokens is not None:
            prefix = "oauthbearer.sasl"
            found |= {
                f"{prefix}.server.callback.handler.class": _OAUTH_VALIDATOR,
                f"{prefix}.oauthbearer.jwks.endpoint.url": self.tokens.jwks_url,
                f"{prefix}.oauthbearer.expected.issuer": self.tokens.issuer,
                f"{prefix}.oauthbearer.expected.audience": self.tokens.audience,
            }
        return found | dict(listener.properties)


# Of loopback: what a password protects there needs no TLS.
ADMIN_LISTENER = BrokerListener("ADMIN", "SASL_PLAINTEXT", mechanisms=("PLAIN",))
PLAINTEXT = BrokerListener("PLAINTEXT", "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class Access:
    """How a client enters a cluster: where, whom it trusts, and as whom it comes.

    `trust_store` and `key_store` are PEM files, the latter with key and chain for mTLS. User
    and password are for PLAIN and SCRAM.
    """

    bootstrap: str
    protocol: str = "PLAINTEXT"
    trust_store: Path | None = None
    key_store: Path | None = None
    mechanism: str | None = None
    user: str = ""
    password: str = field(default="", repr=False)

    @staticmethod
    def of(where: "str | Access") -> "Access":
        """The same, or that of a cluster without security at an address."""
        return Access(where) if isinstance(where, str) else where

    def properties(self) -> dict[str, str]:
        """The settings by Kafka's names."""
        found = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.trust_store is not None:
            found |= _store("truststore", self.trust_store)
        if self.key_store is not None:
            found |= _store("keystore", self.key_store)
        if self.mechanism is not None:
            login = {"username": self.user, "password": self.password}
            found["sasl.mechanism"] = self.mechanism
            found["sasl.jaas.config"] = jaas(self.mechanism, login)
        return found

    def settings(self) -> dict[str, Any]:
        """The settings by kafka-python's names."""
        found: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.protocol,
        }
        if self.trust_store is not None:
            found["ssl_cafile"] = str(self.trust_store)
        if self.key_store is not None:
            found |= {"ssl_certfile": str(self.key_store), "ssl_keyfile": str(self.key_store)}
        if self.mechanism is not None:
            found |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return found


def jaas(mechanism: str, options: Mapping[str, str]) -> str:
    """The value of sasl.jaas.config for a mechanism."""
    words = ["org.apache.kafka.common.security." + _LOGIN_MODULES[mechanism], "required"]
    for name, value in options.items():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        words.append(f'{name}="{escaped}"')
    return " ".join(words) + ";"


def _sasl(logins: Mapping[str, str]) -> dict[str, str]:
    """A listener's SASL by mechanism and its JAAS configuration; nothing if there is none."""
    if not logins:
        return {}
    return {
        "sasl.enabled.mechanisms": ",".join(logins),
        **{f"{name.lower()}.sasl.jaas.config": login for name, login in logins.items()},
    }


def _store(kind: str, path: Path) -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(path)}


def _prefixed(listener: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"listener.name.{listener.lower()}."
    return {prefix + name: value for name, value in properties.items()}
