"""What goes over a connection: frames, hand-made codecs, record batches."""
