"""A cluster in memory, for tests of tsoffset and of what is built on it.

::

    source, target = MemoryCluster("A"), MemoryCluster("B")
    source.create_topic("orders")
    source.log("orders").append(Message(1_000 + n, b"key", b"%d" % n) for n in range(100))
    source.group("billing").offsets[TopicPartition("orders", 0)] = CommittedOffset(40)
    mirror(source, target, {"orders": "A.orders"})

It answers like a broker: both pass tests/testing/test_cluster_contract.py.
"""

from tsoffset.testing.memory_cluster.batches import Message
from tsoffset.testing.memory_cluster.cluster import MemoryCluster
from tsoffset.testing.memory_cluster.faults import Fault, Request, Verb
from tsoffset.testing.memory_cluster.groups import MemoryGroup
from tsoffset.testing.memory_cluster.log import Clock, PartitionLog, Transaction
from tsoffset.testing.memory_cluster.mirroring import mirror, mirror_partition

__all__ = [
    "Clock",
    "Fault",
    "MemoryCluster",
    "MemoryGroup",
    "Message",
    "PartitionLog",
    "Request",
    "Transaction",
    "Verb",
    "mirror",
    "mirror_partition",
]
