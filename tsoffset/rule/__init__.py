"""The rule: where a group that committed C on the source resumes on the target (pure).

`translate` reads top to bottom like docs/design.md section 1. What safety rests on is in `proof`:
three proofs that nothing is skipped, with what they need from `older`, `beginning` and `frontier`.
`twins` tells copies of equal records apart. `search` only finds candidates: where it is wrong it
costs fetches, never a record.
"""
