"""A broker is ready when it answers, not after a certain time."""

import logging
import socket
from contextlib import closing, suppress

from kafka import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion, KafkaError, TransactionalIdNotFoundError

from tsoffset.lab.embedded.security import Access

_PATIENCE_SECONDS = 5.0

# The client logs every refused connection. Here that is expected, and without a handler it would be
# printed.
logging.getLogger("kafka").addHandler(logging.NullHandler())


def serving(admin: Access, cluster_id: str, node_id: int, group_partitions: int) -> str | None:
    """Why node `node_id` of cluster `cluster_id` does not serve `admin` yet (clients, groups and
    transactions); None if it does.

    It queries all partitions of the topic with group offsets, so that no later request of a group
    meets a coordinator that is still loading. The query also makes the cluster create this topic,
    and that of the transactions.
    """
    host, port = admin.bootstrap.split(":")
    try:
        # The client would be slow to retry a broker that does not listen yet.
        socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS).close()
        with closing(
            KafkaAdminClient(
                **admin.settings(),
                bootstrap_timeout_ms=_PATIENCE_SECONDS * 1000,
                request_timeout_ms=_PATIENCE_SECONDS * 1000,
            )
        ) as client:
            # The answer it got when it connected: `describe_cluster` fails on brokers of 2.8.
            cluster = client._manager.cluster
            if cluster.cluster_id != cluster_id:
                return f"{admin.bootstrap} belongs to another cluster, {cluster.cluster_id}"
            if node_id not in {broker.node_id for broker in cluster.brokers()}:
                return f"node {node_id} has not joined the cluster yet"
            # The hash of a group's name determines its partition, and the hash of a name of one
            # letter is the letter's code: these names cover every partition.
            client.list_group_offsets([chr(ord("0") + n) for n in range(group_partitions)])
            # No such transaction exists, and that answer is wanted. Brokers before 3.0 name its
            # coordinator, and cannot be asked further.
            with suppress(TransactionalIdNotFoundError, IncompatibleBrokerVersion):
                client.describe_transactions(["readiness"])
    except (OSError, KafkaError) as error:
        return f"node {node_id} at {admin.bootstrap}: {error!r}"
    return None
