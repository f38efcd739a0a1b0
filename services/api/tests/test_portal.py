"""The portal's files: compressed as they were built, for browsers that take that."""

import gzip
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from quorate_api.http import portal

SCRIPT = b"export const x = 1;" * 100


@pytest.fixture
async def browser(tmp_path: Path) -> httpx2.AsyncClient:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("<p>portal")
    (tmp_path / "routes.txt").write_text("/members\n")
    (assets / "app-1a.js").write_bytes(SCRIPT)
    (assets / "app-1a.js.gz").write_bytes(gzip.compress(SCRIPT))
    (assets / "app-1a.js.br").write_bytes(b"brotli")
    (assets / "bare-2b.js").write_bytes(SCRIPT)
    app = FastAPI()
    portal.install(app, tmp_path)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://testserver")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate", "gzip"), ("gzip;q=1.0, br;q=0", "gzip"), ("identity", None), ("", None), ("xgzip", None),
        ("gzip;q=0", None),
    ],
)  # fmt: skip
async def test_a_file_comes_as_the_browser_takes_it(
    browser: httpx2.AsyncClient, accepted: str, coding: str | None
) -> None:
    answer = await browser.get("/assets/app-1a.js", headers={"Accept-Encoding": accepted})
    assert answer.content == SCRIPT
    assert answer.headers.get("content-encoding") == coding
    assert answer.headers["content-type"].split(";")[0] == "text/javascript"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["vary"] == "Accept-Encoding"


async def test_brotli_comes_first(browser: httpx2.AsyncClient) -> None:
    request = browser.build_request("GET", "/assets/app-1a.js", headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
    answer = await browser.send(request, stream=True)
    assert answer.headers["content-encoding"] == "br"
    assert b"".join([part async for part in answer.aiter_raw()]) == b"brotli"


async def test_files_without_a_compressed_one_and_pages(browser: httpx2.AsyncClient) -> None:
    bare = await browser.get("/assets/bare-2b.js", headers={"Accept-Encoding": "gzip"})
    assert bare.content == SCRIPT
    assert "content-encoding" not in bare.headers
    assert (await browser.get("/members")).text == "<p>portal"
    assert (await browser.get("/assets/none.js", headers={"Accept-Encoding": "gzip"})).status_code == 404
    assert (await browser.get("/assets/../../secret", headers={"Accept-Encoding": "gzip"})).status_code == 404
