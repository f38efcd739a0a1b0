"""Knocking at a server, against one that answers in every way."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from quorate import Code, ConnectFailed, knock, wire

OK = wire.HelloOk(wire.VERSION, 7, 65_535, 1, 1, 1)


@asynccontextmanager
async def server(*answers):
    """A server that answers to the first bytes. None: it closes."""

    async def serve(reader, writer):
        await reader.read(4_096)
        for answer in answers:
            if answer is not None:
                writer.write(answer if isinstance(answer, bytes) else wire.encode(answer))
        if None in answers:
            writer.close()
        else:
            await reader.read(4_096)
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def ask(*answers, timeout=5.0):
    async def work():
        async with server(*answers) as address:
            return await knock(address, timeout=timeout)

    return asyncio.run(work())


def test_a_server_answers_with_its_id():
    assert ask(OK, wire.Pong(1)) == 7
    assert ask(OK, wire.Ping(5), wire.Pong(1)) == 7


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([OK, None], Code.NO_CONNECTION),
        ([None], Code.NO_CONNECTION),
        ([wire.Pong(1), None], Code.PROTOCOL_ERROR),
        ([wire.Goodbye(Code.TLS_REQUIRED, ""), None], Code.TLS_REQUIRED),
        ([OK, wire.Detach()], Code.PROTOCOL_ERROR),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], None),
    ],
)
def test_anything_else_is_no_answer(answers, code):
    with pytest.raises(ConnectFailed) as failed:
        ask(*answers)
    assert code is None or failed.value.code == code


def test_silence_ends_after_the_timeout():
    with pytest.raises(ConnectFailed, match="no answer") as failed:
        ask(OK, timeout=0.2)
    assert failed.value.retryable


def test_nobody_there():
    with pytest.raises(ConnectFailed) as failed:
        asyncio.run(knock("127.0.0.1:1", timeout=1))
    assert failed.value.code == Code.NO_CONNECTION
    with pytest.raises(ValueError, match="host:port"):
        asyncio.run(knock("nowhere"))
