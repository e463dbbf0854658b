"""The commands of `tsoffset`, one module or folder each; `options` is what they share.

Exit status: 0 success (skipped rows are no failure), 1 something failed, 2 bad usage or
configuration, 3 a cluster could not be reached at all.
"""
