"""A broker is ready when it answers, not when time has passed."""

import logging
import socket
from contextlib import closing, suppress

from kafka import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion, KafkaError, TransactionalIdNotFoundError

from tsoffset.testing.embedded.security import Access

_PATIENCE_SECONDS = 5.0

# The client reports every refused connection; here that is the expected answer, and
# without a handler of the program's own it would land on the terminal.
logging.getLogger("kafka").addHandler(logging.NullHandler())


def serving(admin: Access, cluster_id: str, node_id: int, group_partitions: int) -> str | None:
    """Return why node `node_id` of cluster `cluster_id` does not serve `admin`: clients, groups
    and transactions; None if it does.

    All partitions of the topic that holds group offsets are asked for, so that no later
    request of a group meets a coordinator that is still loading; the same question makes
    the cluster create this topic, and likewise that of the transactions.
    """
    host, port = admin.bootstrap.split(":")
    try:
        # The client would be slow to look again for a broker that does not listen yet.
        socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS).close()
        with closing(
            KafkaAdminClient(
                **admin.settings(),
                bootstrap_timeout_ms=_PATIENCE_SECONDS * 1000,
                request_timeout_ms=_PATIENCE_SECONDS * 1000,
            )
        ) as client:
            # What it was told when it connected: `describe_cluster` fails on brokers of 2.8.
            cluster = client._manager.cluster
            if cluster.cluster_id != cluster_id:
                return f"{admin.bootstrap} belongs to another cluster, {cluster.cluster_id}"
            if node_id not in {broker.node_id for broker in cluster.brokers()}:
                return f"node {node_id} has not joined the cluster yet"
            # A group belongs to the partition that the hash of its name leads to, and the
            # hash of a name of one letter is the letter's code: these meet every partition.
            client.list_group_offsets([chr(ord("0") + n) for n in range(group_partitions)])
            # Nobody has such a transaction: to be told so is the answer wanted. Brokers before
            # 3.0 name its coordinator, and cannot be asked further.
            with suppress(TransactionalIdNotFoundError, IncompatibleBrokerVersion):
                client.describe_transactions(["readiness"])
    except (OSError, KafkaError) as error:
        return f"node {node_id} at {admin.bootstrap}: {error!r}"
    return None
