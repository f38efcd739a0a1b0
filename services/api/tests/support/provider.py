"""A real identity provider: a process of its own, at which people log in by a form."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

START_S = 20


@dataclass
class IdentityServer:
    issuer: str

    def register(self, redirect_uri: str) -> tuple[str, str]:
        """A client's id and secret."""
        answer = httpx2.post(f"{self.issuer}/oauth2/clients", json={"redirect_uris": [redirect_uri]})
        assert answer.status_code == 201, answer.text
        return answer.json()["client_id"], answer.json()["client_secret"]

    def person(self, subject: str, **claims: Any) -> None:
        assert httpx2.put(f"{self.issuer}/users/{subject}", json=claims).status_code == 204

    def log_in(self, url: str, subject: str) -> dict[str, str]:
        """The parameters with which the provider sends the browser back."""
        answer = httpx2.post(url, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


@contextmanager
def serving() -> Iterator[IdentityServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-registration", "true"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = IdentityServer(f"http://127.0.0.1:{port}")
        until = time.monotonic() + START_S
        while not _answers(server):
            assert process.poll() is None, "the provider ended"
            assert time.monotonic() < until, "the provider does not answer"
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait()


def _answers(server: IdentityServer) -> bool:
    try:
        return httpx2.get(f"{server.issuer}/.well-known/openid-configuration").status_code == 200
    except httpx2.TransportError:
        return False
