"""Making the API's answers from the daemon's status."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.daemon.freshness import on_target
from tsoffset.daemon.status import Board, FlowStatus, Lead
from tsoffset.daemon.summary import Entry, SummaryKey
from tsoffset.server import answers
from tsoffset.terminal.next_step import SuggestedCommand


def flows_answer(board: Board, statuses: Iterable[tuple[FlowStatus, Lead]]) -> answers.FlowsAnswer:
    now = board.now()
    flows = [flow_answer(board, status, lead, now) for status, lead in statuses]
    told = {"instance": board.instance, "at": now, "warnings": board.warnings, "flows": flows}
    return answers.FlowsAnswer.model_validate(told)


def flow_answer(board: Board, status: FlowStatus, lead: Lead, now: float) -> answers.FlowAnswer:
    flow = status.flow
    totals = board.summary(status, SummaryKey.GROUP).totals
    named = {
        field.name: getattr(status, field.name)
        for field in fields(status)
        if field.name in answers.FlowAnswer.model_fields
    }
    told = {
        **named,
        "name": status.name,
        "source": flow.source.alias,
        "target": flow.target.alias,
        # While the flow's thread hangs, its own messages are old.
        "messages": [*dict.fromkeys(filter(None, (lead.problem, *status.messages)))],
        "commits": flow.commits,
        "interval_seconds": flow.sync_interval_seconds,
        "limit_seconds": flow.longest_cycle_seconds,
        "unknown_since": status.unknown_since(now),
        "lag_estimate_records": status.lag_estimate(totals["lag_records"], now),
        "last_cycle": status.last,
        "leads": lead.here,
        "leader": lead.leader,
        "age_seconds": seconds_since(status.known_at, now),
        "totals": totals | {"lag_seconds": seconds_since(totals["in_sync_at"], now)},
    }
    return answers.FlowAnswer.model_validate(told)


StepOf = Callable[[str | None, str | None], SuggestedCommand | None]
"""From a group and a reason to the next step."""


def entry_fields(entry: Entry, now: float, step: StepOf, name: str = "name") -> dict[str, Any]:
    """The fields of an entry or a row. `name` is the field with its name, for a row `group`."""
    return {
        **entry,
        "next_step": step(entry[name], entry["reason"]),
        "lag_seconds": seconds_since(entry["in_sync_at"], now),
    }


def replication_lags(status: FlowStatus) -> dict[str, int]:
    """The replication lag of each source topic in records, over the partitions where it is
    known."""
    known = pl.DataFrame(status.replication).drop_nulls()
    topic = pl.col("source_topic").cast(pl.String)
    return dict(known.group_by(topic).agg(pl.col("lag_records").sum()).iter_rows())


def row_answers(rows: pa.Table, now: float, step: StepOf) -> list[answers.PairRow]:
    return [
        answers.PairRow.model_validate(entry_fields(row, now, step, "group"))
        for row in rows.to_pylist()
    ]


def resumptions(rows: pa.Table, now: float, step: StepOf) -> list[answers.Resumption]:
    """Where the consumers of a group would resume; rows without a partition are omitted."""
    rows = rows.append_column("offset", on_target(rows)).filter(pc.is_valid(rows["source_topic"]))
    return [
        answers.Resumption.model_validate(
            {
                **entry_fields(row, now, step, "group"),
                "precision": row["precision"] if row["offset"] == row["target_offset"] else None,
                "reread_bound": row["lag_records"],
                "age_seconds": seconds_since(row["in_sync_at"], now),
            }
        )
        for row in rows.to_pylist()
    ]


def cycle_fields(status: FlowStatus, now: float) -> dict[str, Any]:
    """The fields of `answers.AsOfCycle`."""
    cycle = None if status.last_reached is None else status.last_reached.number
    return {"at": now, "cycle": cycle, "age_seconds": seconds_since(status.known_at, now)}


def seconds_since(at: float | None, now: float) -> float | None:
    """Seconds since a time; 0 for a future time, since clocks may be set back."""
    return None if at is None else max(0.0, now - at)
