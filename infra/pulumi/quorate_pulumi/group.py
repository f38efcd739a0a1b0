"""A group of a stack, and the variables with which the stack's application reaches it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pulumi
from pulumi.dynamic import Resource

from quorate.errors import QuorateError
from quorate.handle import Handle
from quorate_pulumi.calls import with_control
from quorate_pulumi.provider import GroupProvider
from quorate_pulumi.sla import SLA
from quorate_pulumi.words import explained

Durability = Literal["persistent", "in_memory"]
Latency = Literal["standard", "low"]
ENVIRONMENT = ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID")


@dataclass(frozen=True, kw_only=True)
class GroupArgs:
    api_url: pulumi.Input[str]
    api_key: pulumi.Input[str]
    """A key of the project with the scope `manage`. It is stored as a secret."""
    project_id: pulumi.Input[str]
    durability: pulumi.Input[Durability]
    replication_degree: pulumi.Input[int]
    request_size_bytes: pulumi.Input[int]
    rate_per_s: pulumi.Input[int]
    group_name: pulumi.Input[str] | None = None
    """Unique in the project; default: the resource's name."""
    read_rate_per_s: pulumi.Input[int] | None = None
    """Reads of all replicas together, each second; 0, the default: they have what is spare."""
    min_replicas: pulumi.Input[int] | None = None
    region: pulumi.Input[str] | None = None
    retention_bytes: pulumi.Input[int] | None = None
    retention_age_s: pulumi.Input[int] | None = None
    latency: pulumi.Input[Latency] | None = None
    """The class of commit latency; standard by default. `low` takes more capacity, and costs more."""
    partitions: pulumi.Input[int] | None = None
    """Chains among which keys are divided; 1, the default: the group is one log. More are added in place, and none is
    removed."""
    on_sla_change: Literal["refuse", "replace"] = "refuse"
    """Effect of a changed durability, degree or region: an error, or another group without the log."""
    app_key: pulumi.Input[str] | None = None
    """The application's key, with the scopes `append` and `read` only. Without it there is no `environment`."""
    allow_http: bool = False
    """Whether `api_url` may be http to another machine. The keys are then sent unencrypted."""


class _GroupResource(Resource, module="quorate", name="Group"):
    group_id: pulumi.Output[str]
    monthly_micros: pulumi.Output[int]


class Group(pulumi.ComponentResource):
    """A group. Removing it from the stack deletes it with its log, unless the options `protect` or `retain_on_delete`
    are set. The component's own resources have these options, too."""

    name: str
    group_id: pulumi.Output[str]
    monthly_micros: pulumi.Output[int]
    """Price of the reservation for 730 hours, in millionths of the currency."""

    def __init__(self, name: str, args: GroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("quorate:index:Group", name, {}, opts)
        self.name = name
        self._api_url = pulumi.Output.from_input(args.api_url)
        self._app_key = None if args.app_key is None else pulumi.Output.secret(args.app_key)
        self._api_key = pulumi.Output.secret(args.api_key)
        props: dict[str, Any] = {field: getattr(args, field) for field in SLA}
        props |= {
            "api_url": args.api_url,
            "api_key": self._api_key,
            "project_id": args.project_id,
            "name": name if args.group_name is None else args.group_name,
            "on_sla_change": args.on_sla_change,
            "allow_http": args.allow_http,
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "group_id": None,
            "monthly_micros": None,
        }
        made = _GroupResource(
            GroupProvider(),
            name,
            props,
            pulumi.ResourceOptions(
                parent=self,
                additional_secret_outputs=["api_key"],
                retain_on_delete=opts.retain_on_delete if opts else None,
            ),
        )
        self.group_id, self.monthly_micros = made.group_id, made.monthly_micros
        self.register_outputs({"group_id": self.group_id, "monthly_micros": self.monthly_micros})

    @property
    def environment(self) -> pulumi.Output[dict[str, str]]:
        """Variables for the application, as in the SDKs' examples. With them a client fetches handles itself, each
        time that one expires. The whole output is secret."""
        if self._app_key is None:
            raise ValueError(
                f"Group {self.name!r}: environment needs app_key, a key with the scopes append and read. It is not "
                "given api_key instead: that one can delete the group"
            )
        known = pulumi.Output.all(self._api_url, self._app_key, self.group_id)
        return pulumi.Output.secret(known.apply(lambda found: dict(zip(ENVIRONMENT, found, strict=True))))

    @property
    def handle(self) -> pulumi.Output[str]:
        """The handle as JSON, for programs that run soon and briefly: its token is secret and expires within the hour.
        Each use asks the API, as `app_key` if there is one. It therefore differs in each run: do not use it in a
        resource that must not change."""
        key = self._api_key if self._app_key is None else self._app_key
        known = pulumi.Output.all(self._api_url, key, self.group_id)
        return pulumi.Output.secret(known.apply(lambda found: asyncio.to_thread(_handle, self.name, *found)))


def handle_json(handle: Handle) -> str:
    """The handle as `Handle.parse` and `quorate-load --handle` read it (sdk/contract/handle.md)."""
    fields = {name: value for name, value in asdict(handle).items() if value is not None}
    fields["group_id"] = str(handle.group_id)
    if handle.token_expires_at is not None:
        fields["token_expires_at"] = handle.token_expires_at.isoformat()
    return json.dumps(fields)


def _handle(name: str, api_url: str, api_key: str, group_id: str) -> str:
    try:
        return handle_json(with_control(api_url, api_key, lambda control: control.handle(group_id)))
    except QuorateError as problem:
        raise explained(f"asking for a handle of the group {name!r}", problem) from None
