"""A flow: its settings, what its replication policy and filters say of names, what narrows it."""
