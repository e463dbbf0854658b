"""Offsets that applications keep outside of consumer groups: read, translated, written.

Each format has a module; `document.py` has what they share. `reading.py` recognizes the format of a
file, and `translation.py` translates its offsets.
"""
