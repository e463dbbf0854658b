"""How exact translations are, per kind of log, next to other rules: makes docs/accuracy.md.

::

    python -m benchmarks.accuracy
"""
