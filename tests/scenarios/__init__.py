"""What a user relies on, shown on real brokers with a real MirrorMaker 2."""
