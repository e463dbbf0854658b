"""Listeners, users and rights of a broker, and how a client connects to it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsoffset.config.jaas import jaas_text

ADMIN = "admin"

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    **dict.fromkeys(_SCRAM, "scram.ScramLoginModule"),
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """A port for clients, and what it requires of them.

    `protocol` is SSL, SASL_PLAINTEXT or SASL_SSL. With TLS it presents the certificate of
    `key_store` (PEM, key and chain), and requests the client's according to `client_auth` (none,
    requested or required, as in ssl.client.auth). `mechanisms` are those of SASL. `properties` are
    further settings of this listener alone.
    """

    name: str
    protocol: str
    key_store: Path | None = None
    client_auth: str = "none"
    mechanisms: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """What a broker requires of its clients; everything that no ACL allows is refused.

    It has these `listeners`, and one for its administrator, who is a super user: other nodes use
    it, and programs that set up the cluster. `superusers` are further super users. `trust_store`
    (PEM) has the authority of clients' certificates, `passwords` the users' passwords for PLAIN
    and SCRAM; SCRAM's users are fixed when the data folder is created. A password may not contain a
    comma or a line break.
    """

    listeners: tuple[BrokerListener, ...]
    trust_store: Path | None = None
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    superusers: tuple[str, ...] = ()
    admin_password: str = field(default_factory=secrets.token_urlsafe, repr=False)

    def properties(self) -> dict[str, str]:
        """The broker's settings, except the listeners' addresses and protocols."""
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
            found |= _with_prefix(name, _sasl({"PLAIN": admin}))
        for listener in self.listeners:
            found |= _with_prefix(listener.name, self._of_listener(listener))
        return found

    def scram_users(self) -> list[str]:
        """The users in the form of kafka-storage, each after --add-scram."""
        taken = {mechanism for listener in self.listeners for mechanism in listener.mechanisms}
        return [
            # The tool removes quotation marks around a word, so they are added.
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
        # Only PLAIN's users are here: SCRAM's are in the cluster's metadata.
        users = {f"user_{user}": password for user, password in self.passwords.items()}
        found |= _sasl(
            {each: jaas(each, users if each == "PLAIN" else {}) for each in listener.mechanisms}
        )
        return found | dict(listener.properties)


# On loopback, so a password needs no TLS.
ADMIN_LISTENER = BrokerListener("ADMIN", "SASL_PLAINTEXT", mechanisms=("PLAIN",))
PLAINTEXT = BrokerListener("PLAINTEXT", "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class Access:
    """How a client connects to a cluster: its address, trust, and identity.

    `trust_store` and `key_store` are PEM files, the latter with key and chain for mTLS. User and
    password are for PLAIN and SCRAM.
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
        """The same, or for an address, access to a cluster without security."""
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
    return jaas_text("org.apache.kafka.common.security." + _LOGIN_MODULES[mechanism], options)


def _sasl(logins: Mapping[str, str]) -> dict[str, str]:
    """A listener's SASL by mechanism and its JAAS configuration; empty without logins."""
    if not logins:
        return {}
    return {
        "sasl.enabled.mechanisms": ",".join(logins),
        **{f"{name.lower()}.sasl.jaas.config": login for name, login in logins.items()},
    }


def _store(kind: str, path: Path) -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(path)}


def _with_prefix(listener: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"listener.name.{listener.lower()}."
    return {prefix + name: value for name, value in properties.items()}
