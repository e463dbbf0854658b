"""Reading the source's committed offsets, and translating them in rounds, over a `Cluster`.

Each function takes a batch and returns values, failures among them. `tsoffset.group_sync.steps`
calls them, in this process or in a Spark task.
"""
