"""The rule: where a group that committed C on the source resumes on the target. No I/O.

Start with `translate`, which has the steps of docs/design.md section 1 in their order. `proof` has
the three proofs that nothing is skipped; they use `older_records`, `beginning` and `frontier`.
`duplicates` tells copies of equal records apart. `search` only finds candidates: a mistake there
costs fetches, never a record.
"""
