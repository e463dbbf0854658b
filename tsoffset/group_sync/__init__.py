"""A sync cycle as tables (Polars).

Start with `commit_rule`; `commit` sends what it decides, `tables` lists the columns.

A process that has used Polars must not be forked: its children hang.
"""
