"""`tsoffset failover`: final cycles of a flow, a verdict for each group, and what to do next."""
