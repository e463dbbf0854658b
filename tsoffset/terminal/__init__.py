"""What a person sees at a terminal: rows, tables, notices, progress."""
