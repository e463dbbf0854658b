"""`tsoffset demo`: clusters, groups, a sync and a failover on this machine, with only Java
installed.

Two real brokers, real MirrorMaker 2, real producers and consumers; one sync as `tsoffset sync` runs
it; then a failover, judged by content. It uses the Kafka client directly, as applications do.
"""
