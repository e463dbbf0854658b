"""Two brokers, their security, MirrorMaker 2, and the file that MirrorMaker 2 and tsoffset read."""

import secrets
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from kafka import KafkaAdminClient

from tsoffset.lab.demo.topics import TOPICS
from tsoffset.lab.embedded import (
    Access,
    BrokerListener,
    BrokerSecurity,
    EmbeddedBroker,
    MirrorMaker,
    flow_properties,
)
from tsoffset.lab.embedded.certificates import LOCAL_HOSTS, Authority
from tsoffset.lab.embedded.server import write_private

SOURCE = "primary"
TARGET = "backup"
FLOW = f"{SOURCE}->{TARGET}"
BACK = f"{TARGET}->{SOURCE}"

# All data is deleted at the end, so a slow shutdown is not worth it.
_GRACE_SECONDS = 5.0
_DELETION_SECONDS = 30.0
# The settings that the demo shows.
_TELLING = (
    "clusters",
    f"{SOURCE}.bootstrap.servers",
    f"{TARGET}.bootstrap.servers",
    f"{FLOW}.enabled",
    f"{FLOW}.topics",
    f"{FLOW}.groups",
    f"{FLOW}.source.consumer.isolation.level",
    "emit.offset-syncs.enabled",
    "emit.checkpoints.enabled",
)

# For --secure.
USER = "demo"
MECHANISM = "SCRAM-SHA-512"
_CLIENTS = BrokerListener("CLIENTS", "SASL_SSL", mechanisms=(MECHANISM,))

_FOR_RUN = "\n# For `tsoffset run`; MirrorMaker 2 ignores it.\n"


def remote(topic: str) -> str:
    """The name that DefaultReplicationPolicy gives a topic of the source on the target."""
    return f"{SOURCE}.{topic}"


class Clusters:
    """The processes in the demo's folder; `processes` in the order in which to stop them."""

    def __init__(self, folder: Path, *, secure: bool = False) -> None:
        """Starts nothing. With `secure` clients need TLS and a password."""
        self.folder = folder
        self.locks = Locks(folder, (SOURCE, TARGET)) if secure else None
        self.source, self.target = (
            EmbeddedBroker(
                folder / name,
                name=name,
                security=None if self.locks is None else self.locks.of(name),
            )
            for name in (SOURCE, TARGET)
        )
        self.configuration = folder / "mm2.properties"
        self.mirror = MirrorMaker(self.configuration, folder / "mirror-maker", name="mirror-maker")
        self.processes = (self.mirror, self.target, self.source)

    @property
    def at_source(self) -> Access:
        return self._access(self.source)

    @property
    def at_target(self) -> Access:
        return self._access(self.target)

    def start_brokers(self, pool: Executor) -> None:
        """Start both at the same time. Raises EmbeddedError."""
        list(pool.map(EmbeddedBroker.start, (self.source, self.target)))

    def write_configuration(
        self, settings: Mapping[str, str], *, shared: bool
    ) -> Mapping[str, str]:
        """Write the file with these settings over the demo's own, and return the lines to show.

        A `shared` file has settings for tsoffset, too. The rest makes MirrorMaker 2 start and check
        quickly, with one replica of its own topics.
        """
        brokers = self.source, self.target
        security = {} if self.locks is None else self.locks.configuration(*brokers)
        wanted = flow_properties(
            self.at_source.bootstrap,
            self.at_target.bootstrap,
            source=SOURCE,
            target=TARGET,
            topics=", ".join(topic.name for topic in TOPICS),
            overrides={
                f"{FLOW}.groups": ".*",
                f"{FLOW}.source.consumer.isolation.level": "read_committed",
                **security,
                **settings,
            },
        )
        names = dict.fromkeys((*_TELLING, *security, *settings))
        telling = {name: wanted.pop(name) for name in names}
        ours = {
            "sync.group.offsets.interval.seconds": "5",
            "state.dir": str(self.folder / "state"),
            "history.dir": str(self.folder / "history"),
            "listeners": "http://127.0.0.1:8083",
        }
        write_private(
            self.configuration,
            f"# Read by MirrorMaker 2{' and by tsoffset' if shared else ''}.\n"
            + _lines(telling)
            + (_FOR_RUN + _lines(ours) if shared else "")
            + "\n# For quick starts and single copies on one machine.\n"
            + _lines(wanted),
        )
        return telling

    def restart_mirror(self, between: Callable[[], None] | None = None) -> None:
        """Stop MirrorMaker 2, call `between`, and start it again with the changed file. Raises
        EmbeddedError."""
        self.stop_mirror()
        if between is not None:
            between()
        self.mirror.start()

    def delete_topic(self, cluster: str, topic: str) -> None:
        """Delete a topic and wait until it is gone. Raises EmbeddedError."""
        broker = self.source if cluster == SOURCE else self.target
        with closing(KafkaAdminClient(**self._access(broker).settings())) as admin:
            admin.delete_topics([topic])

            def missing() -> str | None:
                return f"{topic} is there" if topic in admin.list_topics() else None

            broker.wait_until(missing, seconds=_DELETION_SECONDS, doing=f"delete {topic}")

    def write_failback_configuration(self) -> tuple[Path, Mapping[str, str]]:
        """Write a file for tsoffset alone, for the way back; returns it with its content.

        MirrorMaker 2 does not read it, so no records flow back.
        """
        brokers = self.source, self.target
        wanted = {
            "clusters": f"{SOURCE}, {TARGET}",
            f"{SOURCE}.bootstrap.servers": self.at_source.bootstrap,
            f"{TARGET}.bootstrap.servers": self.at_target.bootstrap,
            f"{BACK}.enabled": "true",
            f"{BACK}.topics": remote(".*").replace(".", r"\.", 1),
            "state.dir": str(self.folder / "state"),
        }
        if self.locks is not None:
            wanted |= self.locks.configuration(*brokers)
        path = self.folder / "failback.properties"
        return write_private(path, _lines(wanted)), wanted

    def wait_until_mirrored(self) -> None:
        """Wait until everything on the source is on the target. Raises EmbeddedError."""
        self.mirror.wait_until_mirrored(
            self.at_source,
            self.at_target,
            {topic.name: remote(topic.name) for topic in TOPICS},
            source_isolation="read_committed",
        )

    def write_client_properties(self) -> Mapping[str, Path]:
        """Write the settings with which Kafka's own tools connect to a secured cluster; returns the
        files by cluster name."""
        if self.locks is None:
            return {}
        return {
            broker.name: write_private(
                self.folder / f"{broker.name}-client.properties",
                _lines(self.locks.access(broker).properties()),
            )
            for broker in (self.source, self.target)
        }

    def stop(self) -> None:
        with ExitStack() as stack:
            for each in reversed(self.processes):
                stack.callback(each.stop, _GRACE_SECONDS)

    def stop_mirror(self) -> None:
        self.mirror.stop(_GRACE_SECONDS)

    def _access(self, broker: EmbeddedBroker) -> Access:
        return broker.admin if self.locks is None else self.locks.access(broker)


def change_settings(path: Path, changed: Mapping[str, str], without: Collection[str] = ()) -> None:
    """Change settings of a file, and remove some, as an operator would."""
    kept = [
        line
        for line in path.read_text().splitlines(keepends=True)
        if line.partition(" = ")[0] not in {*changed, *without}
    ]
    write_private(path, "".join(kept) + _lines(changed))


def _lines(properties: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in properties.items())


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
