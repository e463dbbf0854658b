"""The status page at `/` and the API's documentation at `/docs`. All files are part of this
installation."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_PAGE = Path(__file__).parent / "page"

# Swagger UI has its icons in its style sheet.
_OWN_FILES = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)


class _Files(StaticFiles):
    """Files of a directory, with ETag; browsers load only such files from them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["content-security-policy"] = _OWN_FILES
        return response


def add_pages(app: FastAPI) -> None:
    """Add the routes of both. Call this after adding the API, whose routes have precedence. They
    contain no data, so they need no token."""
    app.mount("/docs/swagger-ui", _Files(packages=[("fastapi_offline", "static")]))

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return RedirectResponse("/docs/")

    app.mount("/docs", _Files(packages=[("tsoffset.server", "swagger")], html=True))
    # One route per file: a mount at `/` would shadow the API.
    page = _Files(directory=_PAGE)
    for name in (file.name for file in _PAGE.iterdir()):
        path = "/" if name == "index.html" else f"/{name}"
        app.add_route(path, _answer(page, name), include_in_schema=False)


def _answer(files: _Files, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await files.get_response(name, request.scope)

    return answer
