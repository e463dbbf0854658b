"""The daemon, `tsoffset run`: a thread per flow (`flow_loop`), the Spark session that they share
(`sessions`), and what is known of them all (`status`), which metrics, API, page and history read.
"""
