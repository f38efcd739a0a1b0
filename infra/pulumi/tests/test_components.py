"""The components with Pulumi's mocks: registered resources, secrets, and the application's variables."""

from __future__ import annotations

import json

import pulumi
import pytest
from engine import RESOURCE, run
from fake_api import PROJECT, RATE_MAX

from quorate import Handle
from quorate_pulumi import Group, GroupArgs, LoadTestGroups, LoadTestGroupsArgs

FLEET = {
    "version": 1,
    "region": "local",
    "rdma": {"kind": "none", "device": None, "ordered": False},
    "servers": {name: {"id": number, "address": f"10.4.0.{number}:7400"} for number, name in enumerate("abc", 1)},
}


def args(api, **more) -> GroupArgs:
    sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 5000}
    return GroupArgs(api_url=api.url, api_key="qk_manage", project_id=PROJECT, **{**sla, **more})


def test_a_group_hands_its_application_what_reaches_it(api, mocks):
    def program():
        group = Group("orders", args(api, app_key="qk_app"))
        return {
            "group_id": group.group_id,
            "environment": group.environment,
            "handle": group.handle,
            "monthly_micros": group.monthly_micros,
        }

    found = run(program)
    ((group_id, made),) = api.groups.items()
    assert made["name"] == "orders"
    assert found["group_id"] == (group_id, False)
    assert found["monthly_micros"] == (73_000, False)
    environment = {"QUORATE_API_URL": api.url, "QUORATE_API_KEY": "qk_app", "QUORATE_GROUP_ID": group_id}
    assert found["environment"] == (environment, True)
    text, secret = found["handle"]
    assert secret
    handle = Handle.parse(text)
    assert (str(handle.group_id), handle.token, handle.addresses()) == (group_id, "token-1", ["127.0.0.1:7001"])
    assert handle.limits.max_batch_entries == 3
    assert handle.token_expires_at.isoformat() == "2026-11-20T12:00:00+00:00"


def test_a_stack_that_does_not_want_a_handle_asks_for_none(api, mocks):
    run(lambda: {"id": Group("orders", args(api)).group_id})
    assert api.handles == 0


def test_the_key_that_can_delete_is_not_given_to_the_application(api, mocks):
    with pytest.raises(ValueError, match="'orders': environment needs app_key"):
        run(lambda: {"environment": Group("orders", args(api)).environment})


def test_the_resource_under_a_component(api, mocks):
    run(lambda: {"id": Group("orders", args(api, group_name="Orders of 2026", min_replicas=2)).group_id})
    component, resource = mocks.registered
    assert component.typ == "quorate:index:Group"
    assert resource.inputs["name"] == "Orders of 2026"
    assert resource.inputs["min_replicas"] == 2
    assert resource.inputs["owner"] == "shop/dev/orders"
    assert mocks.secret == {"api_key"}
    assert list(mocks.requests[RESOURCE, "orders"].additionalSecretOutputs) == ["api_key"]


def test_what_keeps_a_component_keeps_its_group(api, mocks):
    opts = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
    run(lambda: {"id": Group("orders", args(api), opts).group_id})
    request = mocks.requests[RESOURCE, "orders"]
    assert (request.protect, request.retainOnDelete) == (True, True)
    run(lambda: {"id": Group("others", args(api)).group_id})
    request = mocks.requests[RESOURCE, "others"]
    assert (request.protect, request.retainOnDelete) == (False, False)


def test_a_load_test_has_its_groups_in_the_fleets_region(api, mocks):
    def program():
        fleet = LoadTestGroups("bench", fleet_args(api))
        return {"handles": fleet.handles, "servers": fleet.servers}

    found = run(program)
    assert sorted(group["name"] for group in api.groups.values()) == ["bench-1", "bench-2"]
    assert {group["sla"]["region"] for group in api.groups.values()} == {"local"}
    assert sum(group["sla"]["rate_per_s"] for group in api.groups.values()) == 2000
    handles, secret = found["handles"]
    assert secret
    by_name = {group["name"]: id_ for id_, group in api.groups.items()}
    assert {name: str(Handle.parse(text).group_id) for name, text in handles.items()} == by_name
    assert found["servers"][0] == {"a": "10.4.0.1:7400", "b": "10.4.0.2:7400", "c": "10.4.0.3:7400"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 0}, "groups must be at least 1"),
        ({"replication_degree": 4}, "replication_degree is 4, and quorate_fleet has 3 servers"),
        ({"fleet": json.dumps({**FLEET, "version": 2})}, "version is 2"),
    ],
)
def test_a_load_test_that_cannot_be_makes_nothing(api, mocks, change, message):
    with pytest.raises(ValueError, match=message):
        run(lambda: {"handles": LoadTestGroups("bench", fleet_args(api, **change)).handles})
    assert not mocks.registered
    assert not api.calls


def fleet_args(api, **more) -> LoadTestGroupsArgs:
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": RATE_MAX // 10}
    wanted = {"fleet": FLEET, "groups": 2, "api_url": api.url, "api_key": "qk_manage", "project_id": PROJECT, **sla}
    return LoadTestGroupsArgs(**{**wanted, **more})
