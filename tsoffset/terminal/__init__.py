"""What a person at a terminal sees: rows, tables, notices, progress."""
