"""A broker with every door that clients know, and who may do what behind them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from tests.embedded_cluster import LONG_SESSION
from tests.token_endpoint import TokenEndpoint
from tests.waiting import wait_until
from tsoffset.lab.embedded import Access, BrokerListener, BrokerSecurity, EmbeddedBroker
from tsoffset.lab.embedded.certificates import LOCAL_HOSTS, Authority

PASSWORDS = {
    "alice": '"al ice\\s = secret"',
    "bob": "bobs-secret",
    "carol": "carols-secret",
    "dora": 'dor a"s \\ secret = 4',
}
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True)
class Secured:
    """A broker with the listeners TLS (a client's certificate is welcome), MTLS (it is needed),
    SASL and SASL_TLS (all of `MECHANISMS`), SCRAM (no other), EXPIRED and ELSEWHERE (TLS, with a
    certificate that has expired, or is for another host).

    `authority` signed its certificates and judges those of clients; `trust_store` holds it.
    `tokens` issues tokens to the users of `PASSWORDS`, by the same names and secrets.
    `folder` is for stores of the tests' own.
    """

    broker: EmbeddedBroker
    authority: Authority
    trust_store: Path
    tokens: TokenEndpoint
    folder: Path

    def by_tls(self, listener: str = "TLS") -> Access:
        """How a client without a certificate enters a listener of TLS."""
        address = self.broker.bootstrap_at(listener)
        return Access(address, "SSL", self.trust_store)

    def by_password(self, user: str, mechanism: str, *, tls: bool = True) -> Access:
        listener, protocol = ("SASL_TLS", "SASL_SSL") if tls else ("SASL", "SASL_PLAINTEXT")
        return Access(
            self.broker.bootstrap_at(listener),
            protocol,
            trust_store=self.trust_store if tls else None,
            mechanism=mechanism,
            user=user,
            password=PASSWORDS[user],
        )

    def grant(self, user: str, resource: str, name: str, *operations: str) -> None:
        """Allow `user` (`CN=...` by certificate) the operations on a resource: topic, group,
        transactional_id, or cluster, whose name is kafka-cluster.

        A name that ends in `*` stands for all that begin so. Returns once the broker knows.
        """
        rules = [_rule(user, resource, name, operation) for operation in operations]
        with self._admin() as admin:
            failed = admin.create_acls(rules)["failed"]
            assert not failed, failed
            _wait_for(admin, rules, there=True)

    def revoke(self, user: str, resource: str, name: str, *operations: str) -> None:
        """Take back what `grant` gave. Returns once the broker knows."""
        rules = [_rule(user, resource, name, operation) for operation in operations]
        with self._admin() as admin:
            for _, matching, error in admin.delete_acls(rules):
                assert matching, error
            _wait_for(admin, rules, there=False)

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        with closing(KafkaAdminClient(**self.broker.admin.settings())) as admin:
            yield admin


@contextmanager
def secured_broker(
    folder: Path, name: str = "secured", *, sasl_properties: Mapping[str, str] | None = None
) -> Iterator[Secured]:
    """Start one; its users have no right until they are granted some.

    `sasl_properties` are settings of its listeners with SASL, such as
    connections.max.reauth.ms.
    """
    authority = Authority()
    trust_store = authority.write_pem(folder / "authority.pem")
    good = authority.issue("broker", LOCAL_HOSTS).write_pem(folder / "broker.pem")
    old = authority.issue("broker", LOCAL_HOSTS, valid_for=-timedelta(days=1))
    other = authority.issue("broker", ["kafka.example.org"])
    with TokenEndpoint(PASSWORDS) as tokens:
        of_tokens = {
            "oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
            "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": tokens.jwks_url,
            "oauthbearer.sasl.oauthbearer.expected.issuer": tokens.issuer,
            "oauthbearer.sasl.oauthbearer.expected.audience": tokens.audience,
        }
        sasl = {"mechanisms": MECHANISMS, "properties": of_tokens | dict(sasl_properties or {})}
        listeners = (
            BrokerListener("TLS", "SSL", good, client_auth="requested"),
            BrokerListener("MTLS", "SSL", good, client_auth="required"),
            BrokerListener("SASL", "SASL_PLAINTEXT", **sasl),
            BrokerListener("SASL_TLS", "SASL_SSL", good, **sasl),
            BrokerListener("SCRAM", "SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",)),
            BrokerListener("EXPIRED", "SSL", old.write_pem(folder / "expired.pem")),
            BrokerListener("ELSEWHERE", "SSL", other.write_pem(folder / "elsewhere.pem")),
        )
        security = BrokerSecurity(listeners, trust_store=trust_store, passwords=PASSWORDS)
        # Kafka fetches tokens' keys only from addresses that Java's options name.
        options = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.jwks_url}",)
        with EmbeddedBroker(
            folder / name,
            name=name,
            security=security,
            properties=LONG_SESSION,
            java_options=options,
        ) as broker:
            yield Secured(broker, authority, trust_store, tokens, folder)


def _rule(user: str, resource: str, name: str, operation: str) -> ACL:
    prefixed = name.endswith("*") and name != "*"
    pattern = ResourcePattern(
        ResourceType[resource.upper()],
        name.removesuffix("*") if prefixed else name,
        ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL,
    )
    return ACL(
        principal=f"User:{user}",
        host="*",
        operation=ACLOperation[operation.upper()],
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=pattern,
    )


def _wait_for(admin: KafkaAdminClient, rules: Iterable[ACL], *, there: bool) -> None:
    for rule in rules:
        wait_until(
            lambda rule=rule: bool(admin.describe_acls(rule)[0]) is there,
            f"the broker knows of {rule}",
        )
