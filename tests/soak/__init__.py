"""A daemon under load for a long time: what it holds must not grow."""
