"""Sending commits: rows to requests, and answers to rows."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import polars as pl

from tsoffset.cluster import Cluster, all_failed
from tsoffset.errors import ClusterUnreachable
from tsoffset.group_sync.tables import COMMIT_WORK, TARGET_PARTITION, Schema
from tsoffset.model import CommittedOffset, Failed, FailureKind, TopicPartition

REFUSALS: Schema = {
    **{name: COMMIT_WORK[name] for name in TARGET_PARTITION},
    "answer": pl.String,
    "answer_message": pl.String,
    "answer_retry_seconds": pl.Float64,
    "missing": pl.Boolean,
    "group_active": pl.Boolean,
    "metadata_too_large": pl.Boolean,
    # Not sent: too late, or after the deadline.
    "not_sent": pl.Boolean,
}


def send(
    target: Cluster,
    pending: pl.DataFrame,
    share_groups: Collection[str],
    may_send: Callable[[str], bool],
    refused: Mapping[str, Failed],
) -> pl.DataFrame:
    """Commit `target_offset` of these rows; returns those that were not committed, as REFUSALS.

    `may_send` is asked just before a group's commit is sent; where it says no, `refused` says why.
    """
    commits = _commits(pending)
    try:
        answers = target.commit(commits, share_groups=share_groups, may_send=may_send)
    except ClusterUnreachable as error:
        failed = all_failed(error)
        answers = {group: dict.fromkeys(offsets, failed) for group, offsets in commits.items()}
    return _failures(answers, refused)


def _commits(pending: pl.DataFrame) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """What is to be committed, by group."""
    commits: defaultdict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
    known: dict[tuple[str, int], TopicPartition] = {}
    columns = pending.select(
        *TARGET_PARTITION,
        "target_offset",
        pl.when(~pl.col("without_metadata")).then("metadata").fill_null(""),
    )
    for group, topic, partition, offset, metadata in columns.iter_rows():
        key = known.get((topic, partition))
        if key is None:
            key = known[topic, partition] = TopicPartition(topic, partition)
        commits[group][key] = CommittedOffset(offset, metadata)
    return commits


def _failures(
    answers: Mapping[str, Mapping[TopicPartition, Failed | None]], refused: Mapping[str, Failed]
) -> pl.DataFrame:
    """The answers that are failures. For a group that was not sent, the failure says why not."""
    rows = []
    for group, of_group in answers.items():
        for partition, no in of_group.items():
            if no is None:
                continue
            # A part of a large group may have been sent, and answered, before the rest was refused.
            not_sent = group in refused and no.kind is FailureKind.TIMEOUT
            why = refused[group] if not_sent else no
            flags = (why.missing, why.group_active, why.metadata_too_large)
            rows.append(
                (
                    *(group, partition.topic, partition.partition),
                    *(why.kind, why.message, why.retry_seconds, *flags, not_sent),
                )
            )
    return pl.DataFrame(rows, REFUSALS, orient="row")
