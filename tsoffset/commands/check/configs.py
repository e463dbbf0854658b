"""Whether copies are kept as long as their originals, and take their timestamps (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tsoffset.commands.check.findings import Finding, Scope, names
from tsoffset.commands.check.rights import Granting
from tsoffset.commands.check.survey import RecordTimes, SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FailureKind, Operation, Resource
from tsoffset.terminal.output import counted

_UNLIMITED = float("inf")
_NO_LIMIT = 2**63 - 1
_DAY_MS = 86_400_000
_UNITS = ((_DAY_MS, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
# Producers' clocks differ by a little.
_FUTURE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Compared:
    """A topic with the configurations of both sides, and the times of its records."""

    topic: SyncedTopic
    original: Configs
    copy: Configs
    times: RecordTimes


def compared_configs(
    flow: FlowSettings,
    pairs: Sequence[Compared],
    now_ms: int,
    source: Granting,
    target: Granting,
) -> Iterator[Finding]:
    """What is narrower on the target; one line where nothing is. `now_ms` is our clock's."""
    at = Scope(flow.name, flow.target.alias)
    originals = {pair.topic.source: pair.original for pair in pairs}
    copies = {pair.topic.target: pair.copy for pair in pairs}
    yield from _unseen(flow.name, source, originals, only_check=True)
    # Cycles use the target's, too (`tsoffset.commands.check.proofs`).
    yield from _unseen(flow.name, target, copies, only_check=False)
    findings = [
        *_retention(flow, at, pairs),
        *_compaction(flow, at, pairs),
        *_timestamp_limits(flow, at, pairs, now_ms),
    ]
    yield from findings
    seen = sum(not isinstance(one, Failed) for pair in pairs for one in (pair.original, pair.copy))
    if seen == 2 * len(pairs) > 0 and not findings:
        yield at.ok(
            "retention",
            f"at least as long as on {flow.source.alias} in {counted(len(pairs), 'topic')}; record"
            " timestamps are within the target topics' limits",
        )


def newest_in_the_future(
    flow: FlowSettings, pairs: Sequence[Compared], now_ms: int
) -> Iterator[Finding]:
    """For a source that does not tell its clock: that its records come from a clock ahead of ours.
    It rests on times that producers give, so it may be meant."""
    ahead = [
        (pair.times.newest_ms - now_ms, pair.topic.source)
        for pair in pairs
        if pair.times.newest_ms is not None and pair.times.newest_ms > now_ms + _FUTURE_MS
    ]
    if ahead:
        furthest_ms = max(by_ms for by_ms, _ in ahead)
        yield Scope(flow.name, flow.source.alias).warning(
            "clock",
            f"newest records have timestamps up to {duration(furthest_ms)} ahead of this host's"
            f" clock ({names([topic for _, topic in ahead])})",
            "synchronize producers, brokers and this host by NTP, unless these timestamps are"
            " intended",
        )


def duration(milliseconds: float) -> str:
    """`7 d`, `90 min`: in the largest unit of which it is a whole number, or at least ten."""
    for unit, name in _UNITS:
        if milliseconds >= unit and (milliseconds % unit == 0 or milliseconds >= 10 * unit):
            return f"{milliseconds / unit:.0f} {name}"
    return f"{milliseconds:.0f} ms"


def _unseen(
    flow: str, granting: Granting, found: Mapping[str, Configs], *, only_check: bool
) -> Iterator[Finding]:
    at = Scope(flow, granting.cluster.alias)
    failed = {topic: configs for topic, configs in found.items() if isinstance(configs, Failed)}
    refused = [topic for topic, why in failed.items() if why.kind is FailureKind.AUTHORIZATION]
    if refused:
        only = ", which only `check` needs" if only_check else ""
        yield at.ok(
            "retention",
            f"not checked for {counted(len(refused), 'topic')} ({names(refused)}):"
            f" DESCRIBE_CONFIGS is missing{only}",
            granting.remedy(Resource.TOPIC, refused, {Operation.DESCRIBE_CONFIGS}),
        )
    others = [why for topic, why in failed.items() if topic not in refused]
    if others:
        yield at.failure("retention", others[0])


def _retention(flow: FlowSettings, at: Scope, pairs: Sequence[Compared]) -> Iterator[Finding]:
    for key, told in (("retention.ms", duration), ("retention.bytes", _bytes)):
        shorter = [
            f"{pair.topic.target}: {told(there)} instead of "
            + ("no limit" if here == _UNLIMITED else told(here))
            for pair in pairs
            if (there := _kept(pair.copy, key)) < (here := _kept(pair.original, key))
        ]
        if shorter:
            yield at.warning(
                key,
                f"shorter than on {flow.source.alias} ({names(shorter)}): groups that are further"
                " behind resume at the first record that the target topic still has",
                f"set {key} of the target topics as on {flow.source.alias} (kafka-configs --alter"
                f" --entity-type topics --add-config {key}=...)",
            )


def _kept(configs: Configs, key: str) -> float:
    """How much of a log is kept; what is compacted alone, or not known, without limit."""
    if isinstance(configs, Failed) or "delete" not in _policies(configs):
        return _UNLIMITED
    value = int(configs.get(key, -1))
    return _UNLIMITED if value < 0 else value


def _policies(configs: Mapping[str, str]) -> set[str]:
    return {word.strip() for word in configs.get("cleanup.policy", "delete").split(",")}


def _compaction(flow: FlowSettings, at: Scope, pairs: Sequence[Compared]) -> Iterator[Finding]:
    compacted = [
        pair.topic.target
        for pair in pairs
        if not isinstance(pair.original, Failed)
        and not isinstance(pair.copy, Failed)
        and "compact" in _policies(pair.copy) - _policies(pair.original)
    ]
    if compacted:
        yield at.warning(
            "cleanup.policy",
            f"{names(compacted)} compacted, but the source topic is not: compaction removes"
            " records that groups have not read yet",
            f"set cleanup.policy of the target topics as on {flow.source.alias}",
        )


def _timestamp_limits(
    flow: FlowSettings, at: Scope, pairs: Sequence[Compared], now_ms: int
) -> Iterator[Finding]:
    """What the target would refuse of the source's records if they were mirrored now."""
    for key, words in (("after", "ahead of"), ("before", "behind")):
        refused = []
        for pair in pairs:
            moment = pair.times.newest_ms if key == "after" else pair.times.first_ms
            limit_ms = timestamp_limit_ms(pair.copy, key)
            if moment is None or limit_ms is None:
                continue
            away_ms = moment - now_ms if key == "after" else now_ms - moment
            if away_ms > limit_ms:
                refused.append(
                    f"{pair.topic.target}: {duration(away_ms)}, limit {duration(limit_ms)}"
                )
        if refused:
            setting = f"message.timestamp.{key}.max.ms"
            yield at.warning(
                setting,
                f"records on {flow.source.alias} have timestamps further {words} the clock than"
                f" the target topics accept ({names(refused)}): the replicator cannot write them",
                f"raise {setting} of the target topics",
            )


def timestamp_limit_ms(configs: Configs, key: str) -> int | None:
    """How far `after` or `before` the clock a record may be stamped; None without limit, or where
    the broker stamps, or nothing is known."""
    if isinstance(configs, Failed) or configs.get("message.timestamp.type") == "LogAppendTime":
        return None
    # Before 3.6 there was one limit for both.
    common = configs.get("message.timestamp.difference.max.ms", str(_NO_LIMIT))
    limit_ms = int(configs.get(f"message.timestamp.{key}.max.ms", common))
    return None if limit_ms == _NO_LIMIT else limit_ms


def _bytes(number: float) -> str:
    return f"{number:.0f} bytes"
