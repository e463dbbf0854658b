"""Bytes on a connection: frames, hand-written codecs, record batches."""
