"""Whether topics are still the ones for which offsets were read and translated.

A target topic that was recreated since translating may have the translated offset, too, after
records that the group has not read. When a source topic is deleted, the brokers delete the offsets
that were committed in it. If it is created again after the groups were read, its new log may have
an offset that was read before. The records before it are new, and the group has not read them.
"""

from collections.abc import Collection, Mapping

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.carry_over import describe_topics, topic_ids
from tsoffset.group_sync.tables import SOURCE_TOPICS, TARGET_TOPICS, Schema, semi_join


def topics_frame(
    topics: Collection[str], ids: Mapping[str, str], schema: Schema = TARGET_TOPICS
) -> pl.DataFrame:
    return pl.DataFrame([(one, ids.get(one)) for one in topics], schema, orient="row")


def target_topics(target: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """TARGET_TOPICS as they are now."""
    return topics_frame(topics, topic_ids(describe_topics(target, topics)))


def source_topics(source: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """SOURCE_TOPICS as they are now."""
    return topics_frame(topics, topic_ids(describe_topics(source, topics)), SOURCE_TOPICS)


def with_one_id(topics: pl.DataFrame) -> pl.DataFrame:
    """TARGET_TOPICS with each topic once. One that tasks have seen with two ids has none: nothing
    of it is committed."""
    is_one = pl.col("target_topic_id").n_unique() == 1
    one_id = pl.when(is_one).then(pl.col("target_topic_id").first())
    return topics.group_by("target_topic", maintain_order=True).agg(one_id.alias("target_topic_id"))


def is_same_topic(then: pl.DataFrame, now: pl.DataFrame) -> pl.Expr:
    """Whether a row's topic has the same id in both tables, SOURCE_TOPICS or TARGET_TOPICS; false
    where one of the ids is not known."""
    topic, topic_id = then.columns
    same = semi_join(then, now, [topic, topic_id])[topic]
    return pl.col(topic).is_in(same.implode()).fill_null(False)
