"""Which proof of translations the target topics allow (pure)."""

from collections.abc import Iterator, Sequence

from tsoffset.commands.check.configs import Compared
from tsoffset.commands.check.findings import Finding, Scope, cause_and_step, names
from tsoffset.commands.check.rights import Granting
from tsoffset.cycle.cleanup_policy import is_compacted, needs_cleanup_policy
from tsoffset.flow.policy import target_topic
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FailureKind, Operation, Resource
from tsoffset.terminal.output import counted

_SUBJECT = "proof"
_LESS = (
    "the proof by first copy cannot be used in them, so a group that is far behind may get an"
    " earlier offset, or none"
)


def allowed_proofs(
    flow: FlowSettings, pairs: Sequence[Compared], target: Granting, *, untold_youngest: bool
) -> Iterator[Finding]:
    """Which target topics allow the proof by first copy, which are compacted, and of which that is
    not known. Nothing where the flow's translations do not use that proof.

    `untold_youngest` says that a broker of the target cannot look up a log's largest timestamp.
    """
    if not needs_cleanup_policy(flow.translation):
        return
    at = Scope(flow.name, flow.target.alias)
    pairs = [pair for pair in pairs if not _is_failback(flow, pair)]
    compacted = [pair.topic.target for pair in pairs if is_compacted(pair.copy)]
    if deleting := [pair for pair in pairs if is_compacted(pair.copy) is False]:
        yield at.ok(
            _SUBJECT,
            f"{counted(len(deleting), 'topic')} not compacted: the proof by first copy can be"
            " used, which gives the best offsets to groups that are far behind",
        )
    if compacted:
        told = f"{counted(len(compacted), 'topic')} compacted ({names(compacted)}): {_LESS}"
        if untold_youngest:
            yield at.warning(
                _SUBJECT,
                f"{told}. On brokers before 3.0 it gets none more often, because they cannot look"
                " up a log's largest timestamp",
                "upgrade the target's brokers to 3.0 or later",
            )
        else:
            yield at.ok(_SUBJECT, told)
    yield from _unknown(at, pairs, target)


def _is_failback(flow: FlowSettings, pair: Compared) -> bool:
    renaming = target_topic(flow.policy, flow.source.alias, flow.target.alias, pair.topic.source)
    return renaming is not None and renaming.failback


def _unknown(at: Scope, pairs: Sequence[Compared], target: Granting) -> Iterator[Finding]:
    refused: list[str] = []
    others: list[str] = []
    why: Failed | None = None
    for pair in pairs:
        if isinstance(pair.copy, Failed) and pair.copy.kind is FailureKind.AUTHORIZATION:
            refused.append(pair.topic.target)
        elif is_compacted(pair.copy) is None:
            others.append(pair.topic.target)
            if why is None and isinstance(pair.copy, Failed):
                why = pair.copy
    if refused:
        yield at.warning(
            _SUBJECT,
            f"DESCRIBE_CONFIGS is missing on {counted(len(refused), 'topic')} ({names(refused)}),"
            f" so it is not known whether they are compacted: {_LESS}",
            target.remedy(Resource.TOPIC, refused, {Operation.DESCRIBE_CONFIGS}),
        )
    if others:
        cause, step = ("", None) if why is None else cause_and_step(why.message)
        told = f"cleanup.policy of {counted(len(others), 'topic')} ({names(others)}) is not known"
        yield at.warning(_SUBJECT, f"{told}{cause and f' ({cause})'}: {_LESS}", step)
