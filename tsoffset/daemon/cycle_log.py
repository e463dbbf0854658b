"""What the log says of a flow's cycles: each thing once, until it has gone away."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.model import FailureKind, OutcomeKind, Reason, Row
from tsoffset.spark.flow import CycleResult, Rows

log = structlog.get_logger(__name__)

_MESSAGES_PER_CYCLE = 20
_RowNews = tuple[Reason | FailureKind | None, str | None, str | None, int | None]
# Skips that an operator has to end; the others pass with time or are as they should be.
_TO_BE_REMEDIED = (
    Reason.SEVERAL_SOURCES,
    Reason.TARGET_REWRITES_TIMESTAMPS,
    Reason.DIVERGED,
    Reason.TARGET_PAST_LOG_END,
    Reason.SOURCE_REWOUND,
)


class CycleLog:
    """What was told of a flow, and so is not told again."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._warnings: frozenset[str] = frozenset()
        self._rows: frozenset[_RowNews] = frozenset()
        self._told: dict[str, str | None] = {}

    def tell(self, result: CycleResult) -> None:
        """Log what the last cycle did not say, of warnings and of rows that need attention."""
        self._tell_warnings(result.warnings)
        self._tell_rows(Rows(_needing_attention(result.rows.table)))

    def warn(self, event: str, message: str | None) -> None:
        """Say it once, until it has gone away (None)."""
        if message is not None and self._told.get(event) != message:
            log.warning(event, flow=self._flow, message=message)
        self._told[event] = message

    def _tell_warnings(self, warnings: Sequence[str]) -> None:
        for warning in dict.fromkeys(warnings):
            if warning not in self._warnings:
                log.warning("cycle_warning", flow=self._flow, message=warning)
        self._warnings = frozenset(warnings)

    def _tell_rows(self, rows: Iterable[Row]) -> None:
        # By what a row is about, not by its words: these may hold numbers that move.
        found = {(row.reason, row.group, row.source_topic, row.partition): row for row in rows}
        new = Counter(
            (row.reason, row.message) for key, row in found.items() if key not in self._rows
        )
        self._rows = frozenset(found)
        for (reason, message), number in list(new.items())[:_MESSAGES_PER_CYCLE]:
            log.warning(
                "rows_need_attention",
                flow=self._flow,
                reason=reason,
                rows=number,
                message=message,
            )
        if (more := len(new) - _MESSAGES_PER_CYCLE) > 0:
            log.warning("further_messages_left_out", flow=self._flow, messages=more)


def _needing_attention(rows: pa.Table) -> pa.Table:
    """The rows that failed, and the skips that an operator has to end."""
    outcome, reason = (rows[name].cast(pa.string()) for name in ("outcome", "reason"))
    remedied = pc.is_in(reason, value_set=pa.array(_TO_BE_REMEDIED, pa.string()))
    return rows.filter(pc.or_(pc.equal(outcome, OutcomeKind.FAILED), remedied))
