"""Whom we trust where we open HTTPS and no setting says so: the system's authorities."""

import json
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.invoking import succeeds
from tests.testing.test_embedded import JARS, PINS
from tsoffset.lab.embedded.certificates import Authority
from tsoffset.lab.embedded.jars import REPOSITORY_VARIABLE

pytestmark = pytest.mark.slow

CLIENTS = """
import json, sys
from pathlib import Path
from tsoffset.flow.security import Tls, TokenEndpoint, TokenLogin
from tsoffset.kafka.security import tokens
from tsoffset.server import remotes
from tsoffset import stores
from tsoffset.lab.embedded import jars

address, pins, folder = sys.argv[1:]
endpoint = TokenEndpoint(f"https://{address}/token", "us", "c4n4ry", None, False, Tls(), 9000, 9000)
store = f"s3://key:secret@bucket/state?endpoint_override={address}&scheme=https&region=x"
jars._RETRIES = 0
calls = {
    "jars": lambda: jars.fetch_jars(Path(folder), pins),
    "tokens": lambda: tokens.fetch(TokenLogin(endpoint)),
    "instances": lambda: remotes.flows_of(f"https://{address}", None),
    "stores": lambda: stores.place_of(store).open("cycle"),
}
said = {}
for name, call in calls.items():
    try:
        said[name] = str(call())
    except Exception as error:
        said[name] = str(error)
print(json.dumps(said))
"""
# The server has jars and nothing else; that it answers is what counts.
ANSWERED = {
    "jars": "None",
    "tokens": "answers 501",
    "instances": "answers with status 404",
    "stores": "Path does not exist",
}
REFUSED = {
    "jars": "CERTIFICATE_VERIFY_FAILED",
    "tokens": "certificate is not accepted",
    "instances": "certificate is not trusted",
    "stores": "SSL",
}
# What OpenSSL of this machine takes by itself.
SYSTEM = ssl.get_default_verify_paths().openssl_cafile


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def authority() -> Authority:
    return Authority("a company's own")


@pytest.fixture
def address(tmp_path, authority) -> Iterator[str]:
    """Host and port of a Maven repository whose certificate that authority signed."""
    for path, jar in JARS.items():
        (tmp_path / "served" / path).parent.mkdir(parents=True)
        (tmp_path / "served" / path).write_bytes(jar)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = authority.issue("repository", ["127.0.0.1"]).write_pem(tmp_path / "own.pem")
    tls.load_cert_chain(own)
    handler = partial(Quiet, directory=tmp_path / "served")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def clients_say(
    address: str, folder: Path, *, through: tuple[str, ...] = (), **environment: str
) -> dict[str, str]:
    """What each client says of the server, in an environment that says nothing else."""
    said = succeeds(
        *(*through, sys.executable, "-c", CLIENTS, address, PINS, folder / "jars"),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            REPOSITORY_VARIABLE: f"https://{address}",
            **environment,
        },
    )
    found: dict[str, str] = json.loads(said)
    return found


def test_who_is_no_authority_of_the_system_is_not_trusted(address, tmp_path):
    found = clients_say(address, tmp_path)
    assert {name: REFUSED[name] in said for name, said in found.items()} == dict.fromkeys(
        REFUSED, True
    ), found


def test_ssl_cert_file_names_the_authorities(address, authority, tmp_path):
    store = authority.write_pem(tmp_path / "authorities.pem")
    found = clients_say(address, tmp_path, SSL_CERT_FILE=str(store))
    assert {name: ANSWERED[name] in said for name, said in found.items()} == dict.fromkeys(
        ANSWERED, True
    ), found


def mounts() -> tuple[str, ...]:
    """The command after which a process may mount what it alone sees; empty where none may."""
    for way in (("unshare", "--mount"), ("unshare", "--mount", "--map-root-user")):
        if shutil.which("unshare") and not subprocess.run([*way, "true"], check=False).returncode:
            return way
    return ()


@pytest.mark.skipif(
    not (mounts() and Path(SYSTEM).is_file()), reason="needs Linux, and a bundle of authorities"
)
def test_the_systems_authorities_are_trusted(address, authority, tmp_path):
    """One that stands in the system's store alone, as on machines behind TLS inspection: all
    fetch, without a variable."""
    store = authority.write_pem(tmp_path / "authorities.pem")
    mounting = f'mount --bind {shlex.quote(str(store))} {Path(SYSTEM).resolve()}; exec "$@"'
    found = clients_say(address, tmp_path, through=(*mounts(), "bash", "-ec", mounting, "bash"))
    assert {name: ANSWERED[name] in said for name, said in found.items()} == dict.fromkeys(
        ANSWERED, True
    ), found
