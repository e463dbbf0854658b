"""A sync cycle as tables (Polars).

`flow_cycle` has what a cycle is given and returns, `cycle` the order of its steps. `commit_rule`
decides what is committed, `commit` sends it, and `tables` lists the columns.

A process that has used Polars must not be forked: its children hang.
"""
