"""Random rounds of one story: a group reads on the source, stops, and goes on on the target."""
