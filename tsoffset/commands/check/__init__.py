"""`tsoffset check`: look at both clusters of each flow and say what stands in the way.

Asks, never writes, and needs no Spark. `survey` asks, and `samples` by way of the rule;
`clusters`, `groups`, `topics` and `copies` decide what the answers mean.
"""
