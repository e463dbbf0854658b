"""Past cycles as Parquet below `history.dir`: written as they end (`writing`), merged by day and
removed in time (`tidying`), read by this process (`reading`) and by Spark (`views`, `questions`).
"""
