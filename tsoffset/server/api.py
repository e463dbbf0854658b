"""The REST API: the state of the daemon's flows, and the requests pause, resume and sync.

Names in paths are percent-encoded; `/` in a group's name may be unencoded.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote, unquote

import pyarrow as pa
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.routing import APIRoute

from tsoffset.cluster import Connect
from tsoffset.daemon.daemon import Daemon
from tsoffset.daemon.points import POINTS_KEPT, PastCycles
from tsoffset.daemon.status import Board, FlowState, FlowStatus, Lead
from tsoffset.daemon.summary import Entry, SummaryKey
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import FlowSettings, ServerSettings
from tsoffset.server import access, answers
from tsoffset.server.flows import (
    StepOf,
    cycle_fields,
    entry_fields,
    flow_answer,
    flows_answer,
    replication_lags,
    resumptions,
    row_answers,
)
from tsoffset.server.parameters import EntryQuery, PageQuery, refuse_unknown_parameters
from tsoffset.server.problems import Refused, Unchanged, problem_response
from tsoffset.server.remotes import Remotes
from tsoffset.server.translations import add_translations
from tsoffset.terminal.next_step import next_step


def operation_id(route: APIRoute) -> str:
    """The name of the operation in the API's schema."""
    return route.name


class Routes:
    """The routes of the API, in `router`."""

    def __init__(
        self,
        settings: ServerSettings,
        board: Board,
        controls: Daemon,
        history: PastCycles,
        connect: Connect,
    ) -> None:
        self._board, self._controls, self._history = board, controls, history
        self._remotes = Remotes(settings, board.now)
        self.router = APIRouter(
            prefix="/api/v1",
            generate_unique_id_function=operation_id,
            responses={"default": problem_response()},
            dependencies=[Depends(refuse_unknown_parameters)],
        )
        read = [Depends(access.require_reader(settings))]
        for path, name, answer in (
            ("/flows", "flows", self.flows),
            ("/remotes", "remotes", self.remotes),
            ("/flows/{flow}", "flow", self.flow),
            ("/flows/{flow}/groups", "groups", self.groups),
            ("/flows/{flow}/groups/{group:path}", "group", self.group),
            ("/flows/{flow}/topics", "topics", self.topics),
            ("/flows/{flow}/history", "history", self.history),
            ("/translate", "translate", self.translate),
        ):
            self.router.add_api_route(path, answer, name=name, tags=["read"], dependencies=read)
        change = [Depends(access.require_writer(settings))]
        for name, act in (("pause", self.pause), ("resume", self.resume), ("sync", self.sync)):
            self.router.add_api_route(
                f"/flows/{{flow}}/{name}",
                act,
                name=name,
                methods=["POST"],
                status_code=HTTPStatus.ACCEPTED,
                tags=["control"],
                dependencies=change,
            )
        add_translations(
            self.router, lambda name: self._settings(unquote(name)), connect, list(change)
        )

    def flows(self, request: Request, response: Response) -> answers.FlowsAnswer:
        """All flows of this process."""
        statuses = [self._status_and_lead(status.name) for status in self._board.statuses()]
        _tag(request, response, _state(self._board, *statuses))
        return flows_answer(self._board, statuses)

    def remotes(self, request: Request, response: Response) -> answers.RemotesAnswer:
        """The flows of the instances of `status.remote.urls`, as of their last answers. Requests
        new answers at most every few seconds."""
        known = self._remotes.known_answers()
        _tag(request, response, known)
        return answers.RemotesAnswer(remotes=list(known))

    def flow(self, request: Request, response: Response, flow: str) -> answers.FlowAnswer:
        """One flow: its state, messages, last cycle and totals."""
        status, lead = self._status_and_lead(unquote(flow))
        _tag(request, response, _state(self._board, (status, lead)))
        return flow_answer(self._board, status, lead, self._board.now())

    def groups(
        self, request: Request, response: Response, flow: str, choice: EntryQuery, paging: PageQuery
    ) -> answers.GroupsAnswer:
        """The groups of a flow, as of the last cycle that reached both clusters."""
        status, now = self._status_and_time(request, response, unquote(flow))
        summary = self._board.summary(status, SummaryKey.GROUP)
        found = choice.of(summary)
        entries = summary.entries(found[paging.part])
        groups = [entry_fields(entry, now, self._steps(status)) for entry in entries]
        return answers.GroupsAnswer.model_validate(
            {**paging.fields(status, now, len(found)), "groups": groups}
        )

    def group(
        self, request: Request, response: Response, flow: str, group: str, paging: PageQuery
    ) -> answers.GroupAnswer:
        """One group with a row for each of its partitions."""
        status, now = self._status_and_time(request, response, unquote(flow))
        entry, rows = self._group(status, unquote(group))
        return answers.GroupAnswer(
            **paging.fields(status, now, len(rows)),
            group=answers.EntryAnswer.model_validate(entry_fields(entry, now, self._steps(status))),
            rows=row_answers(rows[paging.part], now, self._steps(status)),
        )

    def topics(
        self, request: Request, response: Response, flow: str, choice: EntryQuery, paging: PageQuery
    ) -> answers.TopicsAnswer:
        """The source topics of a flow, as of the last cycle that reached both clusters."""
        status, now = self._status_and_time(request, response, unquote(flow))
        summary = self._board.summary(status, SummaryKey.TOPIC)
        found = choice.of(summary)
        lags = replication_lags(status)
        topics = [
            {
                # A command of a next step is for one group.
                **entry_fields(entry, now, lambda _group, _reason: None),
                "replication_lag_records": lags.get(entry["name"]),
            }
            for entry in summary.entries(found[paging.part])
        ]
        return answers.TopicsAnswer.model_validate(
            {**paging.fields(status, now, len(found)), "topics": topics}
        )

    def history(
        self,
        request: Request,
        response: Response,
        flow: str,
        since: Annotated[
            float, Query(alias="from", allow_inf_nan=False, description="Seconds since 1970 UTC.")
        ] = 0.0,
        until: Annotated[
            float | None,
            Query(
                alias="to", allow_inf_nan=False, description="Seconds since 1970 UTC. Default: now."
            ),
        ] = None,
        limit: Annotated[
            int,
            # As many as this process has in memory: an answer without reading files takes 10 ms.
            Query(ge=1, le=POINTS_KEPT, description="Most points to return; the latest are kept."),
        ] = 500,
    ) -> answers.HistoryAnswer:
        """A point for each past cycle of a flow, the oldest first."""
        status, lead = self._status_and_lead(unquote(flow))
        _tag(request, response, _state(self._board, (status, lead)))
        end = float("inf") if until is None else until
        points = self._history.points(status.name, since, end, limit)
        if not points and status.known_at is None and not lead.here:
            raise _led_elsewhere(status.name, lead, request, "keeps no past cycles of")
        return answers.HistoryAnswer.model_validate({"flow": status.name, "points": points})

    def translate(
        self,
        request: Request,
        response: Response,
        flow: Annotated[str, Query(description="`A->B`.")],
        group: Annotated[str, Query(description="The group's full name.")],
    ) -> answers.TranslationAnswer:
        """What a failover of a group would use now, partition by partition."""
        status, now = self._status_and_time(request, response, flow)
        _, rows = self._group(status, group)
        return answers.TranslationAnswer(
            **cycle_fields(status, now),
            flow=status.name,
            group=group,
            cycle_ended_at=status.known_at,
            partitions=resumptions(rows, now, self._steps(status)),
        )

    def pause(self, request: Request, flow: str) -> answers.Done:
        """Pause a flow, so that no further cycle starts. A running cycle finishes. Only the leader
        can do this."""
        return self._control(self._controls.pause, unquote(flow), request)

    def resume(self, request: Request, flow: str) -> answers.Done:
        """Resume a flow, with a cycle at once. Only the leader can do this, or an instance on which
        the flow is paused."""
        name = unquote(flow)
        paused = self._status_and_lead(name)[0].state is FlowState.PAUSED
        return self._control(self._controls.resume, name, request, anywhere=paused)

    def sync(self, request: Request, flow: str) -> answers.Done:
        """Start the next cycle of a flow as soon as none runs. A paused flow stays paused. Only the
        leader can do this."""
        return self._control(self._controls.sync_now, unquote(flow), request)

    def _control(
        self, ask: Callable[[str], None], name: str, request: Request, *, anywhere: bool = False
    ) -> answers.Done:
        _, lead = self._status_and_lead(name)
        if not (lead.here or anywhere):
            raise _led_elsewhere(name, lead, request, "does not run")
        try:
            ask(name)
        except KeyError:
            raise self._no_flow(name) from None
        return answers.Done(flow=name, state=self._status_and_lead(name)[0].state)

    def _status_and_time(
        self, request: Request, response: Response, name: str
    ) -> tuple[FlowStatus, float]:
        """The flow's status, and the time now. Refuses if another instance runs the flow and no
        cycle is known here: an empty answer would be wrong."""
        status, lead = self._status_and_lead(name)
        _tag(request, response, _state(self._board, (status, lead)))
        if status.known_at is None and not lead.here:
            raise _led_elsewhere(name, lead, request, "knows of no cycle of")
        return status, self._board.now()

    def _steps(self, status: FlowStatus) -> StepOf:
        return partial(next_step, self._board.config, status.name)

    def _status_and_lead(self, name: str) -> tuple[FlowStatus, Lead]:
        status = self._board.status(name)
        try:
            lead = self._controls.lead(name)
        except KeyError:
            status = None
        if status is None:
            raise self._no_flow(name)
        return status, lead

    def _settings(self, name: str) -> FlowSettings:
        self._status_and_lead(name)
        try:
            return self._controls.settings(name)
        except TsoffsetError as error:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                answers.well_formed(str(error)),
                "correct the configuration, and send the request again",
            ) from None

    def _no_flow(self, name: str) -> Refused:
        known = ", ".join(status.name for status in self._board.statuses())
        return Refused(
            HTTPStatus.NOT_FOUND,
            f"there is no flow named {answers.well_formed(name)}",
            f"ask for one of these: {known}" if known else "enable a flow in the configuration",
        )

    def _group(self, status: FlowStatus, group: str) -> tuple[Entry, pa.Table]:
        summary = self._board.summary(status, SummaryKey.GROUP)
        if (entry := summary.entry(group)) is not None:
            return entry, summary.rows(group)
        if status.known_at is None:
            detail, step = "no cycle has reached both clusters yet", "ask again later"
        else:
            detail = (
                "it has no committed offset in a topic of the flow, is excluded by a filter, or"
                " does not exist"
            )
            step = f"/api/v1/flows/{quote(status.name)}/groups lists the known groups"
        told = f"nothing is known of group {group} in {status.name}: {detail}"
        raise Refused(HTTPStatus.NOT_FOUND, answers.well_formed(told), step)


def _led_elsewhere(flow: str, lead: Lead, request: Request, what: str) -> Refused:
    """A refusal for a flow that another instance runs; `what` is what this instance does not do."""
    leader, path = lead.leader, request.scope["raw_path"].decode("ascii", "replace")
    told = f"this instance {what} flow {flow}"
    if leader is None:
        why = "" if lead.problem is None else f": {lead.problem}"
        step = "ask again in ten seconds"
        if path.endswith("/pause"):
            step += f"; to keep the flow from running, set {flow}.enabled = false in the"
            step += " configuration file"
        return Refused(
            HTTPStatus.CONFLICT, f"{told}, and it is not known which instance runs it{why}", step
        )
    at = "" if leader.url is None else f" at {leader.url}"
    query = f"?{request.url.query}" if request.url.query else ""
    return Refused(
        HTTPStatus.CONFLICT,
        f"{told}; the one on host {answers.well_formed(leader.host)}, process {leader.pid},"
        f" runs it{at}",
        f"send {request.method} {leader.url}{path}{query}"
        if leader.url is not None
        else "that instance serves no API; set `listeners` in its configuration",
        leader=leader.url,
    )


def _state(board: Board, *statuses: tuple[FlowStatus, Lead]) -> object:
    """The state that an answer depends on, for its ETag. It changes without an event only when a
    flow's values become outdated, and while the estimate of its lag grows."""
    now = board.now()
    known = [
        (
            *(status.name, status.cycles, status.state, status.state_since, status.messages),
            *(status.running_since, status.next_at, status.late, status.over_limit),
            *(status.lists, status.others, status.last_success_at, status.unknown_since(now)),
            *(status.flow.commits, status.flow.sync_interval_seconds),
            *(status.flow.longest_cycle_seconds, status.known_at, lead),
            status.lag_estimate(0, now),
        )
        for status, lead in statuses
    ]
    return board.instance.id, board.warnings, known


def _tag(request: Request, response: Response, state: object) -> None:
    """Set the answer's ETag, from the state that it depends on. Raises Unchanged if the client has
    this answer already."""
    told = repr(state).encode("utf-8", "backslashreplace")
    tag = f'W/"{hashlib.sha256(told).hexdigest()[:20]}"'
    if tag in request.headers.get("if-none-match", ""):
        raise Unchanged(tag)
    response.headers["etag"] = tag
