"""One cycle of all flows on a Spark cluster, as a job for a scheduler.

    examples/pack-environment.sh environment.tar.gz
    spark-submit --master spark://host:7077 \\
        --archives environment.tar.gz#environment \\
        --conf spark.pyspark.python=./environment/bin/python \\
        --files mm2.properties \\
        examples/sync_on_spark.py mm2.properties

The executors receive the configuration unresolved, and resolve `${env:...}` and `${file:...}`
themselves. Use `plan` instead of `sync` to commit nothing. `tsoffset sync` does the same with
`spark.master` in the file.
"""

import os
import sys
from collections import Counter

from pyspark.sql import SparkSession

import tsoffset


def main() -> int:
    # Without spark-submit, Spark's workers would take the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.appName("offsets").getOrCreate()
    rows = tsoffset.sync(sys.argv[1], spark=session)
    session.stop()
    for row in rows:
        if row.message is not None:
            print(f"{row.group} {row.source_topic}-{row.partition}: {row.reason}: {row.message}")
    print(dict(Counter(str(row.outcome) for row in rows)))
    return int(any(row.outcome == "failed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
