"""The command to run for a row that was skipped or failed, for its flow and group, to be pasted."""

import shlex
from dataclasses import dataclass

from tsoffset.flow.narrowing import whole_name
from tsoffset.model import FailureKind, Reason


@dataclass(frozen=True, slots=True)
class SuggestedCommand:
    when: str
    command: str


_EXPLAIN = "To see why", "explain --flow {flow} --group {name}"
_CHECK = "To see what is wrong", "check --flow {flow} --groups {groups}"
_SYNC = "sync --flow {flow} --groups {groups}"
NOT_READ_THERE = "If its consumers have not read these records on the target"
_REWIND = NOT_READ_THERE, f"{_SYNC} --allow-rewind"
_AGAIN = "To try again", _SYNC
_STEPS: dict[str, tuple[str, str]] = {
    Reason.UNSUPPORTED_GROUP: (
        "To exclude it",
        "lists --flow {flow} --groups-exclude-add {groups}",
    ),
    Reason.SEVERAL_SOURCES: _CHECK,
    Reason.TARGET_MISSING: _CHECK,
    Reason.TARGET_REWRITES_TIMESTAMPS: _CHECK,
    Reason.NOT_MIRRORED: ("Once the replicator has caught up", _SYNC),
    Reason.SOURCE_REWOUND: _REWIND,
    Reason.TARGET_AHEAD: _REWIND,
    Reason.TARGET_REWOUND: ("Once it is reset on the source, too", _SYNC),
    Reason.GROUP_ACTIVE: ("Once its consumers on the target are stopped", _SYNC),
    "SOURCE_ACTIVE": ("Once its consumers on the source are stopped", "failover --flow {flow}"),
    "NO_COMMIT": ("Once the source can be reached again", _SYNC),
    FailureKind.CORRUPT_BATCH: _EXPLAIN,
    FailureKind.INTERNAL: _EXPLAIN,
    FailureKind.COORDINATOR: _AGAIN,
    FailureKind.TIMEOUT: _AGAIN,
    **dict.fromkeys(
        (
            FailureKind.AUTHENTICATION,
            FailureKind.AUTHORIZATION,
            FailureKind.UNREACHABLE,
            FailureKind.NO_LEADER,
            FailureKind.UNSUPPORTED_VERSION,
        ),
        _CHECK,
    ),
}


# While the source is lost, no command can translate.
_STEPS_WITHOUT_SOURCE: dict[str, tuple[str, str] | None] = {
    Reason.DIVERGED: ("Once the source can be reached again", _EXPLAIN[1]),
    "NO_COMMIT": _STEPS["NO_COMMIT"],
    Reason.GROUP_ACTIVE: None,
}
_FAILOVER_AGAIN = "To try again", "failover --flow {flow}"
# `check` does not know an offset that an application keeps: the message of these rows has the step.
_SAID_BY_MESSAGE = (
    Reason.TARGET_MISSING,
    Reason.EXPIRED,
    Reason.PAST_LOG_END,
    Reason.NOT_MIRRORED,
)


def step_of_stored(config: str, flow: str, reason: str | None) -> SuggestedCommand | None:
    """The command for a row of an offset that an application keeps; None if there is none."""
    return None if reason in _SAID_BY_MESSAGE else next_step(config, flow, None, reason)


def next_step(
    config: str, flow: str, group: str | None, reason: str | None, *, source_lost: bool = False
) -> SuggestedCommand | None:
    """The command for a row of the group; None if there is none. `reason` is that of a row or a
    verdict, or several separated by blanks (the first counts); `config` is the file."""
    if reason is None:
        return None
    if source_lost:
        step = _STEPS_WITHOUT_SOURCE.get(reason, _FAILOVER_AGAIN)
        if step is None:
            return None
        when, words = step
    else:
        when, words = _STEPS.get(reason.split()[0], _EXPLAIN)
    if group is None and not source_lost:
        # It failed before groups were known.
        when, words = _CHECK[0], "check --flow {flow}"
    elif group is not None and not group.isprintable():
        # A name with control characters is shown escaped, so it cannot be pasted.
        return None
    named = words.format(
        flow=shlex.quote(flow),
        name=shlex.quote(group or ""),
        groups=shlex.quote(whole_name(group or "")),
    )
    command, _, rest = named.partition(" ")
    return SuggestedCommand(when, f"tsoffset {command} -c {shlex.quote(config)} {rest}")
