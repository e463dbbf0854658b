"""Real Kafka and MirrorMaker 2 on this machine, as plain Java processes.

::

    from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker, flow_properties

    with (
        EmbeddedBroker(name="source") as source,
        EmbeddedBroker(name="target") as target,
        MirrorMaker(flow_properties(source.bootstrap, target.bootstrap)) as mirror,
    ):
        ...  # make the topic orders and fill it
        mirror.wait_until_mirrored(source.bootstrap, target.bootstrap, {"orders": "A.orders"})

It needs Java 17, and once a Maven repository, from which the jars are fetched into the user's cache
folder; neither Docker nor a Kafka installation. Only a progress bar for that is written to the
terminal. Each process has a log in its folder, and none outlives the Python process that started
it. Errors are those of `tsoffset.errors`.
"""

from tsoffset.lab.embedded.broker import EmbeddedBroker
from tsoffset.lab.embedded.jars import (
    KAFKA_VERSION,
    SPARK_KAFKA_VERSION,
    cache_folder,
    resolve_jars,
    resolve_spark_kafka_jars,
)
from tsoffset.lab.embedded.mirror import MirrorMaker, flow_properties
from tsoffset.lab.embedded.security import Access, BrokerListener, BrokerSecurity

__all__ = [
    "KAFKA_VERSION",
    "SPARK_KAFKA_VERSION",
    "Access",
    "BrokerListener",
    "BrokerSecurity",
    "EmbeddedBroker",
    "MirrorMaker",
    "cache_folder",
    "flow_properties",
    "resolve_jars",
    "resolve_spark_kafka_jars",
]
