"""Whether source topics are still the ones in which the groups have committed their offsets.

When a topic is deleted, the brokers delete the offsets that were committed in it. If it is created
again after the groups were read, its new log may have an offset that was read before. The records
before it are new, and the group has not read them.
"""

from collections.abc import Collection

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.carry_over import describe_topics, topic_ids
from tsoffset.group_sync.tables import SOURCE_TOPICS, semi_join


def source_topics(source: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """SOURCE_TOPICS as they are now."""
    ids = topic_ids(describe_topics(source, topics))
    return pl.DataFrame([(one, ids.get(one)) for one in topics], SOURCE_TOPICS, orient="row")


def of_partitions(partitions: pl.DataFrame) -> pl.DataFrame:
    """SOURCE_TOPICS of cached partitions (PARTITIONS)."""
    return partitions.select(list(SOURCE_TOPICS)).unique("source_topic", maintain_order=True)


def is_same_source_topic(then: pl.DataFrame, now: pl.DataFrame) -> pl.Expr:
    """Whether a row's source topic has the same id in both SOURCE_TOPICS; false where one of the
    ids is not known."""
    same = semi_join(then, now, list(SOURCE_TOPICS))["source_topic"]
    return pl.col("source_topic").is_in(same.implode()).fill_null(False)
