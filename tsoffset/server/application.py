"""All that a listener serves: probes, metrics, the REST API, its documentation at `/docs`, and the
status page at `/`. All files are part of this installation."""

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from pathlib import Path

from fastapi import Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tsoffset.cluster import Connect
from tsoffset.daemon.daemon import Daemon
from tsoffset.daemon.points import PastCycles
from tsoffset.daemon.status import Board
from tsoffset.flow.settings import ServerSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.server import access, answers
from tsoffset.server.api import Routes, operation_id
from tsoffset.server.problems import Refused, add_problems, problem_response
from tsoffset.version import __version__

Metrics = Callable[[str], tuple[bytes, str]]
"""From the `Accept` header ("" if absent) to the metrics and their content type."""

_PAGE = Path(__file__).parent / "page"

# Swagger UI has its icons in its style sheet.
_OWN_FILES = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)


def application(
    settings: ServerSettings,
    board: Board,
    controls: Daemon,
    history: PastCycles,
    *,
    metrics: Metrics | None = None,
    alive: Callable[[], bool] = lambda: True,
    connect: Connect = KafkaCluster,
) -> FastAPI:
    """The API with its documentation, the metrics, and the status page; to be served behind a
    `Guard`.

    `alive` returns whether the flows' loops run; `connect` opens a flow's clusters.
    """
    app = FastAPI(
        title="tsoffset",
        version=__version__,
        description="The state of tsoffset's flows: what each cycle did, and the target offsets"
        " that a failover would use. Times are seconds since 1970 UTC. Percent-encode"
        " names in paths: `A->B` is `A-%3EB`.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )
    add_problems(app)
    _add_probes(app, board, alive)
    # Not `include_router`, which would build each route once more at the first request.
    app.router.routes += Routes(settings, board, controls, history, connect).router.routes
    if metrics is not None:
        _add_metrics(app, settings, metrics)
    _add_pages(app)
    _summarize(app.routes)
    return app


def _summarize(routes: Iterable[BaseRoute]) -> None:
    """Use the first sentence of each endpoint's description as its summary, instead of the name of
    its function."""
    for route in routes:
        if isinstance(route, APIRoute) and route.description and route.summary is None:
            first, _, rest = " ".join(route.description.split()).partition(". ")
            route.summary, route.description = first.removesuffix("."), rest


def _add_probes(app: FastAPI, board: Board, alive: Callable[[], bool]) -> None:
    # `async`, so that they need no thread of the pool, which slow requests may have used up.
    @app.get(
        "/healthz",
        tags=["probes"],
        responses={503: problem_response("A flow's loop has ended or hangs.")},
    )
    async def healthz() -> answers.Health:
        """Liveness: 200 while the flows' loops run, whether or not the clusters can be reached."""
        if alive():
            return answers.Health(ok=True)
        raise Refused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the loop of a flow has ended or hangs",
            "restart the process, and read its log for the cause",
        )

    @app.get(
        "/readyz", tags=["probes"], responses={503: problem_response("No cycle has ended yet.")}
    )
    async def readyz() -> answers.Health:
        """Readiness: 200 when the configuration is loaded and the first cycle has ended, with or
        without success."""
        if board.ready:
            return answers.Health(ok=True)
        raise Refused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "no cycle has ended yet",
            "wait for the first cycle; /api/v1/flows shows when it started",
        )


def _add_metrics(app: FastAPI, settings: ServerSettings, metrics: Metrics) -> None:
    @app.get(
        "/metrics",
        tags=["metrics"],
        dependencies=[Depends(access.require_reader(settings))],
        response_class=Response,
        responses={
            200: {"description": "Metrics.", "content": {"text/plain": {}}},
            "default": problem_response(),
        },
    )
    def metrics_now(request: Request) -> Response:
        """Metrics for Prometheus, described in docs/metrics.md."""
        body, media_type = metrics(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": media_type})


class _Files(StaticFiles):
    """Files of a directory, with ETag; browsers load only such files from them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["content-security-policy"] = _OWN_FILES
        return response


def _add_pages(app: FastAPI) -> None:
    """Add the status page and the API's documentation, after the API, whose routes have precedence.
    They contain no data, so they need no token."""
    app.mount("/docs/swagger-ui", _Files(packages=[("fastapi_offline", "static")]))

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return RedirectResponse("/docs/")

    app.mount("/docs", _Files(packages=[("tsoffset.server", "swagger")], html=True))
    # One route per file: a mount at `/` would shadow the API.
    page = _Files(directory=_PAGE)
    for name in (file.name for file in _PAGE.iterdir()):
        path = "/" if name == "index.html" else f"/{name}"
        app.add_route(path, _file_answer(page, name), include_in_schema=False)


def _file_answer(files: _Files, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await files.get_response(name, request.scope)

    return answer
