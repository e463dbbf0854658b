"""Query parameters of lists: filters, sorting and paging."""

from collections.abc import Iterator
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any

import polars as pl
from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant

from tsoffset.daemon.status import FlowStatus
from tsoffset.daemon.summary import Order, Summary
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason
from tsoffset.server.answers import well_formed
from tsoffset.server.flows import cycle_fields
from tsoffset.server.problems import Refused

ITEMS = 100
MOST_ITEMS = 1_000
LAST_PAGE = 1_000_000_000


class Direction(StrEnum):
    """Sort direction."""

    ASC = "asc"
    DESC = "desc"


class Paging:
    def __init__(
        self,
        page: Annotated[int, Query(ge=1, le=LAST_PAGE, description="Page number, from 1.")] = 1,
        limit: Annotated[
            int, Query(ge=1, le=MOST_ITEMS, description="Most items per page.")
        ] = ITEMS,
    ) -> None:
        self.page, self.limit = page, limit

    @property
    def part(self) -> slice:
        return slice((self.page - 1) * self.limit, self.page * self.limit)

    def fields(self, status: FlowStatus, now: float, total: int) -> dict[str, Any]:
        """The fields of `answers.Page`."""
        page = {"page": self.page, "limit": self.limit, "total": total}
        return {**cycle_fields(status, now), **page}


PageQuery = Annotated[Paging, Depends()]


class EntryChoice:
    def __init__(
        self,
        search: Annotated[
            str,
            Query(
                max_length=1_000,
                description="Text that the name contains; upper and lower case are equal.",
            ),
        ] = "",
        outcome: Annotated[
            tuple[OutcomeKind, ...], Query(description="Worst outcome; may be repeated.")
        ] = (),
        precision: Annotated[
            tuple[Precision, ...], Query(description="Worst precision; may be repeated.")
        ] = (),
        reason: Annotated[
            tuple[Reason | FailureKind, ...],
            Query(description="Reason of any partition; may be repeated."),
        ] = (),
        sort: Annotated[
            Order, Query(description="Sort key; items with an unknown value come last.")
        ] = Order.NAME,
        order: Annotated[Direction, Query(description="Sort direction.")] = Direction.ASC,
    ) -> None:
        self._wanted = search, outcome, precision, reason, sort
        self._falling = order is Direction.DESC

    def of(self, summary: Summary) -> pl.DataFrame:
        return summary.select(*self._wanted, falling=self._falling)


EntryQuery = Annotated[EntryChoice, Depends()]


def refuse_unknown_parameters(request: Request) -> None:
    """A dependency that refuses unknown parameters: a misspelled filter would return too many
    items."""
    names = [*_query_names(request.scope["route"].dependant)]
    if unknown := {*request.query_params} - {*names}:
        raise Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"unknown parameter {well_formed(min(unknown))}",
            f"use {', '.join(names)}" if names else "remove it",
        )


def _query_names(dependant: Dependant) -> Iterator[str]:
    """The query parameters of an endpoint and of its dependencies."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for dependency in dependant.dependencies:
        yield from _query_names(dependency)
