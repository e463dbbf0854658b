"""Refusals of the API: problem+json (RFC 9457) with a sentence and a next step."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
# A body may have a thousand errors.
_ERRORS_TOLD = 10


class ProblemDocument(BaseModel):
    """Why a request was refused."""

    type: str = Field(description="Always `about:blank`; see `title`.")
    title: str = Field(description="The HTTP status in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What went wrong.")
    next_step: str = Field(description="What to do.")
    leader: str | None = Field(
        default=None,
        description="Address of the instance that leads this flow; absent if it is this one.",
    )


class Refused(Exception):
    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        next_step: str,
        *,
        leader: str | None = None,
        **headers: str,
    ) -> None:
        super().__init__(status, detail, next_step)
        self.leader = leader
        self.status = status
        self.detail = detail
        self.next_step = next_step
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> Response:
        status = self.status
        problem = ProblemDocument(
            type="about:blank",
            title=status.phrase,
            status=status,
            detail=self.detail,
            next_step=self.next_step,
            leader=self.leader,
        )
        # As ASCII, the answer is well-formed whatever the sentence quotes.
        body = json.dumps(problem.model_dump(exclude_none=True)).encode()
        return Response(
            body, int(status), {**self.headers, "cache-control": "no-store"}, MEDIA_TYPE
        )


def problem_response(description: str = "A problem.") -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": ProblemDocument.model_json_schema()}},
    }


class Unchanged(Exception):
    """The client has this answer already; the text is its ETag."""


def add_problems(app: FastAPI) -> None:
    """Answer every error with a problem."""

    @app.exception_handler(Refused)
    def answer_refused(_request: Request, error: Refused) -> Response:
        return error.response()

    @app.exception_handler(Unchanged)
    def answer_unchanged(_request: Request, error: Unchanged) -> Response:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": str(error)})

    @app.exception_handler(RequestValidationError)
    def answer_malformed(_request: Request, error: RequestValidationError) -> Response:
        told = []
        for one in error.errors():
            kind, *parts = map(str, one["loc"])
            # The index of a repeated parameter says nothing; in a body it is needed.
            location = ".".join(parts if kind == "body" else parts[:1]) or kind
            told.append(f"{location}: {one['msg']}")
        return Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "; ".join(told[:_ERRORS_TOLD]),
            "see /docs for the values of each parameter",
        ).response()

    @app.exception_handler(HTTPException)
    def other(_request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        headers = {name.replace("-", "_"): value for name, value in (error.headers or {}).items()}
        return Refused(status, status.description, "see /docs for all paths", **headers).response()

    @app.exception_handler(Exception)
    def answer_unforeseen(_request: Request, _error: Exception) -> Response:
        return Refused(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "internal error in tsoffset",
            "please report it with the traceback from the log",
        ).response()
