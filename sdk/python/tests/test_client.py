"""The client's shell against a fake group: cases that the languages' shared scenarios cannot express."""

import asyncio
import json
import threading

import pytest
import run as conformance
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import quorate
import quorate.sync
from quorate import limits


@pytest.fixture
def handle(tmp_path):
    path = tmp_path / "scenario.json"
    path.write_text("{}")
    with conformance.fake_group(path) as answer:
        yield answer["handle"]


@pytest.fixture
def slow_handle(tmp_path):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"faults": [{"on": "start", "ack_delay_ms": 50}]}))
    with conformance.fake_group(path) as answer:
        yield answer["handle"]


def run(work):
    return asyncio.run(asyncio.wait_for(work, 20))


def test_rejects_wrong_arguments_before_anything_is_sent(handle):
    async def work():
        async with await quorate.connect(handle) as client:
            with pytest.raises(TypeError, match="encode it first"):
                client.append("text")
            with pytest.raises(TypeError):
                client.append_many([b"a", 7])
            for call in (
                lambda: client.append_many([]),
                lambda: client.append(b"", timeout=0),
                lambda: client.append(b"", timeout=float("nan")),
                lambda: client.append(b"", expected_offset=-1),
                lambda: client.append(b"", fencing_token=2**64),
                lambda: client.tail(-1),
                lambda: client.tail(0, credit_bytes=0),
            ):
                with pytest.raises(ValueError, match=r".+"):
                    call()
            with pytest.raises(ValueError, match="max_entries"):
                await client.read(0, max_entries=0)
            assert (await client.status()).commit_offset == 0

    run(work())


def test_takes_all_kinds_of_bytes_and_copies_what_can_change(handle):
    async def work():
        async with await quorate.connect(handle) as client:
            changing = bytearray(b"before")
            future = client.append(changing)
            changing[:] = b"after!"
            await future
            await client.append(memoryview(b"view"))
            result = await client.read(0)
            assert [entry.data for entry in result.entries] == [b"before", b"view"]

    run(work())


def test_read_gives_at_most_what_was_asked_for_and_waits(handle):
    async def work():
        async with await quorate.connect(handle) as client:
            await client.append_many([b"%d" % i for i in range(10)])
            first = await client.read(3, max_entries=2)
            assert [entry.data for entry in first.entries] == [b"3", b"4"]
            assert (first.next_offset, first.commit_offset) == (5, 10)
            assert (await client.read(10)).entries == []
            waiting = asyncio.create_task(client.read(10, wait=5.0))
            await asyncio.sleep(0.05)
            await client.append(b"new")
            assert [entry.data for entry in (await waiting).entries] == [b"new"]

    run(work())


def test_a_caller_that_stops_waiting_disturbs_nobody(slow_handle):
    async def work():
        async with await quorate.connect(slow_handle) as client:
            futures = [client.append(b"%d" % i) for i in range(10)]
            futures[3].cancel()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(futures[4], 0.001)
            done = await asyncio.gather(*futures, return_exceptions=True)
            assert [d for d in done if isinstance(d, int)] == [0, 1, 2, 5, 6, 7, 8, 9]
            assert len((await client.read(0)).entries) == 10

    run(work())


def test_a_session_that_nobody_answers_is_given_up_and_said_to_be(tmp_path):
    path = tmp_path / "scenario.json"
    sendings = 2 * (1 + limits.ABANDONED_SENDINGS_MAX)
    path.write_text(json.dumps({"faults": [{"on": "append", "do": "swallow", "times": sendings}]}))

    async def work(handle):
        async with await quorate.connect(handle, answer_wait=0.03) as client:
            ghost = client.append_many([b"ghost"], timeout=0.03)
            behind = client.append(b"behind")
            for future, words in ((ghost, "no_answer"), (behind, "its session is given up")):
                with pytest.raises(quorate.AppendUnknown, match=words) as raised:
                    await future
                assert (raised.value.name, raised.value.fault) == ("no_answer", "network")
                assert "Read the log" in str(raised.value)
            assert await client.append(b"next") == 0
            assert [entry.data for entry in (await client.read(0)).entries] == [b"next"]

    with conformance.fake_group(path) as answer:
        run(work(answer["handle"]))


def test_what_is_beyond_the_rate_leaves_when_it_may_or_never(handle):
    rate = 5_000 * 17 / 16  # the fake group reports 5 000
    charges = {
        "rate_per_s": 5_000,
        "tokens_per_s_milli": [5_000_000, 0, 0],
        "cost": {"fixed_milli": [1_000, 0, 0], "per_byte_milli": [0, 0, 0]},
        "short_batch": {"entries": 16, "lacking_milli": [0, 0, 0]},
    }

    async def work():
        began = asyncio.get_running_loop().time()
        async with await quorate.connect({**handle, "charges": charges}) as client:
            assert (await client.append_many([b"x"] * 5_312)).base_offset == 0
            assert (await client.append_many([b"x"] * 1_000)).base_offset == 5_312
            assert asyncio.get_running_loop().time() - began > 0.99 * 1_000 / rate
            with pytest.raises(quorate.AppendRefused, match="waiting in the client") as raised:
                await client.append_many([b"x"] * 5_312, timeout=0.05)
            assert (raised.value.name, raised.value.retryable) == ("deadline_exceeded", True)
            assert (await client.status()).commit_offset == 6_312
        async with await quorate.connect({**handle, "charges": charges}, pace=False) as client:
            await client.append_many([b"x"] * 5_312)
            await client.append_many([b"x"] * 5_312, timeout=0.9)

    run(work())


def test_close_waits_for_appends_or_tells_them(slow_handle):
    async def work():
        client = await quorate.connect(slow_handle)
        future = client.append(b"drained")
        await client.close()
        assert future.result() == 0
        client = await quorate.connect(slow_handle)
        sent = client.append(b"sent")
        await asyncio.sleep(0.01)
        await client.close(drain=False)
        with pytest.raises(quorate.AppendUnknown):
            await sent
        with pytest.raises(quorate.AppendRefused, match="client_closed"):
            await client.append(b"late")
        with pytest.raises(quorate.AppendRefused, match="entry_too_large"):
            await client.append(bytes(2 << 20))
        with pytest.raises(quorate.ReadRefused, match="client_closed"):
            await client.read(0)

    run(work())


def test_ready_holds_a_producer_back(slow_handle, monkeypatch):
    monkeypatch.setattr(limits, "PENDING_CALLS_READY", 100)

    async def work():
        async with await quorate.connect(slow_handle) as client:
            most = 0
            for _ in range(1_000):
                await client.ready()
                client.append(b"x")
                most = max(most, client._appender.writer.pending_calls)
            assert most == 100

    run(work())


def test_two_tails_and_an_early_end(handle):
    async def work():
        async with await quorate.connect(handle) as client:
            await client.append_many([b"%d" % i for i in range(5)])
            async with client.tail(0) as one, client.tail(3) as two:
                assert (await anext(one)).data == b"0"
                assert (await anext(two)).offset == 3
                assert [entry.offset for entry in await one.next_entries()] == [1, 2, 3, 4]
            with pytest.raises(quorate.ReadRefused):
                await one.next_entries()
            assert not client._reader.busy()

    run(work())


def test_the_sync_face_does_the_same(handle):
    with quorate.sync.connect(handle) as client:
        assert client.append(b"a") == 0
        assert client.append_many([b"b", b"c"]) == quorate.Appended(1, 2)
        with pytest.raises(quorate.ConditionFailed):
            client.append(b"d", expected_offset=0)
        with pytest.raises(TypeError):
            client.append("text")
        futures = [client.submit(b"%d" % i) for i in range(1_000)]
        client.ready()
        assert [future.result() for future in futures] == list(range(3, 1_003))
        tail = client.tail(0)
        assert [next(tail).data for _ in range(3)] == [b"a", b"b", b"c"]
        tail.close()
        assert client.read(1, max_entries=1).entries[0].data == b"b"
        assert client.status().role == "head"
    client.close()
    with pytest.raises(quorate.AppendRefused):
        client.append(b"late")
    assert not [thread for thread in threading.enumerate() if thread.name == "quorate"]


def test_the_sync_face_serves_many_threads(handle):
    with quorate.sync.connect(handle) as client:
        offsets = []

        def work():
            offsets.extend([client.append(b"x") for _ in range(50)])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(offsets) == list(range(400))


def test_connect_failing_leaves_no_thread_behind(handle):
    wrong = {**handle, "token": "nonsense"}
    with pytest.raises(quorate.ConnectFailed, match="token_invalid"):
        quorate.sync.connect(wrong)
    assert not [thread for thread in threading.enumerate() if thread.name == "quorate"]


def test_an_append_makes_a_span_that_travels(handle):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    issued = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def work():
        traced = {**handle, "traceparent": issued}
        async with await quorate.connect(traced, tracer=provider.get_tracer("test")) as client:
            sent = []
            encode = client._appender.writer.take_frames
            client._appender.writer.take_frames = lambda now: sent.extend(found := encode(now)) or found
            await client.append(b"one")
            await client.append_many([b"two", b"three"])
            with pytest.raises(quorate.ConditionFailed):
                await client.append(b"four", expected_offset=0)
            await asyncio.sleep(0)
            return quorate.client.wire.FrameSplitter(1 << 20).feed(b"".join(sent))

    frames = run(work())
    spans = exporter.get_finished_spans()
    assert [span.attributes["quorate.outcome"] for span in spans] == ["acked", "acked", "ConditionFailed"]
    assert spans[1].attributes["quorate.base_offset"] == 1
    assert spans[0].links[0].context.span_id == 0x00F067AA0BA902B7
    for frame, span in zip(frames, spans, strict=True):
        context = span.get_span_context()
        expected = (
            context.trace_id.to_bytes(16, "big") + context.span_id.to_bytes(8, "big") + bytes([context.trace_flags])
        )
        assert frame.trace == expected


def test_without_a_provider_there_are_no_spans(handle):
    async def work():
        async with await quorate.connect(handle) as client:
            assert client._tracing is None

    run(work())


def test_a_deadline_during_a_dial_ends_connecting(handle, monkeypatch):
    """The dial fails only after the deadline: nobody may wait for the end of a connection that never was."""

    async def work():
        loop = asyncio.get_running_loop()

        async def refused_late(*_arguments, **_options):
            await asyncio.sleep(0.5)
            raise ConnectionRefusedError("too late")

        monkeypatch.setattr(loop, "create_connection", refused_late)
        begun = loop.time()
        with pytest.raises(quorate.ConnectFailed):
            await asyncio.wait_for(quorate.connect(handle, timeout=0.05), 10)
        assert loop.time() - begun < 5

    run(work())
