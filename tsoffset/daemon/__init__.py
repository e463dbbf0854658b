"""The daemon, `tsoffset run`: a thread per flow (`flow_loop`), and the status of all flows
(`status`), which metrics, API, page and history read. The flows share the Spark session of
`tsoffset.spark.sessions`.
"""
