"""The command `quorate-prober`: knock at every server of a fleet, and tell the API which did not answer.

Run it where clients are, outside the network of the servers. Two or more, in different networks, outvote one whose own
connection fails.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import socket
import stat
import sys
from pathlib import Path

import httpx2

from quorate_prober import limits
from quorate_prober.prober import Prober

OK, CONFIGURATION, UNREACHABLE = 0, 2, 3
NAME = re.compile(r"[0-9a-zA-Z._-]{1,64}")
TOKEN = re.compile(r"qp_[0-9A-Za-z]{40}")


class Misconfigured(Exception):
    """The message names the remedy."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-prober", description=__doc__)
    parser.add_argument(
        "--api", default=os.environ.get("QUORATE_API_URL"), help="the API's address (QUORATE_API_URL)", metavar="URL"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        default=os.environ.get("QUORATE_PROBER_TOKEN_FILE"),
        help="a file with a prober's token, qp_… (QUORATE_PROBER_TOKEN_FILE)",
    )
    parser.add_argument(
        "--name",
        default=os.environ.get("QUORATE_PROBER_NAME") or socket.gethostname(),
        help="this prober's name: letters, digits, '.', '_', '-' (QUORATE_PROBER_NAME; default: the host's)",
    )
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        if not chosen.api:
            raise Misconfigured("no API is named: give --api, or set QUORATE_API_URL")
        if not NAME.fullmatch(chosen.name):
            raise Misconfigured(f"{chosen.name!r} is no name for a prober: 1 to 64 letters, digits, '.', '_' and '-'")
        token = read_token(chosen.token_file)
        return asyncio.run(_run(chosen.api, token, chosen.name))
    except Misconfigured as problem:
        print(f"quorate-prober: {problem}", file=sys.stderr)
        return CONFIGURATION


def read_token(path: Path | None) -> str:
    if path is None:
        raise Misconfigured(
            "no token is named: give --token-file, or set QUORATE_PROBER_TOKEN_FILE (`quorate-api keys-init` makes one)"
        )
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o007:
            raise Misconfigured(f"everybody on this machine may read {path}: run chmod o= {path}")
        lines = path.read_text().split()
    except OSError as problem:
        raise Misconfigured(f"{path} cannot be read: {problem.strerror}") from None
    if not lines or not TOKEN.fullmatch(lines[0]):
        raise Misconfigured(f"{path} holds no prober's token: `qp_` and 40 letters and digits")
    return lines[0]


async def _run(url: str, token: str, name: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=limits.API_TIMEOUT_S, trust_env=False) as api:
        prober = Prober(api, name)
        try:
            await prober.read_targets()
        except httpx2.HTTPStatusError as problem:
            raise Misconfigured(f"the API does not take this prober: {_said(problem.response)}") from None
        except (httpx2.HTTPError, ValueError) as problem:
            print(f"quorate-prober: no answer of the API at {url}: {problem}", file=sys.stderr)
            return UNREACHABLE
        print(f"prober ready: {len(prober.book.servers)} servers", flush=True)
        await _until_stopped(asyncio.create_task(prober.run()))
    return OK


def _said(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


async def _until_stopped(running: asyncio.Task[None]) -> None:
    """Until SIGTERM or SIGINT. A defect ends it as well, and is raised."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if running.done():
        running.result()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    sys.exit(main())
