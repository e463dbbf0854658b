"""`tsoffset demo`: the whole thing on this machine, with nothing but Java installed.

Two real brokers, real MirrorMaker 2, real producers and consumers; one sync on the same path
as `tsoffset sync`; then a failover, judged by content. Like `tsoffset.kafka` and
`tsoffset.testing.embedded` it uses the Kafka client directly: as the applications would.
"""
