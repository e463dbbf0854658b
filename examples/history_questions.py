"""Your own queries of past cycles, with Spark SQL.

    python examples/history_questions.py /var/lib/tsoffset/history
    spark-submit examples/history_questions.py /var/lib/tsoffset/history 30

The directory is `history.dir`, and the number is how many days to look back (default 7).
docs/history.md describes the views `cycles` and `pairs`.
"""

import os
import sys
import time
from functools import partial

from pyspark.sql import SparkSession

from tsoffset.history.views import ViewScope, open_views
from tsoffset.stores import store_at

# The records that a failover at the worst moment of each day would have re-read.
WORST_MOMENT = """
SELECT flow, date(ended_at) AS day, max(reread_bound) AS records,
  max_by(ended_at, reread_bound) AS at, round(max(lag_seconds_max)) AS oldest_seconds
FROM cycles WHERE reached GROUP BY flow, day ORDER BY flow, day
"""

# Groups whose pairs change their outcome most often: these deserve a look.
RESTLESS = """
SELECT flow, `group`, count(*) AS changes, count(DISTINCT reason) AS reasons
FROM pairs GROUP BY flow, `group` HAVING count(DISTINCT outcome) > 1
ORDER BY changes DESC, flow, `group` LIMIT 20
"""


def main() -> None:
    directory = sys.argv[1]
    days = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    # Without spark-submit, Spark's workers would take the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.appName("history questions").getOrCreate()
    asked = ViewScope(start=time.time() - days * 86_400)
    history = partial(store_at, directory)
    # Spark's tasks open the store again.
    opened = open_views(session, history(), asked, history)
    for question in (WORST_MOMENT, RESTLESS):
        session.sql(question).show(100, truncate=False)
    # Damaged files are known once they have been read.
    for warning in opened.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    session.stop()


if __name__ == "__main__":
    main()
