"""Cycles on Spark that share one session, whose start costs more than most of them."""
