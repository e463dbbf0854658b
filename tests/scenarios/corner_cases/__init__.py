"""Corner cases on real brokers, mirrored by a real MirrorMaker 2.

Some have their place elsewhere: MirrorMaker 2 killed in mid-stream, and stopped inside the
repeat that follows (`test_crash`); transactions with aborts on the source alone, and compaction
on both sides (`test_failover`); groups of the newer protocols on either side
(`test_group_protocols`); topics made anew under what is remembered of them
(`tests/cycle/test_memory_of_cycles.py`).
"""
