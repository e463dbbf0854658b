"""Whether target topics are still the ones for which offsets were translated.

A topic that was recreated since then may have the translated offset, too, after records that the
group has not read.
"""

from collections.abc import Collection, Mapping

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.carry_over import describe_topics, topic_ids
from tsoffset.group_sync.tables import TARGET_TOPICS, semi_join


def topics_frame(topics: Collection[str], ids: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame([(one, ids.get(one)) for one in topics], TARGET_TOPICS, orient="row")


def target_topics(target: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """TARGET_TOPICS as they are now."""
    return topics_frame(topics, topic_ids(describe_topics(target, topics)))


def with_one_id(topics: pl.DataFrame) -> pl.DataFrame:
    """TARGET_TOPICS with each topic once. One that tasks have seen with two ids has none: nothing
    of it is committed."""
    is_one = pl.col("target_topic_id").n_unique() == 1
    one_id = pl.when(is_one).then(pl.col("target_topic_id").first())
    return topics.group_by("target_topic", maintain_order=True).agg(one_id.alias("target_topic_id"))


def is_same_topic(then: pl.DataFrame, now: pl.DataFrame) -> pl.Expr:
    """Whether a row's target topic has the same id in both TARGET_TOPICS; false where one of the
    ids is not known."""
    same = semi_join(then, now, [*TARGET_TOPICS])["target_topic"]
    return pl.col("target_topic").is_in(same.implode()).fill_null(False)
