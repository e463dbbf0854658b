"""The security of `tsoffset demo --secure`, for brokers and clients."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tsoffset.lab.embedded import Access, BrokerListener, BrokerSecurity, EmbeddedBroker
from tsoffset.lab.embedded.certificates import LOCAL_HOSTS, Authority
from tsoffset.lab.embedded.server import write_private

USER = "demo"
MECHANISM = "SCRAM-SHA-512"
_CLIENTS = BrokerListener("CLIENTS", "SASL_SSL", mechanisms=(MECHANISM,))


class Locks:
    """An authority, and a certificate and a password for each of the clusters, in a folder.

    `passwords_path` is the file to which a configuration refers for the passwords, by cluster name.
    """

    def __init__(self, folder: Path, clusters: tuple[str, ...]) -> None:
        authority = Authority("tsoffset demo authority")
        self._trust_store = authority.write_pem(folder / "authority.pem")
        self._passwords = {name: secrets.token_urlsafe() for name in clusters}
        self._key_stores = {
            name: authority.issue(name, LOCAL_HOSTS).write_pem(folder / f"{name}.pem")
            for name in clusters
        }
        lines = (f"{name} = {password}\n" for name, password in self._passwords.items())
        self.passwords_path = write_private(folder / "passwords.properties", "".join(lines))

    def of(self, cluster: str) -> BrokerSecurity:
        return BrokerSecurity(
            (replace(_CLIENTS, key_store=self._key_stores[cluster]),),
            passwords={USER: self._passwords[cluster]},
            superusers=(f"User:{USER}",),
        )

    def access(self, broker: EmbeddedBroker) -> Access:
        return Access(
            broker.bootstrap_at(_CLIENTS.name),
            _CLIENTS.protocol,
            trust_store=self._trust_store,
            mechanism=MECHANISM,
            user=USER,
            password=self._passwords[broker.name],
        )

    def configuration(self, *brokers: EmbeddedBroker) -> Mapping[str, str]:
        """How MirrorMaker 2 and tsoffset connect: the passwords are not in their file."""
        provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
        found = {"config.providers": "file", "config.providers.file.class": provider}
        for broker in brokers:
            password = f"${{file:{self.passwords_path}:{broker.name}}}"
            access = replace(self.access(broker), password=password)
            found |= {f"{broker.name}.{key}": value for key, value in access.properties().items()}
        return found
