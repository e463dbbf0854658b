"""Findings on the timestamps of the source's records: ahead of the clock, or beyond what the
target's topics accept."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.commands.check.configs import duration
from tsoffset.commands.check.findings import Finding, Scope
from tsoffset.commands.check.survey import SourceSurvey, SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, LogRange, ReadFrom, TimedOffset, TopicPartition, Youngest
from tsoffset.terminal.output import abridge

_NO_LIMIT = str(2**63 - 1)
# Tolerance for the clocks of producers.
_FUTURE_MS = 60_000
_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """The earliest timestamp in a topic's first batches, and its largest one, in milliseconds; None
    if unknown."""

    first_ms: int | None = None
    newest_ms: int | None = None


def read_record_times(
    flow: FlowSettings, source: Cluster, survey: SourceSurvey, synced: Sequence[SyncedTopic]
) -> dict[SyncedTopic, RecordTimes]:
    """The times of the source's topics, in two partitions of each. Raises ClusterUnreachable."""
    logs = {
        partition: log
        for topic in synced
        for number in sorted(topic.partitions)[:_PARTITIONS]
        if isinstance(
            log := survey.logs.get(partition := TopicPartition(topic.source, number)), LogRange
        )
        and log.start < log.end
    }
    first: defaultdict[str, list[int]] = defaultdict(list)
    requests = [ReadFrom(partition, log.start) for partition, log in logs.items()]
    for request, fetched in source.read(requests, flow.isolation).items():
        if not isinstance(fetched, Failed):
            times = [one.timestamp_ms for one in fetched.records]
            first[request.partition.topic] += [one for one in times if one is not None]
    newest: defaultdict[str, list[int]] = defaultdict(list)
    for lookup, found in source.youngest([*map(Youngest, logs)], flow.isolation).items():
        if isinstance(found, TimedOffset):
            newest[lookup.partition.topic].append(found.timestamp_ms)
    return {
        topic: RecordTimes(
            min(first[topic.source], default=None), max(newest[topic.source], default=None)
        )
        for topic in synced
    }


def compared_times(
    flow: FlowSettings,
    times: Mapping[SyncedTopic, RecordTimes],
    copies: Mapping[str, Configs],
    now_ms: int,
) -> Iterator[Finding]:
    """Report records ahead of this host's clock (`now_ms`; producers set these timestamps, so they
    may be intended), and those that the target would refuse now."""
    ahead = {
        topic.source: one.newest_ms - now_ms
        for topic, one in times.items()
        if one.newest_ms is not None and one.newest_ms > now_ms + _FUTURE_MS
    }
    if ahead:
        yield Scope(flow.name, flow.source.alias).warning(
            "clock",
            f"newest records have timestamps up to {duration(max(ahead.values()))} ahead of this"
            f" host's clock ({abridge([*ahead])})",
            "synchronize producers, brokers and this host by NTP, unless these timestamps are"
            " intended",
        )
    for key, words in (("after", "ahead of"), ("before", "behind")):
        setting = f"message.timestamp.{key}.max.ms"
        refused = []
        for topic, one in times.items():
            moment = one.newest_ms if key == "after" else one.first_ms
            configs = copies[topic.target]
            if moment is None or isinstance(configs, Failed):
                continue
            # Kafka before 3.6 has one limit for both directions.
            common = configs.get("message.timestamp.difference.max.ms", _NO_LIMIT)
            limit_ms = int(configs.get(setting, common))
            away_ms = moment - now_ms if key == "after" else now_ms - moment
            if away_ms > limit_ms and configs.get("message.timestamp.type") != "LogAppendTime":
                refused.append(f"{topic.target}: {duration(away_ms)}, limit {duration(limit_ms)}")
        if refused:
            yield Scope(flow.name, flow.target.alias).warning(
                setting,
                f"records on {flow.source.alias} have timestamps further {words} the clock than"
                f" the target topics accept ({abridge(refused)}): the replicator cannot write them",
                f"raise {setting} of the target topics",
            )
