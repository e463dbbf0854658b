"""`tsoffset snapshot`, `tsoffset restore` and `sync --allow-rewind`: the target groups' committed
offsets in a file, and the only ways to move groups backwards."""
