"""Why an offset has no translation: each reason with its cause and the next step."""

from tsoffset.model import Reason, Skipped, TopicPartition


def rewritten(target_topic: str) -> Skipped:
    return Skipped(
        Reason.TARGET_REWRITES_TIMESTAMPS,
        f"the target's brokers set the timestamps of {target_topic}; set message.timestamp.type="
        "CreateTime on it and mirror it again from the beginning",
    )


def expired(offset: int, log_start: int) -> Skipped:
    return Skipped(
        Reason.EXPIRED,
        f"the committed offset {offset} is below the source's log start {log_start}; on both "
        "clusters the consumer's auto.offset.reset applies",
    )


def past_log_end(offset: int, log_end: int) -> Skipped:
    return Skipped(
        Reason.PAST_LOG_END,
        f"the committed offset {offset} is past the source's log end {log_end}: the log was "
        "truncated or the topic recreated; reset the group on the source",
    )


def no_timestamp(source: TopicPartition, offset: int) -> Skipped:
    return Skipped(
        Reason.NO_TIMESTAMP,
        f"the records at offset {offset} of {source} have no "
        "timestamp to look up; configure the producers to set one",
    )


def not_mirrored(source: TopicPartition, offset: int) -> Skipped:
    return Skipped(
        Reason.NOT_MIRRORED,
        f"the mirror has not reached offset {offset} of {source}; a later cycle will translate it",
    )


def no_proof(source: TopicPartition, offset: int, obstacle: str | None) -> Skipped:
    """For a committed offset without any proof; `obstacle` is what prevented one."""
    why = obstacle or "no record near the committed offset was found on the target"
    return Skipped(
        Reason.NO_PROOF,
        f"no record pair proves a target offset for {offset} of {source}: {why}; "
        "raise translation.budget, or set translation.floor = log_start",
    )


def nothing_compared(source: TopicPartition, offset: int, obstacle: str | None) -> Skipped:
    """For a committed offset near which no records of equal offsets could be compared, if the
    mirror is expected to keep offsets."""
    why = obstacle or "near it the two logs have no record at the same offset"
    return Skipped(
        Reason.NO_PROOF,
        f"nothing shows that the mirror keeps offsets near {offset} of {source}: {why}; raise "
        "translation.budget, or remove translation.expect",
    )


def diverged(source: TopicPartition, offset: int, target: TopicPartition) -> Skipped:
    """For a partition whose records differ from an offset on, if the mirror is expected to keep
    offsets."""
    return Skipped(
        Reason.DIVERGED,
        f"{source} on the source and {target} on the target have different records at equal "
        f"offsets, the first at {offset}: they diverged in an unclean election or a truncation, or "
        "the replicator does not keep offsets; truncate the mirror to that offset or mirror the "
        "partition again, or remove translation.expect if the replicator does not keep offsets",
    )
