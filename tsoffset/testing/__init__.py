"""What tests run on, ours and those of users: a cluster in memory, real Kafka on this machine.

Nothing of the product imports it but the demo, which needs clusters to show anything.
"""
