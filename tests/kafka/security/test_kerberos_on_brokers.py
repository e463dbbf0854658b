"""GSSAPI at a real broker with the tickets of a real Kerberos server."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.configured import two_clusters
from tests.invoking import succeeds
from tests.waiting import wait_until
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import BrokerListener, BrokerSecurity, EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST, free_port, is_free

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
REALM = "TEST.REALM"
# Debian keeps the server's programs where only root looks for them.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def program(name: str) -> str:
    """The path of a program of Kerberos; skips where it is not installed."""
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@dataclass(frozen=True)
class Realm:
    """A Kerberos server of this machine, and the files of its clients."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "krb5.conf"

    def keytab(self, principal: str) -> Path:
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self._administer(f"addprinc -randkey {principal}")
        self._administer(f"ktadd -k {path} {principal}")
        return path

    def get_ticket(self, principal: str, cache: Path, lifetime: str = "1h") -> None:
        """A ticket in a file, by the keytab of a principal that is there."""
        keytab = self.folder / f"{principal}.keytab"
        options = ["-l", lifetime, "-c", cache, "-k", "-t", keytab, principal]
        self.run(program("kinit"), *options)

    def _administer(self, command: str) -> None:
        self.run(program("kadmin.local"), "-q", command)

    def run(self, *words: str | Path) -> None:
        succeeds(*words, env=self.environment(), timeout=180)

    def environment(self) -> dict[str, str]:
        kdc = self.folder / "kdc.conf"
        return {**os.environ, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(kdc)}


@contextmanager
def running_realm(folder: Path) -> Iterator[Realm]:
    """A new realm, whose server runs until the end of the block."""
    server, port = program("krb5kdc"), free_port()
    realm = Realm(folder)
    realm.config.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
        " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
        f" udp_preference_limit = 1\n[realms]\n {REALM} = {{\n  kdc = {HOST}:{port}\n }}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = {HOST}:{port}\n kdc_tcp_listen = {HOST}:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n"
        f"  key_stash_file = {folder}/stash\n }}\n"
    )
    realm.run(program("kdb5_util"), "create", "-s", "-P", "master", "-r", REALM)
    with subprocess.Popen([server, "-n"], env=realm.environment()) as kdc:
        try:
            wait_until(lambda: not is_free(port), "the Kerberos server listens")
            yield realm
        finally:
            kdc.kill()


def test_gssapi_enters_by_keytab_and_by_ticket(tmp_path, monkeypatch):
    """Where it does not, the message names what is wrong and what to look at."""
    pytest.importorskip("gssapi")
    with running_realm(tmp_path) as realm:
        broker = f"kafka/{HOST}"
        of_broker, alice = realm.keytab(broker), realm.keytab("alice")
        options = f'useKeyTab=true storeKey=true keyTab="{of_broker}" principal="{broker}@{REALM}"'
        properties = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "gssapi.sasl.jaas.config": f"{MODULE} {options};",
        }
        security = BrokerSecurity(
            (BrokerListener("KERBEROS", "SASL_PLAINTEXT", properties=properties),),
            superusers=("User:alice",),
        )
        java_options = (f"-Djava.security.krb5.conf={realm.config}",)
        with EmbeddedBroker(
            tmp_path / "broker", security=security, java_options=java_options
        ) as node:
            address = node.bootstrap_at("KERBEROS")
            monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
            monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
            by_keytab = f'useKeyTab=true keyTab="{alice}" principal='
            assert "__consumer_offsets" in topics(address, by_keytab + f'"alice@{REALM}"')
            for principal, keytab, said in (
                ("mallory", alice, "holds no key of mallory"),
                ("alice", tmp_path / "nothing", "cannot be read: No such file"),
            ):
                jaas = f'useKeyTab=true keyTab="{keytab}" principal="{principal}"'
                assert said in refused(address, jaas)
            assert f"nosuch/{HOST}@{REALM} not found" in refused(
                address, by_keytab + '"alice"', service="nosuch"
            )
            tickets = "useTicketCache=true"
            assert "No Kerberos credentials available" in refused(address, tickets)
            realm.get_ticket("alice", tmp_path / "tickets")
            assert "__consumer_offsets" in topics(address, tickets)
            realm.get_ticket("alice", tmp_path / "tickets", "1s")
            wait_until(lambda: has_expired(address, tickets), "the ticket has expired")
            assert "Ticket expired" in refused(address, tickets)
            text = realm.config.read_text()
            with socket.create_server((HOST, 0)) as silent:
                kdc = f"kdc = {HOST}:{silent.getsockname()[1]}"
                realm.config.write_text(re.sub(r"kdc = .*", kdc, text))
                with pytest.raises(ClusterUnreachable, match="Kerberos server has not answered"):
                    topics(address, by_keytab + '"alice"')
            realm.config.write_text(re.sub(r"kdc = .*", f"kdc = {HOST}:{free_port()}", text))
            with pytest.raises(ClusterUnreachable, match="no Kerberos server answers") as caught:
                topics(address, by_keytab + '"alice"')
            assert not isinstance(caught.value, ClusterRefused)


def topics(address: str, options: str, service: str = "kafka") -> list[str]:
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": service,
        "sasl.jaas.config": f"{MODULE} {options};",
        "socket.connection.setup.timeout.ms": "3000",
    }
    lines = [f"A.admin.{name} = {text}" for name, text in settings.items()]
    with KafkaCluster(two_clusters(*lines).flows[0].source) as cluster:
        return sorted(cluster.topics())


def has_expired(address: str, options: str) -> bool:
    """Whether the client sees that its ticket has expired. (Kerberos counts whole seconds, and the
    last one is still valid, at the broker maybe longer than here.)"""
    try:
        topics(address, options)
    except ClusterRefused as error:
        return "Ticket expired" in str(error)
    return False


def refused(address: str, options: str, service: str = "kafka") -> str:
    """What a client with this login is told, which tells what to look at, too."""
    with pytest.raises(ClusterRefused) as caught:
        topics(address, options, service)
    said = str(caught.value)
    assert "keyTab and principal" in said
    return said
