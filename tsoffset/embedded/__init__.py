"""Real Kafka and MirrorMaker 2 on this machine, as plain Java processes.

::

    from tsoffset.embedded import EmbeddedBroker

    with EmbeddedBroker(name="source") as source, EmbeddedBroker(name="target") as target:
        print(source.bootstrap, target.bootstrap)

Neither Docker nor a Kafka installation is needed: Java 17, and once a Maven repository,
from which the jars come into the user's cache folder.
"""

from tsoffset.embedded.broker import EmbeddedBroker, EmbeddedCluster
from tsoffset.embedded.jars import KAFKA_VERSION, resolve_jars
from tsoffset.embedded.java import find_java

__all__ = ["KAFKA_VERSION", "EmbeddedBroker", "EmbeddedCluster", "find_java", "resolve_jars"]
