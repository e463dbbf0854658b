"""The rule: where a group that committed C on the source resumes on the target (pure).

`translate` reads top to bottom like docs/design.md section 1. What safety rests on is in two
modules: `frontier` (how far the mirror has come, found once a partition) and `proof` (that a
target record is the copy of a source record). `search` and `walk` only find candidates: where
they are wrong they cost fetches, never a record.
"""
