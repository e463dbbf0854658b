"""`tsoffset compare`: MirrorMaker 2's checkpoints beside our translations.

The stages of a cycle run in this process; nothing is committed, and Spark is not needed.
"""
