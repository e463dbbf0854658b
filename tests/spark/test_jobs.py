"""What is told of a failure of Spark."""

import pytest

from tsoffset.spark.jobs import sentence

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4207, in invoke_udf
    func = read_udfs(
           ^^^^^^^^^^
ModuleNotFoundError: No module named 'mine'
"""
LOST = """An error occurred while calling o125.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 \
failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 7) (localhost executor \
driver): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider \
setting 'spark.python.worker.faulthandler.enabled' configuration to 'true'.
\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1136)
Caused by: java.io.EOFException
"""
CANCELLED = """An error occurred while calling o125.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job 2 cancelled as part of cancellation of all jobs
\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:1)
"""
REFUSED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.lang.NumberFormatException: Size must be specified as bytes (b) or kibibytes (k).
\tat org.apache.spark.network.util.JavaUtils.byteStringAs(JavaUtils.java:1)
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (WORKER, "ModuleNotFoundError: No module named 'mine'"),
        (LOST, "Python worker exited unexpectedly (crashed)"),
        (CANCELLED, "Job 2 cancelled as part of cancellation of all jobs"),
        (REFUSED, "Size must be specified as bytes (b) or kibibytes (k)"),
        ("[Errno 111] Connection refused", "[Errno 111] Connection refused"),
        ("", "it gave no reason"),
    ],
)
def test_the_sentence_that_tells_is_found(text, told):
    """Of pages of Java and Python one line says what happened: that one is told."""
    assert sentence(text) == told
