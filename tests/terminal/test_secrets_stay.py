"""Canaries: each secret, and what records hold, is in nothing that a run writes, serves or starts.

Real commands on a secured broker, with Spark's event log and UI on and every log level, and once
with each stage failing. Everything that they leave is searched for the canaries, as text and as
what text becomes on the way (JSON, base64, URL-encoded).
"""

import base64
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.invoking import start
from tests.java_stores import write_jks
from tests.processes import descendants
from tests.producing import Contents, Written, numbered
from tests.secured import PASSWORDS, Secured
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.lab.embedded.ports import free_port

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.thorough]

TOPIC = "doras-canaries"
GROUP = "doras-readers"
KAFKA = "org.apache.kafka.common.security"
STORE, KEY = "c4n4ry-store-7f", "c4n4ry-key-a1"
WRONG = "c4n4ry-wrong-99"
TOKEN = "c4n4ry-of-the-listeners"
# Of a store that Spark reaches by itself.
SPARK = "c4n4ry-of-a-spark-key"
RECORD_KEY, RECORD_VALUE = "c4n4ry-record-key", "c4n4ry-record-value"


@dataclass
class CommandTraces:
    """What commands leave: files under a folder, and what was seen of their processes."""

    secured: Secured
    folder: Path
    seen: list[bytes] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A configuration with a secret of each kind, each from another kind of place."""
        secured, folder = self.secured, self.folder
        (folder / "private").mkdir(exist_ok=True)
        (folder / "private" / "secrets.properties").write_text(
            "password = " + PASSWORDS["dora"].replace("\\", "\\\\") + "\n"
        )
        store = secured.authority.issue("dora").write_pkcs12(folder / "private" / "k.p12", STORE)
        jks = write_jks(store, folder / "private" / "k.jks", STORE, KEY)
        sasl, plain = secured.by_password("dora", "PLAIN"), f"{KAFKA}.plain.PlainLoginModule"
        # A password between quotation marks has its own and backslashes escaped, by its file.
        escaped = PASSWORDS["dora"].replace("\\", "\\\\").replace('"', '\\"')
        (folder / "private" / "escaped").write_text(escaped)
        trust = [
            f"{alias}.ssl.truststore.{name}"
            for alias in "AB"
            for name in ("type = PEM", f"location = {secured.trust_store}")
        ]
        return [
            f"A.bootstrap.servers = {sasl.bootstrap}",
            f"B.bootstrap.servers = {sasl.bootstrap}",
            *trust,
            "A.security.protocol = SASL_SSL",
            "A.sasl.mechanism = PLAIN",
            f'A.sasl.jaas.config = {plain} required username="dora"'
            f' password="${{dir:{folder / "private"}:escaped}}";',
            f"A.ssl.keystore.location = {jks}",
            f"A.ssl.keystore.password = {STORE}",
            f"A.ssl.key.password = {KEY}",
            "B.security.protocol = SASL_SSL",
            "B.sasl.mechanism = OAUTHBEARER",
            f"B.sasl.oauthbearer.token.endpoint.url = {secured.tokens.token_url}",
            "B.sasl.oauthbearer.client.credentials.client.id = dora",
            "B.sasl.oauthbearer.client.credentials.client.secret = ${env:TSOFFSET_CANARY}",
            f"B.sasl.jaas.config = {KAFKA}.oauthbearer.OAuthBearerLoginModule required;",
        ]

    def file(self, name: str, *more: str) -> Path:
        """A configuration of the flow with these lines instead of those of the same keys."""
        ours = {line.partition(" ")[0]: line for line in (*self.lines(), *more)}
        spark = self.folder / "spark"
        (spark / "events").mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.properties"
        path.write_text(
            "\n".join(
                [
                    *("clusters = A, B", "A->B.enabled = true", "A->B.groups = doras.*"),
                    *("A->B.topics = doras-canaries", "admin.timeout.ms = 40000"),
                    *ours.values(),
                    "spark.master = local[2]",
                    f"spark.hadoop.fs.s3a.secret.key = {SPARK}",
                    "spark.eventLog.enabled = true",
                    "spark.eventLog.compress = false",
                    f"spark.eventLog.dir = file:{spark / 'events'}",
                    f"spark.local.dir = {spark / 'local'}",
                ]
            )
        )
        return path

    def command(self, name: str, file: Path, *words: str, status: int = 0) -> str:
        """Run a command to its end and keep what it says; `status` is what it must end with."""
        environment = {"TSOFFSET_CANARY": PASSWORDS["dora"], "TMPDIR": str(self.folder)}
        with start(*words, "-c", str(file), env=environment) as process:
            while process.poll() is None:
                self.look_at_processes(process.pid)
                try:
                    said = process.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    continue
                break
            else:
                said = process.communicate()
        (self.folder / f"{name}.out").write_text(said[0])
        (self.folder / f"{name}.err").write_text(said[1])
        assert process.returncode == status, said[0][-2_000:] + said[1][-4_000:]
        return said[0] + said[1]

    def look_at_processes(self, parent: int) -> None:
        """Keep the command lines of a process and all that it has started."""
        for pid in {parent, *descendants(parent)}:
            try:
                self.seen.append(Path(f"/proc/{pid}/cmdline").read_bytes())
            except OSError:
                continue

    def found(self, canaries: Iterable[str]) -> list[str]:
        forms = {form: canary for canary in canaries for form in forms_of(canary)}
        places = [(f"a process, {number}", seen) for number, seen in enumerate(self.seen)]
        for path in self.folder.rglob("*"):
            # What the user has put there himself is his.
            if path.is_file() and "private" not in path.parts and path.suffix != ".properties":
                places.append((str(path), path.read_bytes()))
        return [
            f"{canary} in {where}"
            for where, content in places
            for form, canary in forms.items()
            if form in content
        ]


def forms_of(canary: str) -> Iterator[bytes]:
    yield canary.encode()
    yield json.dumps(canary)[1:-1].encode()
    yield quote(canary).encode()
    # Wherever it begins in what is encoded, the middle of it looks like one of these.
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + canary.encode())
        yield encoded[4:-4]


@pytest.fixture(scope="session")
def run(secured, tmp_path_factory) -> Iterator[CommandTraces]:
    """A topic and its copy on one broker, a group on it, and rights for all that tsoffset does."""
    admin = Contents(secured.broker.admin)
    records = [
        Written(written.timestamp_ms, RECORD_VALUE.encode() + b"%d" % number, RECORD_KEY.encode())
        for number, written in enumerate(numbered(60))
    ]
    for topic, first in ((TOPIC, 0), (f"A.{TOPIC}", 7)):
        admin.create_topic(topic, 1)
        admin.produce(topic, records[first:])
        for operation in ("read", "describe"):
            secured.grant("dora", "topic", topic, operation)
    for operation in ("read", "describe"):
        secured.grant("dora", "group", "doras*", operation)
    admin.commit_offsets(GROUP, {(TOPIC, 0): (40, "note")})
    try:
        yield CommandTraces(secured, tmp_path_factory.mktemp("canaries"))
    finally:
        admin.close()


def canaries(secured: Secured) -> list[str]:
    issued = [token.rpartition(".")[2] for token in secured.tokens.issued]
    return [PASSWORDS["dora"], STORE, KEY, WRONG, SPARK, RECORD_KEY, RECORD_VALUE, *issued]


def test_a_search_finds_what_is_there(run):
    """In each form; a search that finds nothing proves nothing."""
    folder = run.folder / "planted"
    folder.mkdir()
    secret = PASSWORDS["dora"]
    planted = {
        "text": f"x{secret}y",
        "json": json.dumps({"a": secret}),
        "url": f"a?b={quote(secret)}",
        "sasl": base64.b64encode(f"\0dora\0{secret}".encode()).decode(),
    }
    for name, text in planted.items():
        (folder / name).write_text(text)
        assert run.found([secret]), name
        (folder / name).unlink()
    assert not run.found([secret])


def test_commands_that_go_well_tell_no_secret(run):
    """Tables and rows, both forms of logs at their most talkative, state, explanations, Spark's
    event log; and the command lines of all processes."""
    file = run.file("well")
    everything = ("--log-level", "debug")
    run.command("check", file, "check", *everything)
    state = ("--state", str(run.folder / "state"))
    said = run.command(
        "sync", file, "sync", "--format", "json", "--log-format", "json", *state, *everything
    )
    assert '"committed"' in said
    run.command("again", file, "sync", *state, *everything)
    run.command("explain", file, "explain", "--group", GROUP, "--format", "json", *everything)
    # Without a right to the checkpoints topic, the checkpoints are not known.
    run.command("compare", file, "compare", *everything, status=1)
    assert any((run.folder / "spark" / "events").iterdir())
    assert len(run.seen) > 20
    assert run.found(canaries(run.secured)) == []


def test_stages_that_fail_tell_no_secret(run):
    """Each with what a user may get wrong in it, and each right that may be missing."""
    secured = run.secured
    plain = f"{KAFKA}.plain.PlainLoginModule required"
    wrong = f'{plain} username="dora" password="{WRONG}";'
    oauth = "B.sasl.oauthbearer.client.credentials.client.secret"
    cases = (
        ("quote", 2, f'A.sasl.jaas.config = {plain} username="dora" password="{WRONG};'),
        ("option", 2, f'A.sasl.jaas.config = {wrong[:-1]} {WRONG}="x";'),
        ("number", 2, "A.request.timeout.ms = ${env:TSOFFSET_CANARY}"),
        ("endpoint", 2, f"B.sasl.oauthbearer.token.endpoint.url = {WRONG}"),
        ("password", 3, f"A.sasl.jaas.config = {wrong}"),
        ("store", 3, f"A.ssl.keystore.password = {WRONG}"),
        ("key", 3, f"A.ssl.key.password = {WRONG}"),
        ("secret", 3, f"{oauth} = {WRONG}"),
    )
    for number, (name, status, line) in enumerate(cases):
        words = ("--log-format", ("console", "json")[number % 2], "--log-level", "debug")
        run.command(name, run.file(name, line), "plan", "--format", "json", *words, status=status)
    file = run.file("rights")
    for kind, resource, operations in (
        ("topic", TOPIC, ("read",)),
        ("topic", f"A.{TOPIC}", ("read", "describe")),
        ("group", "doras*", ("read",)),
    ):
        if kind == "group":
            # So that there is something to commit.
            with closing(Contents(secured.broker.admin)) as admin:
                admin.commit_offsets(GROUP, {(TOPIC, 0): (45, "note")})
        secured.revoke("dora", kind, resource, *operations)
        try:
            name = f"without-{kind}-{resource}-{len(operations)}".replace("*", "")
            with start(
                *("sync", "-c", str(file), "--log-level", "debug", "--format", "json"),
                env={"TSOFFSET_CANARY": PASSWORDS["dora"]},
            ) as process:
                said = process.communicate()
            (run.folder / f"{name}.out").write_text("".join(said))
            assert process.returncode == 1, "".join(said)[-3_000:]
            assert "AUTHORIZATION" in said[0]
        finally:
            secured.grant("dora", kind, resource, *operations)
    assert run.found(canaries(secured)) == []


def test_a_daemon_and_its_sparks_page_tell_no_secret(run):
    """What Spark's UI serves while it runs, its environment tab for one; and what we serve."""
    port, own = free_port(), f"http://127.0.0.1:{free_port()}"
    lines = ("spark.ui.enabled = true", f"spark.ui.port = {port}", f"listeners = {own}")
    file = run.file("daemon", *lines, f"listeners.token = {TOKEN}")
    err = run.folder / "daemon.err"
    with (
        err.open("w") as errors,
        start(
            *("run", "-c", str(file), "--log-format", "json", "--log-level", "debug"),
            stderr=errors.fileno(),
            env={"TSOFFSET_CANARY": PASSWORDS["dora"]},
        ) as process,
    ):
        wait_until(lambda: "cycle_finished" in err.read_text(), "a cycle")
        run.look_at_processes(process.pid)
        base = f"http://127.0.0.1:{port}"
        (application,) = json.loads(page(f"{base}/api/v1/applications"))
        api = f"{base}/api/v1/applications/{application['id']}"
        for number, address in enumerate(
            [f"{base}/environment/", f"{base}/jobs/", f"{base}/stages/", f"{base}/executors/"]
            + [f"{api}/{what}" for what in ("environment", "jobs", "stages", "executors")]
            + [f"{own}/{what}" for what in ("openapi.json", "metrics", "api/v1/flows")]
            + [
                f"{own}/api/v1/flows/A-%3EB{what}"
                for what in ("", "/groups", "/topics", "/history")
            ]
        ):
            served = page(address)
            assert len(served) > 100
            (run.folder / f"page-{number}").write_bytes(served)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
    assert run.found([*canaries(run.secured), TOKEN]) == []


def page(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read()
        return content
