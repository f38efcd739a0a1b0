"""The built portal at `/`: its files, and `index.html` for every address of the portal's router."""

import re
from mimetypes import guess_type
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quorate_api.errors.catalogue import CATALOGUE, Code
from quorate_api.errors.data_codes import DATA_CODES
from quorate_api.errors.problem import not_found

RETRIES = {
    "never": "A retry ends the same way.",
    "here": "Retry at the same server after the time that it gives.",
    "head": "Retry at the head that the answer names.",
    "handle": "Retry with a new handle.",
    "connection": "Retry on a new connection.",
}
CODINGS = {"br": ".br", "gzip": ".gz"}  # the better one first
YEAR = "public, max-age=31536000, immutable"


class Portal(StaticFiles):
    """Files with a hash in their name (`assets/`) never change. Browsers revalidate the rest.

    `routes.txt` of the portal lists its addresses, as in `/projects/$projectId/keys`. At others the portal shows that
    nothing is there, and the answer says so, too.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, html=True)
        listed = directory / "routes.txt"
        routes = listed.read_text().split() if listed.is_file() else []
        self._pages = [re.compile(re.sub(r"\\\$\w+", "[^/]+", re.escape(route)) + "/?") for route in routes]

    async def get_response(self, path: str, scope: Scope) -> Response:
        packed = await self._packed(path, scope)
        if packed is not None:
            return packed
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            is_page = "." not in path.rsplit("/", 1)[-1] and scope["method"] in ("GET", "HEAD")
            if error.status_code != 404 or not is_page or path.startswith(("v1/", "assets/")) or path == "v1":
                raise
            response = await super().get_response("index.html", scope)
            if not any(page.fullmatch(scope["path"]) for page in self._pages):
                response.status_code = 404
            path = "index.html"
        if path.startswith("assets/"):
            response.headers.update({"Vary": "Accept-Encoding", "Cache-Control": YEAR})
        else:
            response.headers["Cache-Control"] = "no-cache"
        return response

    async def _packed(self, path: str, scope: Scope) -> Response | None:
        """The file as the build has compressed it, if the browser takes that."""
        if not path.startswith("assets/") or scope["method"] not in ("GET", "HEAD"):
            return None
        accepted = Headers(scope=scope).get("accept-encoding", "")
        for coding, suffix in CODINGS.items():
            if not re.search(rf"(^|[ ,]){coding}($|[ ,;])(?!\s*q=0(\.0*)?($|[ ,]))", accepted):
                continue
            full_path, found = await to_thread.run_sync(self.lookup_path, path + suffix)
            if found is not None:
                response = self.file_response(full_path, found, scope)
                response.headers["Content-Type"] = guess_type(path)[0] or "application/octet-stream"
                response.headers.update({"Content-Encoding": coding, "Vary": "Accept-Encoding", "Cache-Control": YEAR})
                return response
        return None


errors_router = APIRouter(include_in_schema=False)


@errors_router.get("/errors/{code}")
async def error_page(code: str) -> HTMLResponse:
    """The page of a code: of the API's, which `type` of a problem leads to, or of the data plane's and SDKs'."""
    if code in CATALOGUE:
        entry = CATALOGUE[Code(code)]
        happened = "It did not happen." if entry.outcome == "refused" else "Whether it happened is unknown."
        retry = f"Retry: {'yes' if entry.retry else 'not as it is'}. {happened}"
        return _page(code, f"HTTP {entry.status}", entry.title, entry.action, retry)
    if code in DATA_CODES:
        data = DATA_CODES[code]
        return _page(code, f"code {data.code} of servers and SDKs", data.meaning, data.action, RETRIES[data.retry])
    raise not_found("code")


def _page(code: str, what: str, title: str, action: str, retry: str) -> HTMLResponse:
    return HTMLResponse(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{code} · Quorate</title><style>body{{font:16px/1.6 system-ui;max-width:40rem;margin:12vh auto;"
        "padding:0 1.5rem;color-scheme:light dark}code{font-size:.9em}</style>"
        f"<main><p><code>{code}</code> · {what}</p><h1>{title}</h1><p>{action}</p><p>{retry}</p></main>"
    )


def install(app: FastAPI, directory: Path | None) -> None:
    app.include_router(errors_router)
    if directory is not None:
        app.mount("/", Portal(directory), name="portal")
