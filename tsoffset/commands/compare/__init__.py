"""`tsoffset compare`: compares MirrorMaker 2's checkpoints with tsoffset's translations.

The steps of a cycle run in this process; nothing is committed, and Spark is not needed.
`flow_comparison` reads and translates, `judgment` compares one group-partition, `totals` sums.
"""
