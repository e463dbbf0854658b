"""What every error of Kafka comes to, and which errors are worth asking again."""

import inspect
import pickle

import kafka.errors as kafka_errors
import pytest

from tsoffset.kafka.errors import Remedy, failure, rule
from tsoffset.kafka.security import failures
from tsoffset.model import FailureKind

ALL = sorted(
    {
        found
        for module in (kafka_errors, failures)
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, kafka_errors.KafkaError)
    },
    key=lambda found: found.__name__,
)

# What brokers answer to the requests that we send, with what it is called in the protocol.
MET = [
    # Fetch and ListOffsets.
    ("OFFSET_OUT_OF_RANGE", 1, FailureKind.NO_LEADER, False),
    ("CORRUPT_MESSAGE", 2, FailureKind.CORRUPT_BATCH, False),
    ("UNKNOWN_TOPIC_OR_PARTITION", 3, FailureKind.NO_LEADER, True),
    ("LEADER_NOT_AVAILABLE", 5, FailureKind.NO_LEADER, True),
    ("NOT_LEADER_OR_FOLLOWER", 6, FailureKind.NO_LEADER, True),
    ("REQUEST_TIMED_OUT", 7, FailureKind.TIMEOUT, True),
    ("BROKER_NOT_AVAILABLE", 8, FailureKind.UNREACHABLE, True),
    ("REPLICA_NOT_AVAILABLE", 9, FailureKind.NO_LEADER, True),
    ("TOPIC_AUTHORIZATION_FAILED", 29, FailureKind.AUTHORIZATION, False),
    ("UNSUPPORTED_VERSION", 35, FailureKind.UNSUPPORTED_VERSION, False),
    ("UNSUPPORTED_FOR_MESSAGE_FORMAT", 43, FailureKind.UNSUPPORTED_VERSION, False),
    ("KAFKA_STORAGE_ERROR", 56, FailureKind.NO_LEADER, True),
    ("LISTENER_NOT_FOUND", 72, FailureKind.UNREACHABLE, True),
    ("FENCED_LEADER_EPOCH", 74, FailureKind.NO_LEADER, True),
    ("UNKNOWN_LEADER_EPOCH", 75, FailureKind.NO_LEADER, True),
    ("UNSUPPORTED_COMPRESSION_TYPE", 76, FailureKind.UNSUPPORTED_VERSION, False),
    ("OFFSET_NOT_AVAILABLE", 78, FailureKind.NO_LEADER, True),
    ("THROTTLING_QUOTA_EXCEEDED", 89, FailureKind.TIMEOUT, True),
    ("OFFSET_MOVED_TO_TIERED_STORAGE", 109, FailureKind.NO_LEADER, True),
    # Groups.
    ("OFFSET_METADATA_TOO_LARGE", 12, FailureKind.COORDINATOR, False),
    ("COORDINATOR_LOAD_IN_PROGRESS", 14, FailureKind.COORDINATOR, True),
    ("COORDINATOR_NOT_AVAILABLE", 15, FailureKind.COORDINATOR, True),
    ("NOT_COORDINATOR", 16, FailureKind.COORDINATOR, True),
    ("INVALID_TOPIC_EXCEPTION", 17, FailureKind.NO_LEADER, False),
    ("INCONSISTENT_GROUP_PROTOCOL", 23, FailureKind.COORDINATOR, False),
    ("INVALID_SESSION_TIMEOUT", 26, FailureKind.COORDINATOR, False),
    ("GROUP_MAX_SIZE_REACHED", 81, FailureKind.COORDINATOR, False),
    ("ILLEGAL_GENERATION", 22, FailureKind.COORDINATOR, False),
    ("INVALID_GROUP_ID", 24, FailureKind.COORDINATOR, False),
    ("UNKNOWN_MEMBER_ID", 25, FailureKind.COORDINATOR, False),
    ("REBALANCE_IN_PROGRESS", 27, FailureKind.COORDINATOR, False),
    ("INVALID_COMMIT_OFFSET_SIZE", 28, FailureKind.COORDINATOR, False),
    ("GROUP_AUTHORIZATION_FAILED", 30, FailureKind.AUTHORIZATION, False),
    ("CLUSTER_AUTHORIZATION_FAILED", 31, FailureKind.AUTHORIZATION, False),
    ("GROUP_ID_NOT_FOUND", 69, FailureKind.COORDINATOR, False),
    ("FENCED_INSTANCE_ID", 82, FailureKind.COORDINATOR, False),
    ("UNSTABLE_OFFSET_COMMIT", 88, FailureKind.COORDINATOR, True),
    ("FENCED_MEMBER_EPOCH", 110, FailureKind.COORDINATOR, False),
    ("STALE_MEMBER_EPOCH", 113, FailureKind.COORDINATOR, False),
    # Connections.
    ("SASL_AUTHENTICATION_FAILED", 58, FailureKind.AUTHENTICATION, False),
    ("UNSUPPORTED_SASL_MECHANISM", 33, FailureKind.AUTHENTICATION, False),
    ("ILLEGAL_SASL_STATE", 34, FailureKind.AUTHENTICATION, False),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_of_the_library_becomes_a_failure(error):
    """The sentence says operation, object, cluster, cause and next step, and names the error
    itself if tsoffset has no sentence for it."""
    failed = failure(error, "read orders-3@512", "A")
    head, cause_and_step = failed.message.split(", cluster A: ", 1)
    cause, step = cause_and_step.split("; ", 1)
    assert head == "read orders-3@512"
    assert cause
    assert step
    if failed.kind in (FailureKind.AUTHENTICATION, FailureKind.UNREACHABLE):
        # `check` takes for the remedy what follows the last one.
        assert "; " not in step
    assert "{" not in failed.message
    if rule(error) is rule(kafka_errors.KafkaError):
        assert (error.__name__ in cause) or (str(getattr(error, "message", None)) in cause)
    assert pickle.loads(pickle.dumps(failed)) == failed


@pytest.mark.parametrize(("name", "code", "kind", "again"), MET, ids=[row[0] for row in MET])
def test_what_brokers_answer_has_a_kind(name, code, kind, again):
    """What a newer look at the cluster may cure is asked again, and nothing else."""
    error = kafka_errors.for_code(code)
    assert failure(code, "read orders-3@512", "A").kind is kind
    assert (rule(error).remedy is not Remedy.NONE) is again


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (kafka_errors.KafkaConnectionError("refused"), FailureKind.UNREACHABLE, True),
        (kafka_errors.UnknownBrokerIdError(7), FailureKind.UNREACHABLE, True),
        (kafka_errors.KafkaTimeoutError(), FailureKind.TIMEOUT, True),
        (kafka_errors.InvalidReceiveError("size"), FailureKind.INTERNAL, False),
        (kafka_errors.IncompatibleBrokerVersion("x"), FailureKind.UNSUPPORTED_VERSION, False),
        (kafka_errors.UnsupportedCodecError("x"), FailureKind.UNSUPPORTED_VERSION, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_what_the_client_notices_has_a_kind(error, kind, again):
    """A connection that fails may come back; what cannot be understood stays so."""
    assert failure(error, "read orders-3@512", "A").kind is kind
    assert (rule(error).remedy is not Remedy.NONE) is again


@pytest.mark.parametrize(
    ("mark", "codes"),
    [
        # All ways in which a coordinator says that the offsets are its members' to move.
        ("group_active", {22, 25, 27, 68, 82, 110, 113}),
        # Missing is a state of the cluster, told apart from trouble.
        ("missing", {3, 17}),
        # The commit can be repeated without it.
        ("metadata_too_large", {12}),
    ],
)
def test_what_is_no_mere_failure_is_marked(mark, codes):
    """These codes, and no other one."""
    marked = {code for code in range(1, 200) if getattr(failure(code, "commit", "B"), mark)}
    assert marked == codes


def test_a_code_that_nobody_knows_is_named():
    """A newer broker's error comes with its number."""
    failed = failure(9_999, "commit offsets of group g", "B")
    assert failed.kind is FailureKind.INTERNAL
    assert "9999" in failed.message


def test_the_library_s_words_are_kept_where_they_help():
    """Which side of a connection failed is said in the library's words."""
    failed = failure(kafka_errors.KafkaConnectionError("111 ECONNREFUSED"), "list groups", "A")
    assert "111 ECONNREFUSED" in failed.message
    assert "A.bootstrap.servers" in failed.message


@pytest.mark.parametrize(
    ("error", "at_least", "at_most"),
    [
        (kafka_errors.UnstableOffsetCommitError, 2.0, 3.0),
        (kafka_errors.CoordinatorLoadInProgressError, 2.0, 3.0),
        (kafka_errors.ConcurrentTransactionsError, 2.0, 3.0),
        (kafka_errors.NotCoordinatorError, 10.0, 20.0),
        (kafka_errors.CoordinatorNotAvailableError, 10.0, 20.0),
        (kafka_errors.KafkaConnectionError, 10.0, 20.0),
        (kafka_errors.NotLeaderForPartitionError, 10.0, 20.0),
        (kafka_errors.KafkaStorageError, 10.0, 20.0),
        (kafka_errors.LeaderNotAvailableError, 10.0, 20.0),
        (kafka_errors.UnknownTopicOrPartitionError, 10.0, 20.0),
        (kafka_errors.UnknownMemberIdError, 0.0, 0.0),
        (kafka_errors.GroupAuthorizationFailedError, 0.0, 0.0),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_time_for_retries_depends_on_what_may_pass(error, at_least, at_most):
    """A transaction that ends and a coordinator that loads are waited for a few seconds, a broker
    that is gone until others have its place: one bad partition holds up no others for longer. What
    is final is not waited for."""
    assert at_least <= failure(error, "read offsets of group g", "A").retry_seconds <= at_most
