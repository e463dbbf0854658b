"""`tsoffset topics`: what replicators have made on each cluster, where it comes from, how late."""
