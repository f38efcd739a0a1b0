"""The dynamic provider of groups: Pulumi's create, read, update and delete over the Python SDK's control client.

Pulumi stores each resource's provider in its state as a pickle. This class is in an installed module and has no state,
so the pickle is its name: a newer version of this package manages groups that an older one created.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)
from pulumi.runtime.rpc import UNKNOWN

from quorate.control import Control, NotFound
from quorate.errors import QuorateError
from quorate_pulumi.calls import with_control
from quorate_pulumi.sla import FIXED, IN_PLACE, SLA, Json, changed, normal, sla_of
from quorate_pulumi.words import GroupError, explained, refusal_in_words

Result = TypeVar("Result")
READY_S_MAX = 60.0
GONE_S_MAX = 60.0
MOVED_S_MAX = 1_800.0  # replicas copy their logs to other servers
POLL_S = 0.25
IDENTITY = ("project_id", "name")  # a change of one of these is another group, with an empty log
ACCESS = ("api_url", "api_key")
INPUTS = (*ACCESS, *IDENTITY, *SLA, "on_sla_change", "owner", "allow_http")
LEAVING = ("deleting", "deleted")


class GroupProvider(ResourceProvider):
    """`owner` names the stack and the resource: two stacks with equal requests must not share a group."""

    serialize_as_secret_always = False  # the pickle is a name

    def check(self, olds: Json, news: Json) -> CheckResult:
        found, wrong = normal(news, UNKNOWN)
        is_new = not olds.get("name")
        if not wrong and is_new and UNKNOWN not in found.values():
            wrong = self._no_room(found, {})
            if wrong and self._is_there(found):
                wrong = []  # the reservation of an interrupted run may be in the way: create finds out
        return CheckResult(found, [CheckFailure(name, reason) for name, reason in wrong])

    def diff(self, id_: str, olds: Json, news: Json) -> DiffResult:
        before, after = _normal(olds), _normal(news)
        new_identity = changed(before, after, IDENTITY)
        # A value that is unknown until the apply may turn out equal: diff is called again then.
        fixed = [name for name in changed(before, after, FIXED) if after[name] != UNKNOWN]
        if fixed and not new_identity and after.get("on_sla_change") != "replace":
            raise GroupError(
                f"the group {before['name']!r} has its {', '.join(fixed)} for life. Replacing it would delete "
                "its log: restore the value, create a second group and move to it, or accept the loss of the log with "
                'on_sla_change="replace".',
                fixed[0],
            )
        if (
            after["partitions"] != UNKNOWN
            and after["partitions"] < before["partitions"]
            and not (new_identity or fixed)
        ):
            raise GroupError(
                f"the group {before['name']!r} has {before['partitions']} partitions, and their logs would be lost: "
                "partitions are added and never removed.",
                "partitions",
            )
        in_place = changed(before, after, IN_PLACE)
        if in_place and not (new_identity or fixed) and UNKNOWN not in after.values():
            self._refuse_resize(id_, after)
        others = changed(before, after, (*ACCESS, *FIXED, "on_sla_change", "owner", "allow_http"))
        replaces = [*new_identity, *fixed]
        return DiffResult(
            changes=bool(replaces or in_place or others),
            replaces=replaces,
            stables=["id"],
            delete_before_replace=bool(fixed) and not new_identity,  # its name is taken until the deletion has ended
        )

    def create(self, props: Json) -> CreateResult:
        found = _normal(props)
        doing = f"making the group {found['name']!r}"
        body = sla_of(found)

        async def make(control: Control) -> Json:
            made = await control.create_group(found["project_id"], found["name"], body)
            made = await _until_ready(control, made["id"])
            if made["status"] in LEAVING:
                await _until_gone(control, made["id"])
                raise GroupError(
                    f"{doing}: the one that had its name is being deleted, which takes its time; run again."
                )
            return made

        try:
            made = _call(doing, found, make, idempotency_key=_derived_key(found, body))
        except _Gone:
            # Under this key a group was created within a day and deleted since. If there is no such project, the
            # second answer says so again.
            made = _call(doing, found, make, idempotency_key=f"pulumi-{uuid.uuid4()}", gone_is_error=True)
        return CreateResult(str(made["id"]), _outs(found, made))

    def read(self, id_: str, props: Json) -> ReadResult:
        if not props.get("api_key"):
            raise GroupError("a group cannot be imported by its id alone: what reads it needs api_url and api_key")
        found = _normal(props)
        try:
            made = _call(f"reading the group {found['name']!r}", found, lambda control: control.group(id_))
        except _Gone:
            return ReadResult("", {})
        if made["status"] in LEAVING:
            return ReadResult("", {})
        outs = _outs(found, made)
        return ReadResult(id_, outs, {name: outs[name] for name in INPUTS if outs.get(name) is not None})

    def update(self, id_: str, olds: Json, news: Json) -> UpdateResult:
        before, after = _normal(olds), _normal(news)
        changes = {name: after.get(name) for name in changed(before, after, IN_PLACE)}
        doing = f"resizing the group {after['name']!r}"

        async def resize(control: Control) -> Json:
            # Without changes read the group: a new key, or a new address of the API, must work.
            if not changes:
                return await control.group(id_)
            await control.resize_group(id_, changes)
            found = await _until_resized(control, id_)
            if found.get("resizing") is not None:
                raise GroupError(
                    f"{doing}: replicas move to servers with room for the SLA, which begins after the last move. "
                    "The resize is noted and goes on; run again."
                )
            return found

        return UpdateResult(_outs(after, _call(doing, after, resize, gone_is_error=True)))

    def delete(self, id_: str, props: Json) -> None:
        found = _normal(props)

        async def delete(control: Control) -> None:
            await control.delete_group(id_)
            await _until_gone(control, id_)
            raise GroupError(f"{doing}: it takes its time. The deletion is noted and goes on; run again.")

        doing = f"deleting the group {found['name']!r}"
        try:
            _call(doing, found, delete)
        except _Gone:
            return

    def _no_room(self, found: Json, more: Json) -> list[tuple[str, str]]:
        doing = f"asking for a quote for the group {found['name']!r}"
        quote = _call(doing, found, lambda control: control.quote({**sla_of(found), **more}), gone_is_error=True)
        refusal = quote.get("refusal")
        return [refusal_in_words(refusal)] if refusal else []

    def _is_there(self, found: Json) -> bool:
        async def look(control: Control) -> bool:
            return any([group["name"] == found["name"] async for group in control.groups(found["project_id"])])

        return _call(f"looking for the group {found['name']!r}", found, look, gone_is_error=True)

    def _refuse_resize(self, id_: str, after: Json) -> None:
        for attribute, text in self._no_room(after, {"replaces_group_id": id_}):
            doing = f"resizing the group {after['name']!r}"
            raise GroupError(f"{doing}: {attribute}: {text} The group is unchanged.", attribute)


class _Gone(Exception):
    """The API knows no such group."""


def _call(
    doing: str,
    props: Mapping[str, Any],
    work: Callable[[Control], Awaitable[Result]],
    *,
    idempotency_key: str | None = None,
    gone_is_error: bool = False,
) -> Result:
    try:
        return with_control(props["api_url"], props["api_key"], work, idempotency_key=idempotency_key)
    except NotFound as problem:
        if not gone_is_error:
            raise _Gone from None
        raise explained(doing, problem) from None
    except QuorateError as problem:
        raise explained(doing, problem) from None


async def _until_ready(control: Control, group_id: str) -> Json:
    """The group when it serves, or in its state at the deadline. Its reservation stands in both cases."""
    return await _look_while(control, group_id, lambda found: found["status"] == "provisioning", READY_S_MAX)


async def _until_resized(control: Control, group_id: str) -> Json:
    """The group once the SLA that was asked for has begun, or at the deadline: replicas may move before."""
    return await _look_while(control, group_id, lambda found: found.get("resizing") is not None, MOVED_S_MAX)


async def _look_while(control: Control, group_id: str, waits: Callable[[Json], bool], s_max: float) -> Json:
    ends_at = asyncio.get_running_loop().time() + s_max
    while True:
        found = await control.group(group_id)
        if not waits(found) or asyncio.get_running_loop().time() >= ends_at:
            return found
        await asyncio.sleep(POLL_S)


async def _until_gone(control: Control, group_id: str) -> None:
    """Raises NotFound after the deletion has ended. Returns at the deadline."""
    ends_at = asyncio.get_running_loop().time() + GONE_S_MAX
    while asyncio.get_running_loop().time() < ends_at:
        await control.group(group_id)
        await asyncio.sleep(POLL_S)


def _normal(props: Mapping[str, Any]) -> Json:
    return normal(props, UNKNOWN)[0]


def _derived_key(found: Json, body: Json) -> str:
    """Equal for equal requests of one resource, so that the group of an interrupted run is found again."""
    wish = [found.get("owner"), found["project_id"], found["name"], body]
    return "pulumi-" + hashlib.sha256(json.dumps(wish, sort_keys=True).encode()).hexdigest()[:40]


def _outs(asked: Json, made: Json) -> Json:
    """The state: the inputs, with the API's SLA, and the API's own values."""
    outs = {name: asked[name] for name in INPUTS if name in asked and name not in SLA}
    said = {**made["sla"], "partitions": made.get("partitions", 1)}
    outs |= {name: said[name] for name in SLA if said.get(name) is not None}
    return {**outs, "group_id": made["id"], "monthly_micros": made["price"]["monthly_micros"]}
