"""Benchmarks: each is `python -m benchmarks.NAME`; docs/performance.md says how to read them."""
