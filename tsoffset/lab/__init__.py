"""Kafka and MirrorMaker 2 on this machine, and the demo that uses them. Both need the packages of
the extra `lab`, and Java.
"""
