"""What replicators create on a cluster: topics, heartbeats, MirrorMaker 2's checkpoints."""
