"""A project's guarantee on real servers: any of its groups may use it, and it follows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from quorate_harness.fleet import Fleet, fleet
from quorate_harness.steady import Steady
from quorate_local.display import Display

OWN_PER_S = 400
SHARED_PER_S = 4_000
SIZE_BYTES = 1_024
MORE = ("--size", str(SIZE_BYTES), "--outstanding", "256", "--batch-entries-max", "16")
# Decisions are an interval apart, and a share goes from one group to another in two of them.
SETTLED_S = 1.5


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("guarantees"), Display(quiet=True), 3) as servers:
        yield servers


def test_a_guarantee_follows_the_groups_that_want_it(servers: Fleet) -> None:
    first, second = (servers.create_group(name, "in_memory", OWN_PER_S, SIZE_BYTES) for name in ("first", "second"))
    servers.wait_whole(first, second)
    project = str(servers.group(first)["project_id"])
    tokens = round(SHARED_PER_S * of_group(guarantee(servers, project), first)["request_milli_tokens"] / 1_000)
    guarantee(servers, project, {"shared_tokens_per_s": tokens}, revision=1)
    with Steady(servers, "first", [first], *MORE) as one:
        wait_rate(servers, one, OWN_PER_S + SHARED_PER_S, "all of the guarantee at one group")
        with Steady(servers, "second", [second], *MORE) as other:
            wait_rate(servers, other, OWN_PER_S + SHARED_PER_S / 2, "half of it at each")
            wait_rate(servers, one, OWN_PER_S + SHARED_PER_S / 2, "half of it at each")
            servers.stack.crash("coordinator")
            time.sleep(SETTLED_S)
            wait_rate(servers, one, OWN_PER_S + SHARED_PER_S / 2, "shares stay as they are without a coordinator")
            servers.stack.restart("coordinator")
            policy = {"name": "drf", "groups": [{"group_id": second, "weight": 3}]}
            servers.wait(lambda: is_heard(servers, project), "heads to report to the coordinator again")
            guarantee(servers, project, {"shared_tokens_per_s": tokens, "policy": policy}, revision=2)
            wait_rate(servers, other, OWN_PER_S + SHARED_PER_S * 3 / 4, "three quarters by its weight")
            head = servers.stack.servers_by_address()[servers.group(second)["replicas"][0]["address"]]
            servers.stack.kill_server(head)
            wait_rate(servers, other, OWN_PER_S + SHARED_PER_S * 3 / 4, "its next head has the share", 15)
            servers.stack.restart_server(head)
            servers.wait_whole(first, second)
            other.end()
            other.verify()
        wait_rate(servers, one, OWN_PER_S + SHARED_PER_S, "all of it again")
        guarantee(servers, project, None, revision=3)
        wait_rate(servers, one, OWN_PER_S, "its own rate, when the guarantee was taken back")
        one.end()
        one.verify()
    assert servers.stack.dead() == []


def guarantee(servers: Fleet, project: str, asked: Any = ..., revision: int = 0) -> dict[str, Any]:
    """The project's guarantee, after it was changed to `asked` if that is given."""
    path = f"/v1/projects/{project}/guarantee"
    with servers.coordinator_client(5) as client:
        body = {"guarantee": asked, "revision": revision}
        answer = client.get(path) if asked is ... else client.put(path, json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def of_group(view: dict[str, Any], group_id: str) -> dict[str, Any]:
    return next(dict(one) for one in view["groups"] if one["group_id"] == group_id)


def is_heard(servers: Fleet, project: str) -> bool:
    return all(one["share_per_s"] is not None for one in guarantee(servers, project)["groups"])


def wait_rate(servers: Fleet, load: Steady, expected_per_s: float, what: str, timeout_s: float = 6) -> None:
    """Wait until the rate of a second is within a tenth of it."""
    rates: list[float] = []
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        load.mark(what)
        time.sleep(1)
        rates.append(float(load.mark(what).acked_per_s))
        if abs(rates[-1] - expected_per_s) <= expected_per_s / 10:
            return
    pytest.fail(f"{what}: {[round(rate) for rate in rates]} appends/s, and not {expected_per_s:.0f}")
