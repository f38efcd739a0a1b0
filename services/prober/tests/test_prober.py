"""The prober's shell: real sockets to servers, and an API that answers as told."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from quorate import ConnectFailed, Tls, wire
from quorate.codes import Code
from quorate.errors import Failure
from quorate_prober import cli, limits
from quorate_prober.prober import Prober, first_that_fit, now_ms


def _authority() -> str:
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
    since = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(since).not_valid_after(since + timedelta(days=2))
    made = made.add_extension(x509.BasicConstraints(True, 0), True)
    return made.sign(key, None).public_bytes(Encoding.PEM).decode()


AUTHORITY = _authority()


class Api:
    """Keeps what it was told."""

    def __init__(self, addresses: dict[int, str]) -> None:
        self.addresses: dict[int, str] | None = addresses
        self.told: list[dict[str, Any]] = []
        self.status = 200
        self.authority = AUTHORITY

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.status != 200:
            return httpx2.Response(self.status, json={"detail": "No."})
        if request.method == "GET":
            if self.addresses is None:
                return httpx2.Response(200, json={})
            servers = [{"server_id": server, "address": address} for server, address in self.addresses.items()]
            return httpx2.Response(200, json={"servers": servers, "ca_pem": self.authority})
        self.told.append(json.loads(request.content))
        return httpx2.Response(200, json={"minutes": 1})

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url="http://api", transport=httpx2.MockTransport(self.answer))


def knocks(answers: dict[str, int]) -> Callable[[str, Tls | None, float], Awaitable[int]]:
    async def knock(address: str, _: Tls | None, timeout: float) -> int:
        await asyncio.sleep(0)
        if address not in answers:
            raise ConnectFailed(Failure(Code.NO_CONNECTION, f"{address}: no answer"))
        return answers[address]

    return knock


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.02)


async def test_servers_that_answer_and_that_do_not(caplog: pytest.LogCaptureFixture) -> None:
    api = Api({1: "a:1", 2: "b:2", 3: "c:3"})
    async with api.client() as client:
        prober = Prober(client, "p", knocks({"a:1": 1, "c:3": 2}))
        running = asyncio.create_task(prober.run())
        await until(lambda: "server 2 does not" in caplog.text and "server 3 does not" in caplog.text)
        begin_ms = now_ms() // 60_000 * 60_000
        # As if it had watched since long.
        for known in prober.book._servers.values():
            known.watched_since_ms = 0
        minute = prober.book.minute(begin_ms, now_ms())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert minute.watched == (1, 2, 3)
    assert set(minute.failed) == {2, 3}  # another server answers at c:3
    assert "server 2 answers there" in caplog.text
    assert all(task.done() for task in prober._knocking.values())


async def test_a_server_that_leaves_the_fleet_is_left_alone() -> None:
    api = Api({1: "a:1", 2: "b:2"})
    async with api.client() as client:
        prober = Prober(client, "p", knocks({}))
        await prober.read_targets()
        assert set(prober._knocking) == {1, 2}
        api.addresses = {2: "b:2", 3: "c:3"}
        await prober.read_targets()
        assert set(prober._knocking) == prober.book.servers == {2, 3}
        for task in prober._knocking.values():
            task.cancel()


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000])
async def test_an_outage_does_not_grow_as_the_clock_is_set(
    set_by_ms: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ahead_ms = 0
    monkeypatch.setattr("quorate_prober.prober.now_ms", lambda: now_ms() + ahead_ms)
    answers: dict[str, int] = {}
    async with Api({1: "a:1"}).client() as client:
        prober = Prober(client, "p", knocks(answers))
        running = asyncio.create_task(prober.run())
        await until(lambda: "server 1 does not" in caplog.text)
        ahead_ms = set_by_ms
        await until(lambda: f"clock was set by {set_by_ms / 1_000:+.1f} s" in caplog.text)
        answers["a:1"] = 1
        await asyncio.sleep(2 * limits.KNOCK_AGAIN_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert all(to_ms - from_ms < 60_000 for from_ms, to_ms in prober.book._servers[1].outages)
    begin_ms = now_ms() // 60_000 * 60_000
    assert not prober.book.minute(begin_ms, now_ms() + ahead_ms).watched


async def test_a_defect_ends_the_prober() -> None:
    async def broken(address: str, tls: Tls | None, timeout: float) -> int:
        raise ZeroDivisionError(address)

    async with Api({1: "a:1"}).client() as client:
        with pytest.raises(ExceptionGroup) as failed:
            await asyncio.wait_for(Prober(client, "p", broken).run(), 10)
    assert failed.group_contains(ZeroDivisionError)


async def test_an_authority_that_is_none_changes_nothing() -> None:
    api = Api({1: "a:1"})
    async with api.client() as client:
        prober = Prober(client, "p", knocks({}))
        await prober.read_targets()
        api.authority, api.addresses = "nothing", {}
        with pytest.raises(ValueError, match="not a certificate authority"):
            await prober.read_targets()
        api.addresses = None
        with pytest.raises(ValueError, match="does not follow the contract"):
            await prober.read_targets()
        assert prober.book.servers == {1}
        prober._knocking[1].cancel()


async def test_minutes_wait_for_the_api() -> None:
    api = Api({})
    async with api.client() as client:
        prober = Prober(client, "p")
        prober._untold.extend({"minute_s": 60 * number, "watched": [], "failed": []} for number in range(25))
        api.status = 503
        assert not await prober.report_some()
        assert len(prober._untold) == 25
        api.status = 200
        assert await prober.report_some()
        assert await prober.report_some()
    assert not prober._untold
    minutes = [minute["minute_s"] for request in api.told for minute in request["minutes"]]
    assert minutes == [60 * number for number in range(25)]
    assert {request["prober"] for request in api.told} == {"p"}


async def test_a_refused_minute_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    api = Api({})
    api.status = 422
    async with api.client() as client:
        prober = Prober(client, "p")
        prober._untold.append({"minute_s": 60, "watched": [], "failed": []})
        assert await prober.report_some()
    assert not prober._untold
    assert "refused 1 minutes" in caplog.text


def test_a_request_is_bounded() -> None:
    servers = list(range(1, limits.SERVERS_MAX + 1))
    failed = [{"server_id": server, "times": [[10_000, 20_000]]} for server in servers]
    minutes = [{"minute_s": 60 * number, "watched": servers, "failed": failed} for number in range(3)]
    assert first_that_fit(minutes) == minutes[:1]
    assert len(json.dumps({"prober": "p" * 64, "minutes": minutes[:1]})) < 64 << 10
    assert first_that_fit([]) == []


async def test_a_real_knock() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = wire.FrameSplitter(65_535)
        while data := await reader.read(4_096):
            for frame in splitter.feed(data):
                message = wire.decode(frame)
                if isinstance(message, wire.Hello):
                    writer.write(wire.encode(wire.HelloOk(wire.VERSION, 7, 65_535, 1, 1, 1)))
                elif isinstance(message, wire.Ping):
                    writer.write(wire.encode(wire.Pong(message.nonce)))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Api({7: f"127.0.0.1:{port}"}).client() as client:
            prober = Prober(client, "p")
            prober._addresses = {7: f"127.0.0.1:{port}"}
            assert await prober._reaches(7, now_ms())
            prober._addresses = {8: f"127.0.0.1:{port}"}
            assert not await prober._reaches(8, now_ms())


# --- The command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no API is named"),
        (["--api", "http://127.0.0.1:1", "--name", "a b"], "no name for a prober"),
        (["--api", "http://127.0.0.1:1"], "no token is named"),
        (["--api", "http://127.0.0.1:1", "--token-file", "/nowhere"], "cannot be read"),
    ],
)
def test_what_is_missing_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUORATE_API_URL", "QUORATE_PROBER_TOKEN_FILE", "QUORATE_PROBER_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(arguments) == cli.CONFIGURATION
    assert said in capsys.readouterr().err


def test_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("qp_" + "a" * 40 + "\n")
    path.chmod(0o600)
    assert cli.read_token(path) == "qp_" + "a" * 40
    path.chmod(0o604)
    with pytest.raises(cli.Misconfigured, match="chmod o="):
        cli.read_token(path)
    path.chmod(0o600)
    path.write_text("qo_" + "a" * 40)
    with pytest.raises(cli.Misconfigured, match="no prober's token"):
        cli.read_token(path)


def test_an_api_that_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "token"
    path.write_text("qp_" + "a" * 40)
    path.chmod(0o600)
    assert cli.main(["--api", "http://127.0.0.1:1", "--token-file", str(path)]) == cli.UNREACHABLE
    assert "no answer of the API at http://127.0.0.1:1" in capsys.readouterr().err
