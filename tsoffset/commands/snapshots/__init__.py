"""`tsoffset snapshot`, `tsoffset restore` and `sync --allow-rewind`: target groups' commits kept in
a file, and the only ways by which groups go back."""
