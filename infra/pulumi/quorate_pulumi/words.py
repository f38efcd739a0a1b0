"""Errors in words for the author of the Pulumi program."""

from __future__ import annotations

from quorate.control import AdmissionRefused, ApiError, ApiUnreachable, AuthenticationFailed, Json, NotAllowed
from quorate.errors import QuorateError


class GroupError(Exception):
    """A group could not be created, changed, read or deleted. `attribute`: the one at fault, if any."""

    def __init__(self, message: str, attribute: str | None = None) -> None:
        self.attribute = attribute
        super().__init__(message)


def refusal_in_words(refusal: Json) -> tuple[str, str]:
    """The attribute that asks for too much, and a text that names the scarce resource."""
    scarce = refusal.get("scarce_resource")
    attribute = "rate_per_s"
    if refusal.get("reason") == "unknown_region":  # servers are scarce then, too
        attribute = "region"
    elif refusal.get("reason") == "too_few_servers" or scarce in ("servers", "groups"):
        attribute = "replication_degree"
    elif scarce in ("memory", "disk"):
        attribute = "retention_bytes"
    elif scarce == "latency":
        attribute = "latency"
    text = f"the fleet cannot promise this SLA now. Scarce: {scarce}. {refusal.get('message', '')}".rstrip()
    fits = refusal.get("largest_sla_that_fits")
    if fits:
        text += f" An SLA that would fit now: rate_per_s = {fits.get('rate_per_s')}"
        if fits.get("read_rate_per_s"):
            text += f", read_rate_per_s = {fits['read_rate_per_s']}"
        if attribute == "retention_bytes":
            text += f", retention_bytes = {fits.get('retention_bytes')}"
        if attribute == "latency":
            text += f", latency = {fits.get('latency')}"
        text += "."
    return attribute, text


def explained(doing: str, problem: QuorateError) -> GroupError:
    """`doing`: the operation and the group's name."""
    if isinstance(problem, AdmissionRefused):
        attribute, text = refusal_in_words(problem.refusal)
        return GroupError(f"{doing}: {attribute}: {text} {_trace(problem)}", attribute)
    if isinstance(problem, ApiUnreachable):
        return GroupError(
            f"{doing}: {problem}. Whether the API did what was asked is unknown; run again: what it did is found again "
            "for a day, and not done twice."
        )
    if isinstance(problem, AuthenticationFailed):
        return GroupError(f"{doing}: api_key: the API does not know this key (any more). {_trace(problem)}", "api_key")
    if isinstance(problem, NotAllowed):
        return GroupError(f"{doing}: api_key: the key does not permit it; `manage` does. {_trace(problem)}", "api_key")
    if isinstance(problem, ApiError):
        if problem.code == "name_taken":
            return GroupError(f"{doing}: name: the project has a group of this name already. {_trace(problem)}", "name")
        fields = [str(error.get("field", "")).rpartition(".")[2] for error in problem.errors]
        return GroupError(f"{doing}: {problem}", fields[0] if fields else None)
    return GroupError(f"{doing}: {problem}")


def _trace(problem: ApiError) -> str:
    return f"({problem.code}, request {problem.request_id})"
