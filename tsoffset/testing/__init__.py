"""For tests of tsoffset and of its users: a cluster in memory, and real Kafka on this machine.

No other part of the product imports it, except the demo.
"""
