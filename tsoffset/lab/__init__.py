"""Kafka and MirrorMaker 2 on this machine, and the demo on them. The extra `demo` has what it
needs, Java not included.
"""
