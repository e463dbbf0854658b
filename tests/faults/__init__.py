"""A running daemon and what befalls its clusters, its network and its processes."""
