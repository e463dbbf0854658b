"""`tsoffset sync` as a user runs it, over each mechanism, beside flows that are refused."""

import json
from collections.abc import Iterator

import pytest

from tests.invoking import start
from tests.producing import Contents, numbered
from tests.secured import PASSWORDS, Secured
from tsoffset.lab.embedded.certificates import Authority
from tsoffset.lab.embedded.security import Access, jaas

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TOPIC = "carols-doors"
GROUP = "carols-keepers"
NOT_COPIED = 7
COMMITTED = 25
MECHANISMS = {
    "plain": "PLAIN",
    "scram256": "SCRAM-SHA-256",
    "scram512": "SCRAM-SHA-512",
    "token": "OAUTHBEARER",
    "certificate": None,
}
# What stands in the row of a flow whose source is not entered, and nothing of what it was given.
REFUSED = {
    "wrongpassword": "does not accept the credentials",
    "wrongsecret": "it answers 401 (invalid_client)",
    "expired": "certificate has expired",
    "elsewhere": "IP address mismatch",
    "unknown": "self-signed certificate",
    "nocertificate": "the client certificate is not accepted",
    "unreadable": "No such file or directory",
}


def lines(alias: str, access: Access, **more: str) -> Iterator[str]:
    """The settings of one cluster; those without a value are left out."""
    named = {name.replace("_", "."): text for name, text in more.items()}
    for name, text in {**access.properties(), **named}.items():
        escaped = text.replace("\\", "\\\\")
        if escaped:
            yield f"{alias}.{name} = {escaped}"


def by_token(secured: Secured, secret: str) -> dict[str, str]:
    return {
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_jaas_config": jaas("OAUTHBEARER", {"clientId": "carol", "clientSecret": secret}),
        "sasl_oauthbearer_token_endpoint_url": secured.tokens.token_url,
    }


@pytest.fixture
def filled(secured) -> Iterator[Contents]:
    """A topic, its copy for each source, and a group; carol may do what tsoffset does."""
    contents = Contents(secured.broker.admin)
    records = numbered(40)
    copies = dict.fromkeys((f"{alias}.{TOPIC}" for alias in MECHANISMS), NOT_COPIED)
    for topic, first in {TOPIC: 0, **copies}.items():
        contents.create_topic(topic)
        contents.produce(topic, records[first:])
        for carol in ("carol", "CN=carol"):
            secured.grant(carol, "topic", topic, "read", "describe")
    for carol in ("carol", "CN=carol"):
        secured.grant(carol, "group", "carols*", "read", "describe")
    contents.commit_offsets(GROUP, {(TOPIC, 0): (COMMITTED, "")})
    yield contents
    contents.close()


@pytest.mark.thorough
def test_each_mechanism_syncs_and_those_that_are_refused_say_why(secured, filled, tmp_path):
    """One command, a flow for each: all that may enter are committed exactly, workers included,
    the others fail by name, and the exit status tells that a cluster could not be entered."""
    own = secured.authority.issue("carol").write_pem(tmp_path / "carol.pem")
    another = Authority().write_pem(tmp_path / "another.pem")
    password = secured.by_password("carol", "PLAIN")
    wrong = Access(
        password.bootstrap, "SASL_SSL", password.trust_store, None, "PLAIN", "carol", "c4n4ry"
    )
    mtls = secured.by_tls("MTLS", own)
    written = [
        *lines("plain", secured.by_password("carol", "PLAIN", tls=False)),
        *lines("scram256", secured.by_password("carol", "SCRAM-SHA-256")),
        *lines("scram512", secured.by_password("carol", "SCRAM-SHA-512")),
        *lines("token", password, **by_token(secured, PASSWORDS["carol"])),
        *lines("certificate", mtls),
        *lines("wrongpassword", wrong),
        *lines("wrongsecret", password, **by_token(secured, "c4n4ry")),
        *lines("expired", secured.by_tls("EXPIRED")),
        *lines("elsewhere", secured.by_tls("ELSEWHERE")),
        *lines("unknown", Access(mtls.bootstrap, "SSL", another)),
        *lines("nocertificate", secured.by_tls("MTLS")),
        *lines("unreadable", mtls, ssl_keystore_location="/nowhere"),
        *lines("target", password),
    ]
    sources = [*MECHANISMS, *REFUSED]
    file = tmp_path / "mm2.properties"
    file.write_text(
        "\n".join(
            [
                f"clusters = {', '.join(sources)}, target",
                *(f"{alias}->target.enabled = true" for alias in sources),
                f"topics = {TOPIC}",
                f"groups = {GROUP}",
                "admin.timeout.ms = 10000",
                *written,
            ]
        )
    )
    with start("sync", "-c", str(file), "--format", "json") as process:
        out, err = process.communicate()
    assert process.returncode == 3, err[-3_000:]
    rows = {row["flow"].partition("->")[0]: row for row in map(json.loads, out.splitlines())}
    assert rows.keys() == {*sources}
    for alias in MECHANISMS:
        row = rows[alias]
        assert (row["outcome"], row["precision"]) == ("committed", "exact"), row
        assert row["target_offset"] == COMMITTED - NOT_COPIED
    for alias, why in REFUSED.items():
        row = rows[alias]
        assert (row["outcome"], row["reason"]) == ("failed", "AUTHENTICATION"), row
        assert why in row["message"]
        assert f"of {alias}" in row["message"]
    assert "c4n4ry" not in out + err
    committed = filled.committed_offsets(GROUP)
    assert {topic: offset for (topic, _), (offset, _) in committed.items()} == {
        TOPIC: COMMITTED,
        **{f"{alias}.{TOPIC}": COMMITTED - NOT_COPIED for alias in MECHANISMS},
    }
