"""The drain command against a fake coordinator that answers as in docs/internals/coordinator.md."""

from __future__ import annotations

import httpx2
import pytest

from quorate_local.drain import Coordinator, DrainFailed, follow


def coordinator(views: list[dict[str, object] | int]) -> Coordinator:
    """Answers to `GET /v1/servers/1` in order, the last one for ever; a number is a status, 0 a broken connection."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v1/servers":
            return httpx2.Response(200, json=[{"server_id": 1, "name": "s1"}])
        view = views.pop(0) if len(views) > 1 else views[0]
        if view == 0:
            raise httpx2.ConnectError("refused")
        if isinstance(view, int):
            return httpx2.Response(view, json={"detail": "no such call"})
        return httpx2.Response(200, json=view)

    return Coordinator("127.0.0.1:1", "token", httpx2.MockTransport(answer))


def view(state: str, left: int) -> dict[str, object]:
    return {"replicas": left, "drain": {"state": state, "message": f"{left} wait."}}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate_local.drain.POLL_S", 0.0)


def test_progress_until_drained_also_while_the_coordinator_restarts() -> None:
    one = coordinator([view("draining", 2), 0, 0, view("draining", 1), view("drained", 0)])
    assert [(seen.replicas_left, seen.done) for seen in follow(one, 1, 10.0)] == [(2, False), (1, False), (0, True)]


def test_a_drain_that_does_not_end_is_reported_with_the_reason() -> None:
    with pytest.raises(DrainFailed, match=r"3 wait\. The drain continues"):
        list(follow(coordinator([view("draining", 3)]), 1, 0.0))


def test_a_cancelled_or_refused_drain_is_reported() -> None:
    with pytest.raises(DrainFailed, match="cancelled the drain"):
        list(follow(coordinator([{"replicas": 1, "drain": None}]), 1, 1.0))
    with pytest.raises(DrainFailed, match="404: no such call"):
        coordinator([404]).drain(1)
    assert coordinator([404]).server_id("s1") == 1
    with pytest.raises(DrainFailed, match="There is no server s9; there are: s1"):
        coordinator([404]).server_id("s9")
