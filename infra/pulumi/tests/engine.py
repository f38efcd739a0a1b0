"""Pulumi's mocks in the engine's place."""

from __future__ import annotations

import pulumi
from pulumi.runtime.rpc import is_rpc_secret, unwrap_rpc_secret

from quorate_pulumi.guarantee import GuaranteeProvider
from quorate_pulumi.provider import GroupProvider

RESOURCE = "pulumi-python:dynamic/quorate:Group"
PROVIDERS = {RESOURCE: GroupProvider, "pulumi-python:dynamic/quorate:ProjectGuarantee": GuaranteeProvider}


class Mocks(pulumi.runtime.Mocks):
    """The providers' own create makes what is Quorate's. Registered resources are recorded."""

    def __init__(self) -> None:
        self.registered: list[pulumi.runtime.MockResourceArgs] = []
        self.secret: set[str] = set()
        self.requests = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs):
        self.registered.append(args)
        if args.typ not in PROVIDERS:
            return "", args.inputs
        self.secret = {name for name, value in args.inputs.items() if is_rpc_secret(value)}
        # The engine unwraps secrets for a provider that does not accept them.
        asked = {name: unwrap_rpc_secret(value) for name, value in args.inputs.items() if name != "__provider"}
        provider = PROVIDERS[args.typ]()
        checked = provider.check({}, asked)
        assert not [(failure.property, failure.reason) for failure in checked.failures]
        made = provider.create(checked.inputs)
        return made.id, made.outs

    def call(self, args: pulumi.runtime.MockCallArgs):
        raise AssertionError(args.token)


def run(program):
    """The values of the outputs that a program returns, and whether each is secret."""
    found = {}

    async def look(outputs):
        for name, output in outputs.items():
            found[name] = (await output.future(), await output.is_secret())

    @pulumi.runtime.test
    def stack():
        return look(program())

    stack()
    return found
