"""A cycle's stages over a `Cluster`: read commits, translate offsets in rounds.

Each stage takes a batch and returns values, failures among them; `tsoffset.spark` runs the
stages as tasks, `tsoffset.group_sync.in_process` runs them in this process (tests, and small
plans).
"""
