"""The commands of `tsoffset` and their words.

Exit status: 0 all well (skips are well), 1 something failed, 2 bad usage or configuration,
3 a cluster could not be reached at all. Results go to standard output, everything else to
standard error. What a command needs is imported when it runs, so that help is quick.
"""
