"""The provider in the process of Pulumi's SDK for dynamic providers (`python -m pulumi.dynamic`).

The tests call it over gRPC as Pulumi's engine does: pickled, with numbers as floats, and without our package imported.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2 as messages
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

from quorate_pulumi.provider import GroupProvider

URN = "urn:pulumi:dev::shop::pulumi-python:dynamic/quorate:Group::orders"


@pytest.fixture(scope="module")
def host() -> Iterator[ResourceProviderStub]:
    process = subprocess.Popen([sys.executable, "-m", "pulumi.dynamic"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = ResourceProviderStub(channel)
            stub.Configure(messages.ConfigureRequest())
            yield stub
    finally:
        process.kill()
        process.wait()


def struct(props) -> Struct:
    made = Struct()
    made.update({**props, "__provider": serialize_provider(GroupProvider())})
    return made


def plain(properties) -> dict:
    return {name: value for name, value in properties.items() if name != "__provider"}


def test_a_group_from_check_to_delete(host, api, props):
    checked = host.Check(messages.CheckRequest(urn=URN, news=struct(props)), timeout=20)
    assert not checked.failures
    made = host.Create(messages.CreateRequest(urn=URN, properties=checked.inputs), timeout=20)
    assert list(api.groups) == [made.id]
    assert made.properties["group_id"] == made.id
    state = {**plain(made.properties)}

    same = host.Diff(messages.DiffRequest(id=made.id, urn=URN, olds=struct(state), news=checked.inputs), timeout=20)
    assert same.changes == messages.DiffResponse.DIFF_NONE

    larger = struct({**plain(checked.inputs), "rate_per_s": 6000})
    differs = host.Diff(messages.DiffRequest(id=made.id, urn=URN, olds=struct(state), news=larger), timeout=20)
    assert (differs.changes, list(differs.replaces)) == (messages.DiffResponse.DIFF_SOME, [])
    updated = host.Update(messages.UpdateRequest(id=made.id, urn=URN, olds=struct(state), news=larger), timeout=20)
    assert updated.properties["rate_per_s"] == 6000
    assert api.groups[made.id]["sla"]["rate_per_s"] == 6000

    read = host.Read(messages.ReadRequest(id=made.id, urn=URN, properties=updated.properties), timeout=20)
    assert (read.id, read.inputs["rate_per_s"]) == (made.id, 6000)

    host.Delete(messages.DeleteRequest(id=made.id, urn=URN, properties=updated.properties), timeout=20)
    assert not api.groups
    assert host.Read(messages.ReadRequest(id=made.id, urn=URN, properties=updated.properties), timeout=20).id == ""


def test_a_refusal_reaches_the_engine_at_its_property(host, api, props):
    news = struct({**props, "rate_per_s": 20_000})
    (failure,) = host.Check(messages.CheckRequest(urn=URN, news=news), timeout=20).failures
    assert failure.property == "rate_per_s"
    assert "Scarce: cpu" in failure.reason
    with pytest.raises(grpc.RpcError) as caught:
        host.Create(messages.CreateRequest(urn=URN, properties=news), timeout=20)
    assert "rate_per_s: the fleet cannot promise this SLA now. Scarce: cpu" in caught.value.details()
    assert "qk_manage" not in caught.value.details()


def test_what_the_state_keeps_of_the_provider_is_its_name_and_no_secret():
    assert len(serialize_provider(GroupProvider())) < 200
