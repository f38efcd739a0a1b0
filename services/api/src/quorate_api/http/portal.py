"""The built portal at `/`: its files, and `index.html` for every address of the portal's router."""

from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quorate_api.errors.catalogue import CATALOGUE, Code
from quorate_api.errors.problem import not_found

YEAR = "public, max-age=31536000, immutable"


class Portal(StaticFiles):
    """Files with a hash in their name (`assets/`) never change. Browsers revalidate the rest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            is_page = "." not in path.rsplit("/", 1)[-1] and scope["method"] in ("GET", "HEAD")
            if error.status_code != 404 or not is_page or path.startswith(("v1/", "assets/")) or path == "v1":
                raise
            response = await super().get_response("index.html", scope)
            path = "index.html"
        response.headers["Cache-Control"] = YEAR if path.startswith("assets/") else "no-cache"
        return response


errors_router = APIRouter(include_in_schema=False)


@errors_router.get("/errors/{code}")
async def error_page(code: str) -> HTMLResponse:
    """The page behind a problem's `type`."""
    if code not in CATALOGUE:
        raise not_found("code")
    entry = CATALOGUE[Code(code)]
    return HTMLResponse(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{code} · Quorate</title><style>body{{font:16px/1.6 system-ui;max-width:40rem;margin:12vh auto;"
        "padding:0 1.5rem;color-scheme:light dark}code{font-size:.9em}</style>"
        f"<main><p><code>{code}</code> · HTTP {entry.status}</p><h1>{entry.title}</h1><p>{entry.action}</p>"
        f"<p>Retry: {'yes' if entry.retry else 'not as it is'}. "
        f"{'It did not happen.' if entry.outcome == 'refused' else 'Whether it happened is unknown.'}</p></main>"
    )


def install(app: FastAPI, directory: Path | None) -> None:
    app.include_router(errors_router)
    if directory is not None:
        app.mount("/", Portal(directory=directory, html=True), name="portal")
