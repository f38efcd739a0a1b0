"""A group that belongs to a stack, and what the application of that stack needs to reach it."""

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
ENVIRONMENT = ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP")


@dataclass(frozen=True, kw_only=True)
class GroupArgs:
    api_url: pulumi.Input[str]
    api_key: pulumi.Input[str]
    """A key of the project with the scope `manage`. Kept as a secret."""
    project_id: pulumi.Input[str]
    durability: pulumi.Input[Durability]
    replication_degree: pulumi.Input[int]
    request_size_bytes: pulumi.Input[int]
    rate_per_s: pulumi.Input[int]
    group_name: pulumi.Input[str] | None = None
    """Unique in the project. By default the resource's name."""
    min_replicas: pulumi.Input[int] | None = None
    region: pulumi.Input[str] | None = None
    retention_bytes: pulumi.Input[int] | None = None
    retention_age_s: pulumi.Input[int] | None = None
    on_sla_change: Literal["refuse", "replace"] = "refuse"
    """What a changed durability, degree or region does: an error, or another group, without the log."""
    app_key: pulumi.Input[str] | None = None
    """The application's key, with the scopes `append` and `read` only. Without it there is no `environment`."""
    allow_http: bool = False
    """Whether `api_url` may be http to another machine, which has the keys sent unencrypted."""


class _GroupResource(Resource, module="quorate", name="Group"):
    group_id: pulumi.Output[str]
    monthly_micros: pulumi.Output[int]


class Group(pulumi.ComponentResource):
    """A group. It is deleted with its log when it leaves the stack, unless the options `protect` or `retain_on_delete`
    say otherwise; what the component is made of has them, too."""

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
        """Variables for the application, as the SDKs' examples read them; with them a client fetches handles by
        itself, each time that one expires. Secret as a whole."""
        if self._app_key is None:
            raise ValueError(
                f"Group {self.name!r}: environment needs app_key, a key with the scopes append and read. It is not "
                "given api_key instead: that one can delete the group"
            )
        known = pulumi.Output.all(self._api_url, self._app_key, self.group_id)
        return pulumi.Output.secret(known.apply(lambda found: dict(zip(ENVIRONMENT, found, strict=True))))

    @property
    def handle(self) -> pulumi.Output[str]:
        """The handle as JSON, for what runs soon and not for long: its token is a secret and ends within the hour.
        Each use asks the API, as `app_key` if there is one, so it is another in each run: do not give it to
        a resource that is to stay as it is."""
        key = self._api_key if self._app_key is None else self._app_key
        known = pulumi.Output.all(self._api_url, key, self.group_id)
        return pulumi.Output.secret(known.apply(lambda found: asyncio.to_thread(_handle, self.name, *found)))


def handle_json(handle: Handle) -> str:
    """As `Handle.parse` and `quorate-load --handle` read it (sdk/contract/handle.md)."""
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
