"""Compares a flow: its checkpoints, the target groups' committed offsets, and the translations.

It reads the target groups' offsets and the newest checkpoints first, and then the committed offsets
on the source. So the translated committed offset is never older than the one behind the checkpoint,
and a checkpoint past the translation is a real difference.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tsoffset.cluster import Cluster, Connect, all_failed, committed_columns
from tsoffset.commands.compare.checkpoint_file import read_checkpoint_file
from tsoffset.commands.compare.judgment import (
    CheckpointVerdict,
    ComparedPair,
    compare_pair,
    with_repeats,
)
from tsoffset.commands.compare.options import Against, CompareOptions
from tsoffset.commands.compare.repeats import Span, check_repeats
from tsoffset.cycle.source_commits import SourceCommit, preflight, renamings_of, selected_groups
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit_rule import decide
from tsoffset.group_sync.open_flow import OpenFlow, open_flow
from tsoffset.group_sync.read import target_commits, with_current
from tsoffset.group_sync.rows import failed_row, rows_table
from tsoffset.group_sync.tables import COMMIT_RESULTS, select
from tsoffset.group_sync.translated_commits import TranslatedCommit, commit_work, result_rows
from tsoffset.model import (
    GroupType,
    Isolation,
    LogRange,
    OutcomeKind,
    Row,
    Translated,
)
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    Checkpoints,
    committed_by_key,
    read_checkpoints,
)
from tsoffset.terminal.output import plural
from tsoffset.terminal.row_columns import reread_of


@dataclass(frozen=True, slots=True)
class FlowComparison:
    """The comparison of one flow at `at_ms`: its pairs by group, topic and partition.

    `warnings` are sentences for a person, for example on a missing checkpoints topic.
    `unreachable`: a cluster could not be reached at all, and the flow has one failed pair without a
    group.
    """

    flow: str
    at_ms: int
    pairs: tuple[ComparedPair, ...]
    warnings: tuple[str, ...] = ()
    unreachable: bool = False

    @property
    def exit_status(self) -> int:
        failed = (pair.verdict is CheckpointVerdict.FAILED for pair in self.pairs)
        return 3 if self.unreachable else int(any(failed))


def compare(
    flows: Iterable[FlowSettings],
    connect: Connect,
    *,
    settings: Settings,
    options: CompareOptions | None = None,
    unreachable: Mapping[str, ClusterUnreachable] | None = None,
) -> Iterator[FlowComparison]:
    """Compare each of `flows`, one after the other; `settings` have the flows that may compete
    with them. `unreachable` has the error of each flow (by name) that is known to be unreachable.
    Raises UsageError for a file without checkpoints."""
    options = options or CompareOptions()
    for flow in flows:
        at_ms = int(time.time() * 1000)
        warnings: list[str] = []
        try:
            if unreachable and flow.name in unreachable:
                raise unreachable[flow.name]
            with open_flow(flow, connect, settings) as opened:
                pairs = list(_compare_flow(opened, options, at_ms, warnings))
        except ClusterUnreachable as error:
            failed = compare_pair(at_ms, failed_row(flow.name, all_failed(error)), None)
            yield FlowComparison(flow.name, at_ms, (failed,), tuple(warnings), unreachable=True)
            continue
        ordered = tuple(sorted(pairs, key=_sort_key))
        yield FlowComparison(flow.name, at_ms, ordered, tuple(warnings))


def _sort_key(pair: ComparedPair) -> tuple[str, str, int]:
    partition = -1 if pair.partition is None else pair.partition
    return pair.group or "", pair.source_topic or "", partition


def _compare_flow(
    opened: OpenFlow, options: CompareOptions, at_ms: int, warnings: list[str]
) -> Iterator[ComparedPair]:
    """Read, translate, compare. Adds to `warnings`. Raises ClusterUnreachable and UsageError."""
    flow, source, target = opened.settings, opened.source, opened.target
    start = preflight(flow, source, target)
    warnings += start.warnings
    for failure in start.failures:
        yield compare_pair(at_ms, failed_row(flow.name, failure))
    names = [work.group for work in start.groups]
    shared = {work.group for work in start.groups if work.type is GroupType.SHARE}
    current = committed_columns(target, names, share_groups=shared, require_stable=True)
    offsets = committed_by_key(current.by_group())
    if options.against is Against.TIMESTAMPS:
        commits = opened.commits(start.groups)
        checkpoints = _by_timestamps(opened, commits, offsets)
        # Content, even if the configuration says timestamps: the rule is not compared with itself.
        opened = _with_proof(opened, "content")
    else:
        checkpoints = _checkpoints_of(flow, options, target, offsets, warnings)
        commits = opened.commits(start.groups)
    translated = opened.translate(commits)
    work = commit_work(translated)
    decided = decide(with_current(work, target_commits(current)), flow.translation.floor)
    rows = [*result_rows(flow.name, work, select(decided, COMMIT_RESULTS))]
    rereads = reread_of(rows_table(rows)).to_pylist()
    partitions = {commit.partition for commit in commits if commit.partition is not None}
    ends = source.log_ranges(partitions, Isolation.READ_UNCOMMITTED)
    unsafe: dict[Span, list[ComparedPair]] = defaultdict(list)
    for one, row, reread in zip(translated, rows, rereads, strict=True):
        commit = one.commit
        log = None if commit.partition is None else ends[commit.partition]
        pair = compare_pair(
            at_ms,
            row,
            one.answer(row),
            checkpoints,
            None if commit.target is None else CheckpointKey(commit.group, commit.target),
            source_end=log.end if isinstance(log, LogRange) else None,
            target_range=None if one.position is None else one.position.target_range,
            reread=reread,
        )
        if (span := _span(one, pair)) is None:
            yield pair
        else:
            unsafe[span].append(pair)
    match, isolation = flow.translation.match, flow.isolation
    for span, repeated in check_repeats(unsafe, source, target, isolation, match):
        yield from (with_repeats(pair, repeated) for pair in unsafe[span])
    # A group that no broker lists may still exist.
    if not start.failures:
        yield from _without_commits(opened, commits, checkpoints, at_ms)


def _checkpoints_of(
    flow: FlowSettings,
    options: CompareOptions,
    target: Cluster,
    committed: Mapping[CheckpointKey, int],
    warnings: list[str],
) -> Checkpoints:
    """The checkpoints of the flow's groups. `committed` are the target groups' offsets. Adds to
    `warnings`. Raises ClusterUnreachable, and UsageError for a file without checkpoints."""

    def is_selected(key: CheckpointKey) -> bool:
        return bool(selected_groups(flow, [key.group])[0])

    if options.file is not None:
        found = Checkpoints(committed)
        read_checkpoint_file(options.file, found, is_selected)
        where = f"flow {flow.name}: {options.file}"
        ignored, remedy = plural(found.malformed, "line"), "check that the dump is complete"
        if not (found.newest or found.malformed):
            warnings.append(
                f"{where} has no checkpoint of this flow's groups, so there is nothing to compare"
                " with; dump the topic from its beginning, and check which groups the flow selects"
            )
    else:
        topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
        found = read_checkpoints(target, topic, wanted=is_selected, committed=committed)
        where = f"flow {flow.name}: {topic} on {target.alias}"
        ignored = plural(found.malformed, "record")
        remedy = "check which other application writes to this topic"
        if found.missing:
            warnings.append(
                f"{where} does not exist, so there is nothing to compare with; start MirrorMaker"
                " 2's checkpoint connector (emit.checkpoints.enabled), or set the same"
                " replication.policy keys in this file as MirrorMaker 2 runs with"
            )
    if found.malformed:
        warnings.append(f"{where}: {ignored} ignored because they are not checkpoints; {remedy}")
    return found


def _by_timestamps(
    opened: OpenFlow, commits: Sequence[SourceCommit], committed: Mapping[CheckpointKey, int]
) -> Checkpoints:
    """The answers of KIP-1292's rule for the commits, as if they were checkpoints. Raises
    ClusterUnreachable."""
    found = Checkpoints(committed)
    for one in _with_proof(opened, "timestamps").translate(commits):
        commit, position = one.commit, one.position
        if commit.target is None or commit.committed is None or position is None:
            continue
        key, outcome = CheckpointKey(commit.group, commit.target), position.translation.outcome
        if isinstance(outcome, Translated):
            found.add(key, Checkpoint(commit.committed.offset, outcome.target_offset, None))
        else:
            found.unanswered[key] = f"KIP-1292's rule has no answer: {outcome.message}"
    return found


def _with_proof(opened: OpenFlow, proof: str) -> OpenFlow:
    flow = opened.settings
    changed = replace(flow, translation=replace(flow.translation, proof=proof))
    return replace(opened, settings=changed)


def _source_topic(flow: FlowSettings, topic: str) -> str | None:
    """The source's name of a target topic that the flow syncs; None for other topics, also if a
    class of the user's raises an error for it."""
    policy = flow.policy
    try:
        names = policy.upstream_topic(topic), policy.format_remote_topic(flow.target.alias, topic)
    except Exception:
        return None
    renamings, _ = renamings_of(flow, filter(None, names))
    for name, renaming in renamings.items():
        if renaming is not None and renaming.topic == topic:
            return name
    return None


def _without_commits(
    opened: OpenFlow, commits: Sequence[SourceCommit], checkpoints: Checkpoints, at_ms: int
) -> Iterator[ComparedPair]:
    """Checkpoints of groups that no longer have a committed offset on the source, in topics that
    the flow syncs."""
    flow = opened.settings
    known = {CheckpointKey(commit.group, commit.target) for commit in commits if commit.target}
    # Nothing is known of a group that failed as a whole.
    failed = {commit.group for commit in commits if commit.target is None}
    left = [key for key in checkpoints.newest if key not in known and key.group not in failed]
    groups = sorted({key.group for key in left})
    columns = committed_columns(opened.target, groups, require_stable=True)
    current = committed_by_key(columns.by_group())
    why = "the group has no committed offset on the source any more: it expired or was deleted"
    for key in left:
        copy = key.target
        if (topic := _source_topic(flow, copy.topic)) is not None:
            at = (key.group, topic, copy.partition, None, None, copy.topic, None, current.get(key))
            row = Row(flow.name, *at, OutcomeKind.SKIPPED, message=why)
            yield compare_pair(at_ms, row, None, checkpoints, key)


def _span(translated: TranslatedCommit, pair: ComparedPair) -> Span | None:
    """The records between tsoffset's offset and a checkpoint that may skip them, else None. None in
    failback: there the source is the mirror, and may not have copies of these records yet."""
    commit, position, end = translated.commit, translated.position, pair.theirs
    answer = None if position is None else position.translation.outcome
    if (
        pair.verdict is not CheckpointVerdict.UNSAFE
        or commit.failback
        or (pair.records is None or end is None)
        or (commit.partition is None or commit.target is None)
        or (position is None or not isinstance(answer, Translated))
    ):
        return None
    start, log = end - pair.records, position.target_range
    ends = (
        (original + log.end - 1 - copy, log.end - 1)
        for original, copy in answer.pairs
        if log is not None and original >= position.offset and start <= copy < end
    )
    at = (commit.partition, position.offset, commit.target, start, end)
    return Span(*at, next(ends, None), not commit.is_remote_topic)
