"""`tsoffset translate`: offsets that an application keeps itself, outside of consumer groups."""
