"""TLS on every connection: required by default, verified by every SDK, renewed without an interruption."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

import quorate
import quorate.sync
from conftest import Owner
from quorate import wire
from quorate.codes import Code
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY
from wire_client import WireClient, head_address

APPEND_JS = """
import { readFileSync } from "node:fs";
import { connect } from "./dist/index.js";
try {
  const client = await connect(readFileSync(0, "utf8"), { timeoutMs: 8_000 });
  console.log(JSON.stringify({ offset: Number(await client.append(Buffer.from("from node"))) }));
  await client.close();
} catch (error) {
  console.log(JSON.stringify({ name: error.name, code: error.code, text: error.message }));
}
"""


def without_tls(handle: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in handle.items() if name != "tls"}


def with_address(handle: dict[str, Any], host: str) -> dict[str, Any]:
    changed = copy.deepcopy(handle)
    for endpoint in changed["endpoints"]:
        endpoint["address"] = f"{host}:{endpoint['address'].rpartition(':')[2]}"
    return changed


def with_another_authority(handle: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The handle of a client that trusts another fleet's authority."""
    made = folder / "other.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "1", "-subj", "/CN=another fleet"]
    subprocess.run([*command, "-keyout", str(folder / "other.key"), "-out", str(made)], check=True, capture_output=True)
    return handle | {"tls": {"required": True, "ca_pem": made.read_text()}}


def append_with_node(handle: dict[str, Any]) -> dict[str, Any]:
    command = ["node", "--input-type=module", "-e", APPEND_JS]
    folder = REPOSITORY / "sdk" / "js"
    done = subprocess.run(command, cwd=folder, input=json.dumps(handle), capture_output=True, text=True, timeout=40)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def append_with_asyncio(handle: dict[str, Any]) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        try:
            async with await quorate.connect(handle, timeout=8.0) as client:
                return {"offset": (await client.append(b"from asyncio"))}
        except quorate.CodedError as error:
            return {"name": type(error).__name__, "code": error.code, "text": str(error)}

    return asyncio.run(work())


def append_with_threads(handle: dict[str, Any]) -> dict[str, Any]:
    try:
        with quorate.sync.connect(handle, timeout=8.0) as client:
            return {"offset": client.append(b"from a thread")}
    except quorate.CodedError as error:
        return {"name": type(error).__name__, "code": error.code, "text": str(error)}


SDKS = [append_with_asyncio, append_with_threads, append_with_node]


def test_the_handle_names_the_trusted_authority(alice: Owner, stack: Stack) -> None:
    tls = alice.handle()["tls"]
    assert tls["required"] is True
    assert tls["ca_pem"] == (stack.layout.coordinator / "ca.pem").read_text()
    for name in stack.options.server_names():
        folder = stack.layout.server(name)
        assert (folder / "ca.pem").read_text() == tls["ca_pem"]
        assert (folder / "tls-key.pem").stat().st_mode & 0o077 == 0
    assert (stack.layout.secrets / "fleet.key").stat().st_mode & 0o077 == 0
    assert "PRIVATE KEY" not in (stack.layout.coordinator / "coordinator.log").read_text(errors="replace")


@pytest.mark.parametrize("append", SDKS)
def test_sdks_append_over_tls(append: Any, alice: Owner) -> None:
    assert append(alice.handle())["offset"] >= 0


@pytest.mark.parametrize("append", SDKS)
def test_sdks_refuse_servers_that_they_cannot_trust(append: Any, alice: Owner, tmp_path: Path) -> None:
    for handle, words in [
        (with_another_authority(alice.handle(), tmp_path), "not from the authority"),
        (with_address(alice.handle(), "localhost"), "another host"),
    ]:
        started = time.monotonic()
        outcome = append(handle)
        assert (outcome.get("name"), outcome.get("code")) == ("ConnectFailed", Code.SERVER_UNTRUSTED), outcome
        assert words in outcome["text"]
        assert "operator" in outcome["text"], "it names the remedy"
        assert time.monotonic() - started < 5.0, "it does not try until the deadline"


@pytest.mark.parametrize("append", SDKS)
def test_sdks_without_tls_are_refused_with_the_code(append: Any, alice: Owner) -> None:
    outcome = append(without_tls(alice.handle()))
    assert (outcome.get("name"), outcome.get("code")) == ("ConnectFailed", Code.TLS_REQUIRED), outcome


def test_plaintext_is_refused_with_the_code(alice: Owner) -> None:
    hello = wire.encode(wire.hello("x" * 13))  # begins with the byte that begins a TLS handshake
    assert hello[0] == 0x16
    for first in (hello, wire.encode(wire.hello("e2e")), b"GET / HTTP/1.1\r\n\r\n"):
        with WireClient(alice.handle(), hello=False, plaintext=True) as client:
            client.send(first)
            goodbye = client.expect(wire.Goodbye)
            assert goodbye.code == Code.TLS_REQUIRED
            assert "handle" in goodbye.message
            assert client.receive() is None


def test_only_the_newest_tls_is_spoken(alice: Owner) -> None:
    handle = alice.handle()
    host, port = head_address(handle).rsplit(":", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=handle["tls"]["ca_pem"])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    plain = socket.create_connection((host, int(port)), timeout=5)
    with plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname=host)


def test_an_unfinished_handshake_is_closed(alice: Owner) -> None:
    host, port = head_address(alice.handle()).rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as idle:
        idle.sendall(b"\x16\x03\x01\x02\x00")
        assert idle.recv(100) == b""


def serial_number(stack: Stack, name: str) -> int:
    pem = (stack.layout.server(name) / "tls-cert.pem").read_bytes()
    return x509.load_pem_x509_certificate(pem).serial_number


def test_certificates_are_renewed_under_load_and_no_connection_is_closed(own_state: Path) -> None:
    """Certificates of four seconds, a client that appends all the time, links that stay."""
    stack = Stack(StackOptions.from_environment(state=own_state, servers=3, certificate_life_s=4))
    with stack, Customer(stack.api_url, "renewal") as customer:
        sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 2_000}
        group = customer.create_group("renewed", sla)
        handle = customer.get(f"/v1/groups/{group['id']}/handle")
        before = {name: serial_number(stack, name) for name in stack.options.server_names()}
        end = threading.Event()
        appended: list[int] = []

        def append_all_the_time() -> None:
            with quorate.sync.connect(handle) as client:
                while not end.is_set():
                    appended.append(client.append(b"x" * 64))

        appending = threading.Thread(target=append_all_the_time)
        appending.start()
        try:
            time.sleep(9.0)  # twice the lifetime of a certificate
            # A new connection gets a certificate that did not exist at the start.
            assert append_with_asyncio(handle)["offset"] >= 0
        finally:
            end.set()
            appending.join(20)
        assert not appending.is_alive()
        assert appended == sorted(set(appended))
        assert len(appended) > 100
        for name in stack.options.server_names():
            assert serial_number(stack, name) != before[name]
            log = stack.layout.log(name).read_text()
            assert log.count("new certificate") >= 3
            assert "link ended" not in log
            assert "no connection to the coordinator" not in log
        view = customer.get(f"/v1/groups/{group['id']}")
        assert (view["status"], view["epoch"]) == ("active", 1), "nothing was reconfigured"


def test_plaintext_only_where_it_is_allowed(own_state: Path) -> None:
    """`make up PLAINTEXT=links`: clients and links may use plaintext, and TLS works beside it."""
    options = StackOptions.from_environment(state=own_state, servers=2, plaintext=True, plaintext_links=True)
    with Stack(options) as stack, Customer(stack.api_url, "plaintext") as customer:
        sla = {"durability": "in_memory", "replication_degree": 2, "request_size_bytes": 64, "rate_per_s": 1_000}
        group = customer.create_group("plain", sla)
        handle = customer.get(f"/v1/groups/{group['id']}/handle")
        assert handle["tls"]["required"] is False
        assert append_with_asyncio(without_tls(handle))["offset"] == 0
        assert append_with_asyncio(handle)["offset"] == 1
