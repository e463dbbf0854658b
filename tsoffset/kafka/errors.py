"""The meaning of every Kafka error: a failure kind, a sentence, and whether to retry.

Only this module knows the classes of `kafka.errors` one by one. kafka-python's own `retriable` is
not used: it is false for errors that a metadata refresh resolves.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import kafka.errors as kafka_errors

from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.kafka.security.failures import (
    KdcUnreachable,
    KerberosFailed,
    LoginDelayed,
    LoginFailed,
    StoreUnusable,
    TicketRefused,
    TlsFailed,
    TokenRefused,
    TokenUnavailable,
)
from tsoffset.model import Failed, FailureKind


class Remedy(Enum):
    """What may resolve an error within the deadline of a call."""

    NONE = "none"
    AGAIN = "ask again"
    REFRESH = "look the leader or the coordinator up again, then ask"


@dataclass(frozen=True, slots=True)
class Rule:
    """The meaning of one class of errors.

    `next_step` may contain `{alias}`. With `detail`, the library's own text is added to the cause:
    it says which side of a connection failed, and holds no content of records. `retry_seconds` is
    how long the remedy is tried; without it, until the call's deadline.
    """

    kind: FailureKind
    cause: str
    next_step: str
    remedy: Remedy = Remedy.NONE
    missing: bool = False
    group_active: bool = False
    metadata_too_large: bool = False
    detail: bool = False
    retry_seconds: float = float("inf")

    def with_cause(self, cause: str, next_step: str | None = None, **changed: Any) -> "Rule":
        return replace(self, cause=cause, next_step=next_step or self.next_step, **changed)


# A cluster notices within this time that a broker is gone (broker.session.timeout.ms, 9 s) and
# moves its work to others.
_GONE_RETRY_SECONDS = 15.0
# A transaction that is ending, or a coordinator that has almost loaded, takes no longer; a cycle
# waits for no other.
_PASSING_RETRY_SECONDS = 2.5

_SEE_BROKER = "see the broker logs of {alias}"
_CHECK_CONNECTION = "check {alias}.bootstrap.servers, the listeners' addresses and the network"
_IN_A_MOMENT = "the next cycle tries again; if the error persists, " + _SEE_BROKER

_MEMBERS = Rule(
    FailureKind.COORDINATOR,
    "the group has members on this cluster",
    "stop them, or exclude the group with groups.exclude",
    group_active=True,
)
_UNKNOWN_TOPIC = Rule(
    FailureKind.NO_LEADER,
    "the topic or partition does not exist",
    "mirror it, check the replication policy, or exclude it with a filter",
    Remedy.REFRESH,
    missing=True,
    retry_seconds=_GONE_RETRY_SECONDS,
)
_LEADER_MOVED = Rule(
    FailureKind.NO_LEADER,
    "the partition's leader is moving to another broker",
    _IN_A_MOMENT,
    Remedy.REFRESH,
    retry_seconds=_GONE_RETRY_SECONDS,
)
_COORDINATOR_MOVED = Rule(
    FailureKind.COORDINATOR,
    "the group's coordinator is not ready",
    _IN_A_MOMENT,
    Remedy.REFRESH,
    retry_seconds=_GONE_RETRY_SECONDS,
)
_CONNECTION = Rule(
    FailureKind.UNREACHABLE,
    "no connection to the broker",
    _CHECK_CONNECTION,
    Remedy.REFRESH,
    detail=True,
    retry_seconds=_GONE_RETRY_SECONDS,
)
_TIMEOUT = Rule(
    FailureKind.TIMEOUT,
    "no answer in time",
    "check the broker's load and the network, or raise {alias}.request.timeout.ms and "
    "admin.timeout.ms",
    Remedy.REFRESH,
)
_BUSY = Rule(
    FailureKind.TIMEOUT, "the broker throttles this client", _IN_A_MOMENT, Remedy.AGAIN, detail=True
)
_VERSION = Rule(
    FailureKind.UNSUPPORTED_VERSION,
    "the broker and tsoffset have no common version of this request",
    "upgrade the brokers to 2.8 or later",
    detail=True,
)
_AUTHENTICATION = Rule(
    FailureKind.AUTHENTICATION,
    "the broker does not accept the credentials",
    "check sasl.jaas.config of {alias}, and that the brokers know this user",
    detail=True,
)
_INTERNAL = Rule(
    FailureKind.INTERNAL,
    "unexpected answer",
    "report this with the versions of tsoffset and of the brokers",
    detail=True,
)


def _not_allowed(what: str, grant: str) -> Rule:
    return Rule(FailureKind.AUTHORIZATION, f"not authorized for {what}", f"grant {grant}")


# Errors that the client raises, and error codes of brokers to tsoffset's requests.
_RULES: dict[type[BaseException], Rule] = {
    # Errors that the client raises.
    kafka_errors.KafkaConnectionError: _CONNECTION,
    kafka_errors.NetworkExceptionError: _CONNECTION,
    kafka_errors.UnknownBrokerIdError: _CONNECTION.with_cause("unknown broker"),
    kafka_errors.MetadataEmptyBrokerList: _CONNECTION.with_cause("the metadata lists no broker"),
    kafka_errors.InconsistentClusterIdError: Rule(
        FailureKind.UNREACHABLE,
        "the broker belongs to another cluster",
        "check {alias}.bootstrap.servers and the listeners that the brokers advertise, and which "
        "cluster has these addresses (if the cluster was recreated, restart tsoffset)",
        Remedy.REFRESH,
        detail=True,
        retry_seconds=_GONE_RETRY_SECONDS,
    ),
    kafka_errors.KafkaTimeoutError: _TIMEOUT,
    kafka_errors.CorrelationIdError: _CONNECTION,
    kafka_errors.KafkaProtocolError: Rule(
        FailureKind.INTERNAL,
        "the answer does not follow Kafka's protocol",
        "check that {alias}.bootstrap.servers and the brokers' listeners belong to Kafka",
        detail=True,
    ),
    kafka_errors.InvalidReceiveError: Rule(
        FailureKind.INTERNAL,
        "the answer is larger than the request allows",
        _SEE_BROKER + ", and report this if the answer is right",
        detail=True,
    ),
    kafka_errors.UnsupportedCodecError: Rule(
        FailureKind.UNSUPPORTED_VERSION,
        "the batch has an unsupported compression",
        "configure the producers to use gzip, snappy, lz4 or zstd",
        detail=True,
    ),
    # Connections.
    kafka_errors.SaslAuthenticationFailedError: _AUTHENTICATION,
    TokenRefused: _AUTHENTICATION.with_cause(
        "the broker does not accept the token",
        "compare the token's audience, issuer and scope, and the clocks, with what the brokers of "
        "{alias} expect",
    ),
    TicketRefused: _AUTHENTICATION.with_cause(
        "the broker does not accept the Kerberos ticket",
        "check the keytab of the brokers of {alias}, sasl.kerberos.service.name and the clocks",
    ),
    kafka_errors.UnsupportedSaslMechanismError: _AUTHENTICATION.with_cause(
        "the broker does not offer this sasl.mechanism",
        "check sasl.mechanism of {alias}, and that of the listener at this address",
    ),
    kafka_errors.IllegalSaslStateError: _AUTHENTICATION.with_cause(
        "the broker expects another security.protocol",
        "check security.protocol of {alias}, and that of the listener at this address",
    ),
    LoginFailed: _AUTHENTICATION.with_cause(
        "the login failed", "check the sasl.* settings of {alias}"
    ),
    TokenUnavailable: _CONNECTION.with_cause(
        "the token endpoint returned no token",
        "check sasl.oauthbearer.token.endpoint.url of {alias} and the server there",
    ),
    LoginDelayed: replace(
        _TIMEOUT.with_cause("no login in time", "check that server and the network to it"),
        detail=True,
    ),
    KerberosFailed: _AUTHENTICATION.with_cause(
        "Kerberos returned no ticket",
        "check sasl.kerberos.service.name of {alias}, and keyTab and principal in its "
        "sasl.jaas.config (without a keytab, get a ticket with kinit)",
    ),
    KdcUnreachable: _CONNECTION.with_cause(
        "no Kerberos server answers", "check the realm's KDCs in krb5.conf and the network to them"
    ),
    TlsFailed: _AUTHENTICATION.with_cause(
        "TLS failed", "check the ssl.* settings of {alias}, and the certificates' names and dates"
    ),
    StoreUnusable: _AUTHENTICATION.with_cause(
        "a key store or trust store cannot be used",
        "check ssl.truststore.* and ssl.keystore.* of {alias}",
    ),
    kafka_errors.UnsupportedVersionError: _VERSION,
    kafka_errors.RequestTimedOutError: _TIMEOUT,
    kafka_errors.BrokerNotAvailableError: replace(_CONNECTION, detail=False),
    kafka_errors.ListenerNotFoundError: _CONNECTION.with_cause(
        "the leader has no listener of this name", detail=False
    ),
    # Rights.
    kafka_errors.AuthorizationError: _not_allowed("this", "this principal the right to it"),
    kafka_errors.TopicAuthorizationFailedError: _not_allowed(
        "the topic", "READ and DESCRIBE on it to this principal"
    ),
    kafka_errors.GroupAuthorizationFailedError: _not_allowed(
        "the group", "READ and DESCRIBE on it to this principal"
    ),
    kafka_errors.ClusterAuthorizationFailedError: _not_allowed(
        "the cluster", "DESCRIBE on the cluster to this principal"
    ),
    # Partitions.
    kafka_errors.UnknownTopicOrPartitionError: _UNKNOWN_TOPIC,
    kafka_errors.InvalidTopicError: _UNKNOWN_TOPIC.with_cause(
        "invalid topic name", "check replication.policy.class and its separator", remedy=Remedy.NONE
    ),
    kafka_errors.LeaderNotAvailableError: Rule(
        FailureKind.NO_LEADER,
        "the partition has no leader",
        "restart a broker that has a replica of it",
        Remedy.REFRESH,
        retry_seconds=_GONE_RETRY_SECONDS,
    ),
    kafka_errors.OffsetNotAvailableError: _LEADER_MOVED.with_cause(
        "the new leader does not know its log's end yet"
    ),
    kafka_errors.KafkaStorageError: _LEADER_MOVED.with_cause(
        "the broker cannot read its disk", _SEE_BROKER
    ),
    kafka_errors.OffsetMovedToTieredStorageError: _LEADER_MOVED.with_cause(
        "the offset has moved to tiered storage"
    ),
    kafka_errors.OffsetOutOfRangeError: Rule(
        FailureKind.NO_LEADER,
        "the offset is outside the log",
        "retention or a truncation removed records while the log was read; the next cycle reads it "
        "again",
    ),
    kafka_errors.CorruptRecordError: Rule(
        FailureKind.CORRUPT_BATCH,
        "the batch is damaged",
        "check the disks of the brokers of {alias}, and this log with kafka-dump-log",
        detail=True,
    ),
    kafka_errors.UnsupportedForMessageFormatError: _VERSION.with_cause(
        "the topic's message format has no timestamps", "rewrite it"
    ),
    kafka_errors.UnsupportedCompressionTypeError: _VERSION.with_cause(
        "the broker cannot send batches of this compression"
    ),
    # Groups.
    kafka_errors.CoordinatorLoadInProgressError: _COORDINATOR_MOVED.with_cause(
        "the group's coordinator is still loading its offsets", retry_seconds=_PASSING_RETRY_SECONDS
    ),
    kafka_errors.CoordinatorNotAvailableError: _COORDINATOR_MOVED,
    kafka_errors.NotCoordinatorError: _COORDINATOR_MOVED,
    kafka_errors.UnstableOffsetCommitError: Rule(
        FailureKind.COORDINATOR,
        "an open transaction blocks the group's offsets",
        "stop the producer that holds it open, or abort it with kafka-transactions",
        Remedy.AGAIN,
        retry_seconds=_PASSING_RETRY_SECONDS,
    ),
    kafka_errors.ConcurrentTransactionsError: _COORDINATOR_MOVED.with_cause(
        "a transaction of the group is still ending", retry_seconds=_PASSING_RETRY_SECONDS
    ),
    kafka_errors.UnknownMemberIdError: _MEMBERS,
    kafka_errors.IllegalGenerationError: _MEMBERS,
    kafka_errors.RebalanceInProgressError: _MEMBERS,
    kafka_errors.FencedInstanceIdError: _MEMBERS,
    kafka_errors.FencedMemberEpochError: _MEMBERS,
    kafka_errors.StaleMemberEpochError: _MEMBERS,
    # A share group with members, which AlterShareGroupOffsets refuses.
    kafka_errors.NonEmptyGroupError: _MEMBERS,
    kafka_errors.GroupIdNotFoundError: Rule(
        FailureKind.COORDINATOR,
        "the group has another type on this cluster",
        "exclude the group with groups.exclude, or delete it on this cluster",
    ),
    kafka_errors.InvalidGroupIdError: Rule(
        FailureKind.COORDINATOR,
        "the cluster refuses this group id",
        "exclude the group with groups.exclude",
    ),
    kafka_errors.OffsetMetadataTooLargeError: Rule(
        FailureKind.COORDINATOR,
        "the commit's metadata is larger than the cluster allows",
        "raise offset.metadata.max.bytes of the brokers of {alias}",
        metadata_too_large=True,
    ),
    kafka_errors.InvalidCommitOffsetSizeError: Rule(
        FailureKind.COORDINATOR,
        "the commit is larger than the cluster allows",
        "raise max.message.bytes of __consumer_offsets on {alias}",
    ),
    # Only elections join groups.
    kafka_errors.InconsistentGroupProtocolError: Rule(
        FailureKind.COORDINATOR,
        "another application uses a group of this name",
        "stop that application, or rename its group or the flow's clusters",
    ),
    kafka_errors.InvalidSessionTimeoutError: Rule(
        FailureKind.COORDINATOR,
        "the brokers do not allow this session timeout",
        "let group.min.session.timeout.ms and group.max.session.timeout.ms of {alias} allow 10 s",
    ),
    kafka_errors.GroupMaxSizeReachedError: Rule(
        FailureKind.COORDINATOR,
        "the group has the maximum number of members",
        "stop some of them, or raise group.max.size of the brokers of {alias}",
    ),
    # The coordinator writes a commit as a record, and these are its errors.
    kafka_errors.NotEnoughReplicasError: _COORDINATOR_MOVED.with_cause(
        "too few brokers hold the group's offsets"
    ),
    kafka_errors.NotEnoughReplicasAfterAppendError: _COORDINATOR_MOVED.with_cause(
        "too few brokers hold the group's offsets"
    ),
    # The base classes: everything not named above.
    kafka_errors.InvalidMetadataError: _LEADER_MOVED,
    kafka_errors.RetriableError: _BUSY,
    kafka_errors.KafkaError: _INTERNAL,
    # tsoffset's own error, if the cluster became unreachable after a part of the answers.
    ClusterUnreachable: _CONNECTION,
    ClusterRefused: _AUTHENTICATION,
}


Trouble = BaseException | type[BaseException] | int
"""An error, its class, or the error code of a broker's answer, which is not 0."""


def rule(trouble: Trouble) -> Rule:
    """The rule of the nearest class that has one."""
    for ancestor in error_class(trouble).__mro__:
        if (found := _RULES.get(ancestor)) is not None:
            return found
    return _INTERNAL


def failure(trouble: Trouble, operation: str, alias: str, note: str = "") -> Failed:
    """The error as a value: "*operation*, cluster *alias*: cause; next step".

    `note` follows the cause, and says what only the caller knows.
    """
    what = rule(trouble)
    cause = what.cause
    if what.detail and (text := _own_words(trouble)):
        cause += f" ({text})"
    if note:
        cause += f" ({note})"
    return Failed(
        what.kind,
        f"{operation}, cluster {alias}: {cause}; {what.next_step.format(alias=alias)}",
        missing=what.missing,
        group_active=what.group_active,
        metadata_too_large=what.metadata_too_large,
        retry_seconds=0.0 if what.remedy is Remedy.NONE else what.retry_seconds,
    )


def error_class(trouble: Trouble) -> type[BaseException]:
    """The class of an error; for a code, one of `kafka.errors`."""
    if isinstance(trouble, BaseException):
        return type(trouble)
    if isinstance(trouble, type):
        return trouble
    found: type[BaseException] = kafka_errors.for_code(trouble)
    return found


def _own_words(trouble: Trouble) -> str:
    """The library's text in one line; for an error code, its name in the protocol."""
    kind = error_class(trouble)
    # A damaged batch is noticed by tsoffset, with its own text, or by brokers, with a code; another
    # cluster by tsoffset.
    noticed = kafka_errors.CorruptRecordError | kafka_errors.InconsistentClusterIdError
    ours = isinstance(trouble, noticed) and trouble.args
    if kind is not type(trouble) or (
        issubclass(kind, kafka_errors.BrokerResponseError) and not ours
    ):
        name = getattr(kind, "message", None) or kind.__name__
        code = getattr(kind, "errno", None)
        return str(name) if code is None else f"{name}, code {code}"
    words = " ".join(str(argument) for argument in getattr(trouble, "args", ()) if argument)
    return " ".join(words.split()) or kind.__name__
