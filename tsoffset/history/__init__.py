"""Past cycles as Parquet files in `history.dir`: written after each cycle (`writing`), merged by
day and removed after the retention (`tidying`), read by this process (`reading`) and by Spark
(`views`, `questions`).
"""
