"""A cycle on Spark: the session, what travels to its tasks, and the dataflow."""
