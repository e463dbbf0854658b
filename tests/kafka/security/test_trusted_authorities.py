"""Whom we trust where we open HTTPS and no setting says so: the system's authorities."""

import json
import os
import shlex
import ssl
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.http_server import http_server
from tests.invoking import succeeds
from tests.lab.embedded.test_jars import PINS, Repository, filled
from tests.processes import own_mounts
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
    "stores": lambda: stores.store_at(store).open("cycle"),
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


@pytest.fixture
def authority() -> Authority:
    return Authority("a company's own")


@pytest.fixture
def address(tmp_path, authority) -> Iterator[str]:
    """Host and port of a Maven repository whose certificate that authority signed."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = authority.issue("repository", ["127.0.0.1"]).write_pem(tmp_path / "own.pem")
    tls.load_cert_chain(own)
    handler = partial(Repository, directory=filled(tmp_path / "served"))
    with http_server(handler, tls=tls) as url:
        yield url.removeprefix("https://")


def assert_clients_say(
    words: dict[str, str],
    address: str,
    folder: Path,
    *,
    through: Sequence[str] = (),
    **environment: str,
) -> None:
    """Each client says its words of the server, in an environment that says nothing else."""
    told = succeeds(
        *(*through, sys.executable, "-c", CLIENTS, address, PINS, folder / "jars"),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            REPOSITORY_VARIABLE: f"https://{address}",
            **environment,
        },
    )
    found = json.loads(told)
    assert {name: words[name] in said for name, said in found.items()} == dict.fromkeys(
        words, True
    ), found


def test_who_is_no_authority_of_the_system_is_not_trusted(address, tmp_path):
    assert_clients_say(REFUSED, address, tmp_path)


def test_ssl_cert_file_names_the_authorities(address, authority, tmp_path):
    store = authority.write_pem(tmp_path / "authorities.pem")
    assert_clients_say(ANSWERED, address, tmp_path, SSL_CERT_FILE=str(store))


@pytest.mark.skipif(
    not (own_mounts() and Path(SYSTEM).is_file()), reason="needs Linux, and a bundle of authorities"
)
def test_the_systems_authorities_are_trusted(address, authority, tmp_path):
    """One that stands in the system's store alone, as on machines behind TLS inspection: all
    fetch, without a variable."""
    store = authority.write_pem(tmp_path / "authorities.pem")
    mounting = f'mount --bind {shlex.quote(str(store))} {Path(SYSTEM).resolve()}; exec "$@"'
    through = (*own_mounts(), "bash", "-ec", mounting, "bash")
    assert_clients_say(ANSWERED, address, tmp_path, through=through)
