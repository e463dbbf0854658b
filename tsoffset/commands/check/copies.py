"""Findings on sampled copies: what differs from the source, and which setting fits (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.commands.check.samples import CONTENT, MOST_TOPICS, Copy, SampledTopic
from tsoffset.commands.check.survey import Stamp
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FailureKind, TimestampType
from tsoffset.rule.reasons import rewritten
from tsoffset.terminal.output import abridge, plural


def sampled_copies(
    flow: FlowSettings,
    samples: Sequence[SampledTopic],
    newest_stamps: Mapping[str, Stamp],
    topics: int,
) -> Iterator[Finding]:
    """Report what differs in each topic, and how many copies equal their source records.

    `newest_stamps` tells who set the timestamps of the newest records of each target topic; if the
    target did, another finding reports it. `topics` is the number of topics, sampled or not.
    """
    samples = [
        sampled
        for sampled in samples
        if newest_stamps.get(sampled.topic.target) is not TimestampType.LOG_APPEND_TIME
    ]
    at = Scope(flow.name, flow.target.alias)
    copies = [copy for sampled in samples for copy in sampled.copies]
    changed = {_changed_parts(sampled) for sampled in samples}
    # No setting fits both topics in which only keys differ and topics in which only values do.
    conflicting = all(frozenset({part}) in changed for part in CONTENT)
    for sampled in samples:
        failed, stamp = sampled.failed, newest_stamps.get(sampled.topic.target)
        # Other findings report missing rights, and a topic whose timestamps could not be read.
        reported = isinstance(stamp, Failed) or (
            failed is not None and failed.kind is FailureKind.AUTHORIZATION
        )
        if failed is not None and not reported:
            yield at.failure(f"topic {sampled.topic.target}", failed)
        if sampled.diverged is not None:
            yield at.error(f"topic {sampled.topic.target}", *cause_and_step(sampled.diverged))
        if sampled.stamped_by_target:
            _, remedy = cause_and_step(rewritten(sampled.topic.target).message)
            yield at.warning(
                f"topic {sampled.topic.target}",
                "older records have timestamps of the target (LogAppendTime): groups with offsets"
                " among them are skipped (TARGET_REWRITES_TIMESTAMPS), in the whole topic",
                f"wait until retention has deleted these records, or {remedy}",
            )
        elif sampled.copies:
            yield from _different(flow, at, sampled, conflicting=conflicting)
        elif sampled.looked_for and sampled.diverged is None:
            yield at.warning(
                f"topic {sampled.topic.target}",
                f"no copy found of {plural(sampled.looked_for, 'sampled record')} of"
                f" {sampled.topic.source}: not mirrored yet, deleted on the target, or copied with"
                " another timestamp or with several changes",
                f"check that the replicator copies {sampled.topic.source} from"
                f" {flow.source.alias} to it, and keeps timestamps, keys and values",
            )
    yield from _offset_header(flow, at, copies)
    yield from _offsets(flow, at, samples)
    missing = sum(sampled.looked_for for sampled in samples) - len(copies)
    yield from _summary(flow, at, copies, missing, topics)


def _changed_parts(sampled: SampledTopic) -> frozenset[str]:
    return frozenset[str]().union(*(copy.differs for copy in sampled.copies))


def _different(
    flow: FlowSettings, at: Scope, sampled: SampledTopic, *, conflicting: bool
) -> Iterator[Finding]:
    parts = _changed_parts(sampled)
    if not parts:
        return
    changed = " and ".join(f"{part}s" for part in CONTENT if part in parts)
    number = sum(bool(copy.differs) for copy in sampled.copies)
    of_all = f"{number} of {plural(len(sampled.copies), 'sampled record')}"
    subject, what = f"topic {sampled.topic.target}", f"{changed} differ from the source's in"
    if not parts & flow.translation.match:
        yield at.ok(subject, f"{what} {of_all}, and translation.match ignores them")
        return
    kept = [part for part in CONTENT if part not in parts]
    if not kept:
        remedy = (
            "configure the replicator to keep keys or values: a timestamp alone does not identify a"
            " copy"
        )
    elif any(getattr(copy.original, kept[0]) is None for copy in sampled.copies if copy.differs):
        remedy = (
            f"configure the replicator to keep {changed}: these records have no {kept[0]}s, so"
            " only timestamps could be compared"
        )
    elif conflicting:
        remedy = (
            f"move this topic to a separate flow with translation.match = timestamp,{kept[0]}, or"
            f" configure the replicator to keep {changed}: other topics of this flow need another"
            " setting"
        )
    else:
        remedy = (
            f"set {flow.name}.translation.match = timestamp,{kept[0]} if the replicator changes"
            f" {changed} on purpose"
        )
    # If every sample differs, no translation of the topic can be proven.
    say = at.error if number == len(sampled.copies) else at.warning
    yield say(subject, f"{what} {of_all}", remedy)


def _offset_header(flow: FlowSettings, at: Scope, copies: Sequence[Copy]) -> Iterator[Finding]:
    header = flow.translation.offset_header
    if header is None or not copies:
        return
    right = sum(copy.record.source_offset == copy.original.offset for copy in copies)
    wrong = sum(copy.record.source_offset is not None for copy in copies) - right
    words = f"the source's offset in {right} of {len(copies)} sampled copies"
    if wrong:
        words += f", another number in {wrong}"
    if right == len(copies):
        yield at.ok(f"header {header.name}", words)
    else:
        yield at.warning(
            f"header {header.name}",
            words,
            f"correct {flow.name}.translation.offset.header (name, and binary or text), or remove"
            " it: content proves translations without it",
        )


def _offsets(flow: FlowSettings, at: Scope, samples: Sequence[SampledTopic]) -> Iterator[Finding]:
    if flow.translation.expect is None:
        return
    moved = [
        sampled.topic.target
        for sampled in samples
        if any(copy.record.offset != copy.original.offset for copy in sampled.copies)
    ]
    if moved:
        yield at.error(
            "offsets",
            f"copies have other offsets than their source records in {abridge(moved)}: the"
            " replicator does not keep offsets, and the groups are skipped (DIVERGED)",
            f"remove {flow.name}.translation.expect",
        )
    elif found := sum(len(sampled.copies) for sampled in samples):
        yield at.ok("offsets", f"equal on both clusters in {plural(found, 'sampled record')}")


def _summary(
    flow: FlowSettings, at: Scope, copies: Sequence[Copy], missing: int, topics: int
) -> Iterator[Finding]:
    if not copies:
        return
    same = sum(not copy.differs for copy in copies)
    words = f"equal in timestamp, key and value: {same} of {plural(len(copies), 'sampled record')}"
    if missing:
        words += f"; no copy found of {missing} more"
    if topics > MOST_TOPICS:
        words += f"; {MOST_TOPICS} of {topics} topics sampled"
    yield at.ok("samples", words)
