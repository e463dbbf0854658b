"""`tsoffset demo`: clusters, groups, a sync and a failover on this machine, with only Java
installed.

Each scenario starts real brokers, MirrorMaker 2, producers and consumers. tsoffset moves the
applications to the other cluster, and a comparison by content shows whether they skip or re-read
records. The applications use the Kafka client directly.
"""
