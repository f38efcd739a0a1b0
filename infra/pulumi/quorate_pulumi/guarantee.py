"""A project's guarantee in a stack: tokens that any of its groups may use beside its own rate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.runtime.rpc import UNKNOWN

from quorate.control import Control, NotFound
from quorate.errors import QuorateError
from quorate_pulumi.calls import with_control
from quorate_pulumi.sla import Json, address_faults
from quorate_pulumi.words import GroupError, explained

Policy = Literal["drf", "hierarchical_drf", "first_fit", "maximum_revenue"]
POLICIES = ("drf", "hierarchical_drf", "first_fit", "maximum_revenue")
TOKENS_MAX = 10**12
WEIGHT_MAX = 10**6
INPUTS = (
    "api_url", "api_key", "project_id", "shared_tokens_per_s", "max_tokens_per_s", "policy", "groups", "allow_http",
)  # fmt: skip
DOING = "the project's guarantee"


@dataclass(frozen=True, kw_only=True)
class ProjectGuaranteeArgs:
    api_url: pulumi.Input[str]
    api_key: pulumi.Input[str]
    """A key of the project with the scope `manage`. It is stored as a secret."""
    project_id: pulumi.Input[str]
    shared_tokens_per_s: pulumi.Input[int]
    max_tokens_per_s: pulumi.Input[int] | None = None
    """The most for all groups together; by default there is no limit but what is idle."""
    policy: pulumi.Input[Policy] = "drf"
    groups: Sequence[pulumi.Input[Mapping[str, Any]]] = ()
    """Groups that the policy treats otherwise than the others: group_id, weight (1 by default), class."""
    allow_http: bool = False
    """Whether `api_url` may be http to another machine. The key is then sent unencrypted."""


class ProjectGuarantee(Resource, module="quorate", name="ProjectGuarantee"):
    """A project has one guarantee. It changes in place; removing it from the stack takes it back."""

    monthly_micros: pulumi.Output[int]
    """Price of 730 hours, in millionths of the currency."""

    def __init__(self, name: str, args: ProjectGuaranteeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props: dict[str, Any] = {field: getattr(args, field) for field in INPUTS}
        props |= {"api_key": pulumi.Output.secret(args.api_key), "groups": list(args.groups), "monthly_micros": None}
        hidden = pulumi.ResourceOptions(additional_secret_outputs=["api_key"])
        super().__init__(GuaranteeProvider(), name, props, pulumi.ResourceOptions.merge(opts, hidden))


class GuaranteeProvider(ResourceProvider):
    """The API's PUT is idempotent, so an interrupted run is repeated without harm."""

    serialize_as_secret_always = False  # the pickle is a name

    def check(self, olds: Json, news: Json) -> CheckResult:
        found = _normal(news)
        return CheckResult(found, [CheckFailure(name, reason) for name, reason in _faults(found)])

    def diff(self, id_: str, olds: Json, news: Json) -> DiffResult:
        before, after = _normal(olds), _normal(news)
        replaces = [name for name in ("project_id",) if before.get(name) != after.get(name)]
        others = [name for name in INPUTS if before.get(name) != after.get(name)]
        return DiffResult(changes=bool(others), replaces=replaces, stables=["id"], delete_before_replace=False)

    def create(self, props: Json) -> CreateResult:
        found = _normal(props)
        return CreateResult(found["project_id"], _outs(found, self._put("giving", found)))

    def read(self, id_: str, props: Json) -> ReadResult:
        if not props.get("api_key"):
            raise GroupError("a guarantee cannot be imported by its id alone: what reads it needs api_url and api_key")
        found = _normal({**props, "project_id": id_})
        shown = _call(f"reading {DOING}", found, lambda control: control.guarantee(id_))
        if shown is None or shown["since"] is None:
            return ReadResult("", {})
        found |= {name: shown[name] for name in ("shared_tokens_per_s", "max_tokens_per_s")}
        found |= {"policy": shown["policy"]["name"], "groups": shown["policy"]["groups"]}
        outs = _outs(_normal(found), shown)
        return ReadResult(id_, outs, {name: outs[name] for name in INPUTS if outs.get(name) is not None})

    def update(self, id_: str, olds: Json, news: Json) -> UpdateResult:
        found = _normal(news)
        return UpdateResult(_outs(found, self._put("changing", found)))

    def delete(self, id_: str, props: Json) -> None:
        _call(f"taking back {DOING}", _normal(props), lambda control: control.take_back_guarantee(id_))

    def _put(self, doing: str, found: Json) -> Json:
        terms = {"shared_tokens_per_s": found["shared_tokens_per_s"], "max_tokens_per_s": found.get("max_tokens_per_s")}
        terms["policy"] = {"name": found["policy"], "groups": found["groups"]}
        shown = _call(f"{doing} {DOING}", found, lambda control: control.set_guarantee(found["project_id"], terms))
        if shown is None:
            raise GroupError(f"{doing} {DOING}: project_id: there is no such project here.", "project_id")
        return dict(shown)


def _call(doing: str, props: Json, work: Callable[[Control], Awaitable[Any]]) -> Any:
    """None: there is no such project."""
    try:
        return with_control(props["api_url"], props["api_key"], work)
    except NotFound:
        return None
    except QuorateError as problem:
        raise explained(doing, problem) from None


def _normal(props: Mapping[str, Any]) -> Json:
    """With defaults and whole numbers: Pulumi's engine keeps every number as a float."""
    found = {name: _whole(value) for name, value in props.items() if value is not None and name in INPUTS}
    found.setdefault("policy", "drf")
    groups = found.get("groups") or []
    if groups != UNKNOWN:
        groups = [{name: _whole(value) for name, value in dict(group).items() if value is not None} for group in groups]
    found["groups"] = groups
    return found


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _faults(found: Json) -> list[tuple[str, str]]:
    wrong = []
    for name, least in (("shared_tokens_per_s", 0), ("max_tokens_per_s", 1)):
        value = found.get(name, UNKNOWN)
        if value != UNKNOWN and not (type(value) is int and least <= value <= TOKENS_MAX):
            wrong.append((name, f"must be a whole number from {least} to {TOKENS_MAX}"))
    if "shared_tokens_per_s" not in found:
        wrong.append(("shared_tokens_per_s", "is required"))
    if found["policy"] not in (*POLICIES, UNKNOWN):
        wrong.append(("policy", f"must be one of {', '.join(POLICIES)}"))
    for group in found["groups"] if found["groups"] != UNKNOWN else ():
        weight = group.get("weight", 1) if group != UNKNOWN else UNKNOWN
        if weight != UNKNOWN and not (type(weight) is int and 1 <= weight <= WEIGHT_MAX):
            wrong.append(("groups", f"weights must be whole numbers from 1 to {WEIGHT_MAX}"))
    address = found.get("api_url", UNKNOWN)
    if isinstance(address, str) and address != UNKNOWN:
        wrong += [("api_url", reason) for reason in address_faults(address, found.get("allow_http") is True)]
    return wrong


def _outs(asked: Json, shown: Json) -> Json:
    outs = {name: asked[name] for name in INPUTS if name in asked}
    return {**outs, "monthly_micros": shown["price"]["monthly_micros"]}
