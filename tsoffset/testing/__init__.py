"""For tests of tsoffset and of its users: a cluster in memory. Kafka on this machine is in
`tsoffset.lab.embedded`.
"""
