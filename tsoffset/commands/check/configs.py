"""Findings on topic configurations: retention, compaction, and the proof that needs them (pure)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.commands.check.rights import Granting
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs, is_compacted, needs_cleanup_policy
from tsoffset.cycle.source_commits import renaming_of
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FailureKind, Operation, Resource
from tsoffset.terminal.output import abridge, plural

_UNLIMITED = float("inf")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_NO_PROOF = (
    "the proof by first copy cannot be used there, so a group that is far behind may get an"
    " earlier offset, or none"
)


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    topic: SyncedTopic
    original: Configs
    copy: Configs


def compared_configs(
    flow: FlowSettings,
    pairs: Sequence[TopicConfigs],
    source: Granting,
    target: Granting,
    *,
    lacks_max_timestamp: bool,
) -> Iterator[Finding]:
    """Report shorter retention and added compaction on the target, and which target topics allow
    the proof by first copy.

    `lacks_max_timestamp`: a broker of the target cannot look up a log's largest timestamp.
    """
    at = target.at
    proving = [pair for pair in pairs if _uses_first_copy(flow, pair.topic)]
    yield from _proofs(at, proving, lacks_max_timestamp=lacks_max_timestamp)
    originals = _failures((pair.topic.source, pair.original) for pair in pairs)
    only_check = "only `check` needs it, for retention"
    yield from _unread(source.at.ok, "retention", source, originals, only_check)
    unknown = {pair.topic.target: pair.copy for pair in proving if is_compacted(pair.copy) is None}
    yield from _unread(at.warning, "proof", target, unknown, _NO_PROOF)
    copies = _failures((pair.topic.target, pair.copy) for pair in pairs)
    others = {topic: why for topic, why in copies.items() if topic not in unknown}
    yield from _unread(at.ok, "retention", target, others, "retention is not compared")
    narrower = [*_retention(flow, at, pairs), *_compaction(flow, at, pairs)]
    yield from narrower
    if pairs and not (originals or copies or narrower):
        yield at.ok(
            "retention",
            f"at least as long as on {flow.source.alias} in {plural(len(pairs), 'topic')}",
        )


def duration(milliseconds: float) -> str:
    """A duration in the largest unit in which it is whole or at least ten: `7 d`, `90 min`."""
    for unit, name in _UNITS:
        if milliseconds >= unit and (milliseconds % unit == 0 or milliseconds >= 10 * unit):
            return f"{milliseconds / unit:.0f} {name}"
    return f"{milliseconds:.0f} ms"


def _uses_first_copy(flow: FlowSettings, topic: SyncedTopic) -> bool:
    renaming = renaming_of(flow, topic.source)
    return needs_cleanup_policy(flow.translation) and not (renaming and renaming.failback)


def _proofs(
    at: Scope, pairs: Sequence[TopicConfigs], *, lacks_max_timestamp: bool
) -> Iterator[Finding]:
    compacted = [pair.topic.target for pair in pairs if is_compacted(pair.copy)]
    if deleting := [pair for pair in pairs if is_compacted(pair.copy) is False]:
        yield at.ok(
            "proof",
            f"{plural(len(deleting), 'topic')} not compacted: the proof by first copy can be"
            " used, which gives the best offsets to groups that are far behind",
        )
    if not compacted:
        return
    found = f"{plural(len(compacted), 'topic')} compacted ({abridge(compacted)}): {_NO_PROOF}"
    if lacks_max_timestamp:
        yield at.warning(
            "proof",
            f"{found}. With brokers before 3.0 more groups get none, because these brokers cannot"
            " look up a log's largest timestamp",
            "upgrade the target's brokers to 3.0 or later",
        )
    else:
        yield at.ok("proof", found)


def _failures(configs: Iterable[tuple[str, Configs]]) -> dict[str, Failed]:
    return {topic: why for topic, why in configs if isinstance(why, Failed)}


def _unread(
    say: Callable[[str, str, str | None], Finding],
    subject: str,
    granting: Granting,
    unknown: Mapping[str, Configs],
    consequence: str,
) -> Iterator[Finding]:
    """Report topics whose configuration is not known, and the right that is missing."""
    failed = _failures(unknown.items())
    refused = [topic for topic, why in failed.items() if why.kind is FailureKind.AUTHORIZATION]
    if refused:
        yield say(
            subject,
            f"DESCRIBE_CONFIGS is missing on {plural(len(refused), 'topic')} ({abridge(refused)}):"
            f" {consequence}",
            granting.remedy(Resource.TOPIC, refused, {Operation.DESCRIBE_CONFIGS}),
        )
    if others := [topic for topic in unknown if topic not in refused]:
        messages = [failed[topic].message for topic in others if topic in failed]
        cause, step = cause_and_step(messages[0]) if messages else ("", None)
        found = f"configuration of {plural(len(others), 'topic')} ({abridge(others)}) is not known"
        yield say(subject, f"{found}{cause and f' ({cause})'}: {consequence}", step)


def _retention(flow: FlowSettings, at: Scope, pairs: Sequence[TopicConfigs]) -> Iterator[Finding]:
    for key, in_words in (("retention.ms", duration), ("retention.bytes", "{:.0f} bytes".format)):
        shorter = [
            f"{pair.topic.target}: {in_words(copied)} instead of "
            + ("no limit" if original == _UNLIMITED else in_words(original))
            for pair in pairs
            if (copied := _limit(pair.copy, key)) < (original := _limit(pair.original, key))
        ]
        if shorter:
            yield at.warning(
                key,
                f"shorter than on {flow.source.alias} ({abridge(shorter)}): groups that are further"
                " behind resume at the first record that the target topic still has",
                f"set {key} of the target topics as on {flow.source.alias} (kafka-configs --alter"
                f" --entity-type topics --add-config {key}=...)",
            )


def _limit(configs: Configs, key: str) -> float:
    """The retention; unlimited where it is unknown, or the topic is only compacted."""
    if isinstance(configs, Failed) or "delete" not in configs.get("cleanup.policy", "delete"):
        return _UNLIMITED
    value = int(configs.get(key, -1))
    return _UNLIMITED if value < 0 else value


def _compaction(flow: FlowSettings, at: Scope, pairs: Sequence[TopicConfigs]) -> Iterator[Finding]:
    compacted = [
        pair.topic.target
        for pair in pairs
        if is_compacted(pair.copy)
        and not isinstance(pair.original, Failed)
        and not is_compacted(pair.original)
    ]
    if compacted:
        yield at.warning(
            "cleanup.policy",
            f"{abridge(compacted)} compacted, but the source topic is not: compaction removes"
            " records that groups have not read yet",
            f"set cleanup.policy of the target topics as on {flow.source.alias}",
        )
