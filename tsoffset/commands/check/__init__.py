"""`tsoffset check`: look at both clusters of each flow, and report problems.

It never writes and needs no Spark. `flow_check` has the order of the checks. `survey` and `samples`
read from the clusters; `clusters`, `groups`, `topics`, `configs`, `copies` and `rights` decide what
that means.
"""
