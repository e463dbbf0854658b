"""Findings on rights: which are missing, and the command that grants them (pure).

Nothing is tried out: brokers report what they allow (KIP-430).
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix

from tsoffset.commands.check.findings import Finding, Scope
from tsoffset.commands.check.survey import NO_NAME, SourceSurvey
from tsoffset.flow.narrowing import written_groups, written_topics
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Allowed,
    Failed,
    Operation,
    Resource,
    Rights,
    Side,
)
from tsoffset.terminal.output import abridge, plural

_NAMES_IN_A_COMMAND = 5
_SEPARATED = re.compile(r".*[._-]")
_READ, _DESCRIBE = Operation.READ, Operation.DESCRIBE

# What a cycle needs on each topic and group. Nothing is written to the source, and only commits to
# the target, for which Kafka requires READ.
NEEDED = {
    (Side.SOURCE, Resource.TOPIC): frozenset({_DESCRIBE, _READ}),
    (Side.SOURCE, Resource.GROUP): frozenset({_DESCRIBE}),
    (Side.TARGET, Resource.TOPIC): frozenset({_DESCRIBE, _READ}),
    (Side.TARGET, Resource.GROUP): frozenset({_DESCRIBE, _READ}),
}


@dataclass(frozen=True, slots=True)
class Granting:
    """A flow's user on one of its clusters. `principal` is None if only the brokers know it."""

    flow: str
    cluster: ClusterSettings
    principal: str | None

    @property
    def at(self) -> Scope:
        return Scope(self.flow, self.cluster.alias)

    @property
    def to_principal(self) -> str:
        return "" if self.principal is None else f", as {self.principal}"

    def command(
        self, resource: Resource, of: Sequence[str], operations: Collection[Operation]
    ) -> str:
        """The kafka-acls command that grants these operations: for each of a few names, for the
        common prefix of many, or for all."""
        words = ["kafka-acls", "--bootstrap-server", ",".join(self.cluster.bootstrap_servers)]
        words += ["--add", "--allow-principal", self.principal or "User:<principal>"]
        for operation in sorted(operations):
            words += ["--operation", operation]
        if resource is Resource.CLUSTER:
            words.append("--cluster")
        elif len(of) <= _NAMES_IN_A_COMMAND:
            for name in of:
                words += [f"--{resource}", name]
        elif begin := _SEPARATED.match(commonprefix(of)):  # noqa: RUF071 no paths
            words += ["--resource-pattern-type", "prefixed", f"--{resource}", begin.group()]
        else:
            words += [f"--{resource}", "*"]
        return shlex.join(words)

    def remedy(
        self, resource: Resource, of: Sequence[str], operations: Collection[Operation]
    ) -> str:
        advice = f"run {self.command(resource, of, operations)}"
        if self.principal is None:
            advice += (
                " (<principal>: the name under which the brokers know this client; see their log)"
            )
        return advice


def source_rights(
    flow: FlowSettings, survey: SourceSurvey, granting: Granting
) -> Iterator[Finding]:
    """Report rights that a cycle lacks on the source, and what this user may not see there."""
    rights = survey.rights
    of_topics = {topic.source: rights.topics[topic.source] for topic in survey.synced}
    # A group whose committed offsets could be read may be described.
    of_groups = {name: rights.groups.get(name, frozenset({_DESCRIBE})) for name in survey.commits}
    yield from missing_rights(Side.SOURCE, granting, of_topics, of_groups)
    yield from unnoticed_groups(granting, rights)
    sees_all = isinstance(rights.cluster, frozenset) and _DESCRIBE in rights.cluster
    complete = not survey.listings.failures
    topics, groups = written_topics(flow.topic_filter), written_groups(flow.group_filter)
    for resource, answers, unseen in (
        (Resource.TOPIC, rights.topics, survey.unseen_topics),
        (Resource.GROUP, rights.groups, survey.unseen_groups),
    ):
        yield from _hidden_names(granting, resource, answers, unseen, complete=complete)
    if not topics.only:
        yield from _partial_listing(granting, Resource.TOPIC, rights.topics)
    if not (groups.only or sees_all):
        yield from _partial_listing(granting, Resource.GROUP, rights.groups)


def missing_rights(
    side: Side, granting: Granting, topics: Mapping[str, Allowed], groups: Mapping[str, Allowed]
) -> Iterator[Finding]:
    """Report the rights that a cycle lacks, or, if none is missing, those that it has."""
    at, has, complete = granting.at, [], True
    for resource, answers in ((Resource.TOPIC, topics), (Resource.GROUP, groups)):
        operations, subject = NEEDED[side, resource], f"rights on {resource}s"
        if found := missing_operations(answers, operations):
            missing = frozenset[Operation]().union(*found.values())
            yield at.error(
                subject,
                f"{_names_of(missing)} missing on {plural(len(found), resource)} "
                f"({abridge(list(found))}){granting.to_principal}",
                granting.remedy(resource, list(found), missing),
            )
        failures = [answer for answer in answers.values() if isinstance(answer, Failed)]
        if failures:
            yield at.failure(subject, failures[0])
        unknown = sum(answer is None for answer in answers.values())
        if unknown:
            yield at.ok(
                subject,
                f"not known for {plural(unknown, resource)}: brokers report rights since Kafka 2.3",
                f"check that this principal has {_names_of(operations)} on them",
            )
        complete = complete and not (found or failures or unknown)
        if answers:
            has.append(f"{_names_of(operations)} on {plural(len(answers), resource)}")
    if has and complete:
        yield at.ok("rights", "; ".join(has) + granting.to_principal)


def missing_operations(
    answers: Mapping[str, Allowed], operations: Collection[Operation]
) -> dict[str, frozenset[Operation]]:
    """The names on which some operations are not allowed, with these operations."""
    return {
        name: frozenset(operations) - allowed
        for name, allowed in answers.items()
        if isinstance(allowed, frozenset) and not allowed.issuperset(operations)
    }


def _hidden_names(
    granting: Granting,
    resource: Resource,
    answers: Mapping[str, Allowed],
    unseen: Sequence[str],
    *,
    complete: bool,
) -> Iterator[Finding]:
    """Report names that a filter spells out and no listing has: hidden by rights, or nonexistent.
    `complete`: all brokers returned their listing."""
    at = granting.at
    key = f"{resource}s"
    hidden = [name for name in unseen if answers.get(name) == frozenset()]
    if hidden:
        also = ", and which committed offsets they have" if resource is Resource.TOPIC else ""
        yield at.error(
            f"{key} hidden by rights",
            f"{key} names {abridge(hidden)}, which this principal may not describe, so it is not"
            f" known whether they exist{also}",
            granting.remedy(resource, hidden, NEEDED[Side.SOURCE, resource]),
        )
    failures = [answer for name in unseen if isinstance(answer := answers.get(name), Failed)]
    if failures:
        yield at.failure(key, failures[0])
    absent = [
        name for name in unseen if name not in hidden and not isinstance(answers.get(name), Failed)
    ]
    if absent and complete:
        yield at.warning(
            f"{key} that do not exist",
            f"{key} names {abridge(absent)}",
            f"correct {key}, unless they will be created later",
        )


def _partial_listing(
    granting: Granting, resource: Resource, answers: Mapping[str, Allowed]
) -> Iterator[Finding]:
    """Report a listing that may be incomplete: brokers list only topics and groups that the
    principal may describe; all groups if it may describe the cluster."""
    if answers.get(NO_NAME) == frozenset():
        yield granting.at.ok(
            f"{resource}s",
            f"the list has only {resource}s that this principal may describe; Kafka hides all"
            " others",
            f"if the filter should select more, {granting.remedy(resource, ['*'], {_DESCRIBE})}",
        )


def unnoticed_groups(granting: Granting, rights: Rights) -> Iterator[Finding]:
    """Report that a cycle cannot notice groups that no broker lists."""
    if rights.topics.get(GROUP_OFFSETS_TOPIC) == frozenset():
        yield granting.at.warning(
            f"topic {GROUP_OFFSETS_TOPIC}",
            f"DESCRIBE is missing{granting.to_principal}: if a partition of this topic has no"
            " leader, the groups in it are missing without a message",
            granting.remedy(Resource.TOPIC, [GROUP_OFFSETS_TOPIC], {_DESCRIBE}),
        )


def _names_of(operations: Iterable[Operation]) -> str:
    return " and ".join(operation.name for operation in sorted(operations))
