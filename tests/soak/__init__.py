"""A daemon for as long as one has patience: what it holds must not grow."""
