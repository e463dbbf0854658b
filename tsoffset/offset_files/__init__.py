"""Offsets that applications keep outside of consumer groups: read, translated, written.

One module for each format; `document.py` says what they have in common, `translation.py` runs the
cycle over them, `reading.py` tells the formats apart.
"""
