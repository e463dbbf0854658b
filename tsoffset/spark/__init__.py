"""A cycle on Spark: the session, what travels to its tasks, and the dataflow."""

from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.flow import CycleResult, FlowMemory, FlowTask, kafka_cluster
from tsoffset.spark.jobs import is_alive
from tsoffset.spark.session import spark_session
from tsoffset.spark.state import StateFile

__all__ = [
    "CycleResult",
    "FlowMemory",
    "FlowTask",
    "StateFile",
    "is_alive",
    "kafka_cluster",
    "run_cycle",
    "spark_session",
]
