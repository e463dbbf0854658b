"""A daemon as the API sees it: a board of made-up cycles, and controls that only remember."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partialmethod
from typing import Any

import numpy as np
import pyarrow as pa
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from tests.memory_flows import flow
from tsoffset.daemon.points import PastCycles, RecentCycles
from tsoffset.daemon.status import Board, Cycle, Instance, Lead, Observer
from tsoffset.flow.settings import FlowSettings, ServerSettings
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.replication import REPLICATION
from tsoffset.group_sync.rows import ROWS, Rows, rows_table
from tsoffset.metrics.table import Declared
from tsoffset.model import OutcomeKind, Precision, Reason, Row
from tsoffset.server.application import application
from tsoffset.server.guard import Guard, Hosts
from tsoffset.server.listeners import serve
from tsoffset.terminal.row_columns import tally_of

AT = 1_800_000_000.0
FLOW = "A->B"
PATH = "/api/v1/flows/A-%3EB"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
TOKEN, READ_TOKEN = "changing-token-0123456789", "reading-token-0123456789"


def series_of(metric: Declared) -> list[str]:
    return [metric.name + suffix for suffix in SUFFIXES.get(metric.family().type, ("",))]


def row(
    group: str | None, topic: str | None = "orders", partition: int | None = 0, **more: Any
) -> Row:
    """A row that was committed and is exact, but for what is given."""
    fields: dict[str, Any] = {
        "flow": FLOW,
        "group": group,
        "source_topic": topic,
        "partition": partition,
        "source_offset": 50,
        "source_timestamp_ms": 1_799_999_999_000,
        "target_topic": None if topic is None else f"A.{topic}",
        "target_offset": 40,
        "current_target_offset": 30,
        "outcome": OutcomeKind.COMMITTED,
        "precision": Precision.EXACT,
        "reread_bound": 0,
        "consumer_lag": 7,
    }
    return Row(**{**fields, **more})


def skipped(group: str, topic: str = "orders", partition: int = 0, **more: Any) -> Row:
    """A row of a group that is active on the target, and stands at 30 there."""
    fields = {"outcome": OutcomeKind.SKIPPED, "reason": Reason.GROUP_ACTIVE}
    return row(group, topic, partition, **{**fields, "message": "has members; stop them", **more})


class Controls:
    """Remembers what it was asked."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.asked: list[tuple[str, str]] = []
        self.lead_of: dict[str, Lead] = {}

    def _ask(self, what: str, flow: str) -> None:
        if self._board.status(flow) is None:
            raise KeyError(flow)
        self.asked.append((what, flow))

    def lead(self, flow: str) -> Lead:
        if self._board.status(flow) is None:
            raise KeyError(flow)
        return self.lead_of.get(flow, Lead())

    def settings(self, flow: str) -> FlowSettings:
        status = self._board.status(flow)
        assert status is not None
        return status.flow

    pause = partialmethod(_ask, "pause")
    resume = partialmethod(_ask, "resume")
    sync_now = partialmethod(_ask, "sync")


class ServedFlows:
    """Flows A->B and B->A, and what is served of them; `seconds` is what each cycle takes."""

    seconds = 1.0

    def __init__(self, settings: ServerSettings | None = None) -> None:
        self.settings = settings or ServerSettings()
        self.now = AT
        instance = Instance("0123456789ab", "here", 42, AT - 100)
        self.board = Board(instance, now=lambda: self.now)
        self.board.set_flows([flow(), flow("B", "A")])
        self.controls = Controls(self.board)
        self.recent = RecentCycles()
        self.observers: list[Observer] = []

    def cycle(
        self,
        rows: Iterable[Row] | pa.Table,
        flow: str = FLOW,
        replication: Iterable[tuple[str, int, int | None, int | None]] = (),
        of_result: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Cycle:
        """A cycle has come to these rows now, and to these of REPLICATION; `of_result` are further
        fields of its result, `more` those of the cycle."""
        table = rows if isinstance(rows, pa.Table) else rows_table(rows)
        groups = len(table["group"].unique())
        result = CycleResult(flow, Rows(table), (), False, self.seconds, groups, len(table))
        known = [dict(zip(REPLICATION.names, one, strict=True)) for one in replication]
        told = {"replication": pa.Table.from_pylist(known, REPLICATION), **(of_result or {})}
        result = replace(result, **told)
        fields: dict[str, Any] = {"result": result, "tally": tally_of(table)}
        return self._ended(flow, **{**fields, "facts": {"flow": flow, "seconds": 1.0}, **more})

    def failure(self, error: str, flow: str = FLOW, *, over_limit: bool = False) -> Cycle:
        return self._ended(flow, error=error, over_limit=over_limit)

    def _ended(self, flow: str, **fields: Any) -> Cycle:
        status = self.board.status(flow)
        assert status is not None
        started = self.now - self.seconds
        cycle = Cycle(flow, status.cycles + 1, started, self.seconds, True)
        cycle = replace(cycle, **fields)
        after = self.board.cycle_ended(cycle)
        assert after is not None
        for observer in (self.recent, *self.observers):
            observer.cycle_ended(cycle, after)
        return cycle

    def serve(self, **more: Any) -> AbstractContextManager[tuple[str, ...]]:
        """A block in which it is served; the addresses. `more` goes to `application`."""
        return serve(self.settings, lambda: self.application(**more))

    def application(self, history: PastCycles | None = None, **more: Any) -> FastAPI:
        past = history or self.recent
        return application(self.settings, self.board, self.controls, past, **more)

    def client(
        self,
        *,
        hosts: Hosts | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> TestClient:
        """Somebody who asks it without sockets."""
        guard = Guard(self.application(**more), hosts or Hosts("localhost"))
        url = "http://localhost:8083"
        return TestClient(guard, url, headers=dict(headers or {}), follow_redirects=False)


def problem(response: Response, status: int) -> str:
    """The sentence and next step of a refusal with this status."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert told["title"]
    assert told["next_step"]
    assert told["status"] == status
    return f"{told['detail']}; {told['next_step']}"


def bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def many_rows(groups: int, partitions: int) -> pa.Table:
    """ROWS of so many groups with so many partitions each, every tenth group skipped."""
    count = groups * partitions
    number = np.arange(count)
    group = number // partitions

    def words(at: Any, values: list[str]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), pa.array(values))

    is_skipped = group % 10 == 0
    columns = {
        **{field.name: pa.nulls(count, field.type) for field in ROWS},
        "flow": words(np.zeros(count), [FLOW]),
        "group": words(group, [f"group-{n:05d}" for n in range(groups)]),
        "source_topic": words(number % partitions, [f"topic-{n}" for n in range(partitions)]),
        "partition": pa.array(np.zeros(count), pa.int32()),
        "source_offset": pa.array(number),
        "target_topic": words(number % partitions, [f"A.topic-{n}" for n in range(partitions)]),
        "target_offset": pa.array(number),
        "current_target_offset": pa.array(number - number % 7),
        "outcome": words(is_skipped, [OutcomeKind.COMMITTED, OutcomeKind.SKIPPED]),
        "reason": words(np.where(is_skipped, 0, None), [Reason.GROUP_ACTIVE]),
        "precision": words(number % 2, [Precision.EXACT, Precision.BOUNDED]),
        "reread_bound": pa.array(number % 2),
    }
    return pa.table({name: columns[name] for name in ROWS.names}, schema=ROWS)
