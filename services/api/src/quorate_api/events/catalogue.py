"""Every type of event, the one source for the API's contract and for `docs/reference/events.md`. No I/O."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output


class EventType(StrEnum):
    GROUP_STATUS_CHANGED = "group.status_changed"
    BUDGET_THRESHOLD_REACHED = "budget.threshold_reached"
    BUDGET_CAP_REACHED = "budget.cap_reached"
    INVOICE_ISSUED = "invoice.issued"
    CREDIT_NOTE_ISSUED = "credit_note.issued"
    PAYMENT_RECEIVED = "payment.received"
    PAYMENT_REMINDED = "payment.reminded"
    AUDIT_RECORDED = "audit.recorded"
    WEBHOOK_TEST = "webhook.test"


class GroupStatusChanged(Output):
    group_id: UUID
    status: str = Field(description="As of the group: `active`, `degraded`, `paused` or `lost`.")
    epoch: int | None = Field(description="The configuration of the group from which on it is so.")
    message: str = Field(description="The reason, for people.")


class BudgetThresholdReached(Output):
    budget_id: UUID
    month: str = Field(description="As in 2026-11, UTC.")
    kind: Literal["actual", "forecast"] = Field(description="Whether the amount is spent, or expected at month's end.")
    threshold_percent: int


class BudgetCapReached(Output):
    budget_id: UUID
    month: str = Field(description="As in 2026-11, UTC.")
    action: Literal["throttle", "suspend"] = Field(description="The groups' state until the month is over.")
    amount_micros: int = Field(description="The amount at which the cap acted, in millionths of the currency.")


class DocumentIssued(Output):
    invoice_id: UUID = Field(description="The document's id: of the invoice, or of the credit note.")
    number: str
    period_start: datetime
    period_end: datetime
    currency: str
    total_micros: int = Field(description="With taxes, in millionths of the currency; of credit notes at most 0.")
    due_at: datetime | None = Field(description="null for a credit note.")
    corrects_invoice_id: UUID | None = Field(description="The invoice that a credit note belongs to; else null.")


class PaymentReceived(Output):
    invoice_id: UUID
    provider: str
    reference: str
    amount_micros: int = Field(description="In millionths of the invoice's currency.")


class PaymentReminded(Output):
    invoice_id: UUID
    stage: Literal["reminder", "second_reminder", "final_notice"]
    due_at: datetime
    due_micros: int = Field(description="The unpaid part, in millionths of the invoice's currency.")


class AuditRecorded(Output):
    seq: int = Field(description="The number of the entry in the audit log.")
    operation: str = Field(description="The call of the contract (`operationId`).")
    subject: str = Field(description="The address that was called.")
    actor_kind: Literal["person", "key", "operator"]
    actor_id: str
    actor_name: str = Field(description="A person's e-mail address, a key's name, or an operator of the service.")
    created_id: str | None = Field(description="The id of what the call has made; null if it made nothing.")


class WebhookTest(Output):
    webhook_id: UUID


Data = (
    GroupStatusChanged
    | BudgetThresholdReached
    | BudgetCapReached
    | DocumentIssued
    | PaymentReceived
    | PaymentReminded
    | AuditRecorded
    | WebhookTest
)


@dataclass(frozen=True, slots=True)
class Entry:
    when: str
    data: type[Output]


CATALOGUE: dict[EventType, Entry] = {
    EventType.GROUP_STATUS_CHANGED: Entry(
        "A group accepts appends again, has fewer replicas than its degree, accepts none, or has lost its log.",
        GroupStatusChanged,
    ),
    EventType.BUDGET_THRESHOLD_REACHED: Entry(
        "The cost of this month, or its forecast, has reached a threshold of a budget. Once a month for each.",
        BudgetThresholdReached,
    ),
    EventType.BUDGET_CAP_REACHED: Entry(
        "A spend cap acts: its groups are throttled or suspended until the month is over.", BudgetCapReached
    ),
    EventType.INVOICE_ISSUED: Entry("A month was closed, and its invoice issued.", DocumentIssued),
    EventType.CREDIT_NOTE_ISSUED: Entry(
        "A credit was given: the SLA was missed, or an invoice was corrected.", DocumentIssued
    ),
    EventType.PAYMENT_RECEIVED: Entry("A payment of an invoice was recorded.", PaymentReceived),
    EventType.PAYMENT_REMINDED: Entry("An invoice is overdue.", PaymentReminded),
    EventType.AUDIT_RECORDED: Entry(
        "Somebody changed something: each entry of the audit log, without the request's body.", AuditRecorded
    ),
    EventType.WEBHOOK_TEST: Entry(
        "You asked for a test. It goes to that webhook alone, whatever its types.", WebhookTest
    ),
}
assert CATALOGUE.keys() == set(EventType), "each type is described"

# Types that a webhook can choose.
CHOSEN = tuple(kind for kind in EventType if kind is not EventType.WEBHOOK_TEST)


def as_openapi() -> dict[str, Any]:
    """The section `webhooks` of the OpenAPI document. Its schemas are those of `schemas()`."""
    return {kind.value: {"post": _operation(kind, entry)} for kind, entry in CATALOGUE.items()}


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in CATALOGUE.values():
        schema = entry.data.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {}) | {entry.data.__name__: schema}
    return found


def as_page() -> str:
    parts = [
        "# Events\n\nGenerated by `quorate-api openapi`; do not edit. "
        "[Webhooks](webhooks.md) deliver them; `GET /v1/events` lists those of the last 30 days.\n"
    ]
    for kind, entry in CATALOGUE.items():
        parts.append(
            f"\n## `{kind.value}`\n\n{entry.when}\n\n| field of `data` | type | meaning |\n| --- | --- | --- |\n"
        )
        schema = entry.data.model_json_schema()
        parts += [
            f"| `{name}` | {_type_of(field)} | {field.get('description', '')} |\n"
            for name, field in schema["properties"].items()
        ]
    return "".join(parts)


def _operation(kind: EventType, entry: Entry) -> dict[str, Any]:
    body = {
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"const": kind.value},
            "timestamp": {"type": "string", "format": "date-time"},
            "data": {"$ref": f"#/components/schemas/{entry.data.__name__}"},
        },
    }
    return {
        "operationId": f"on_{kind.value.replace('.', '_')}",
        "summary": entry.when,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"2XX": {"description": "Received: it is not sent again."}},
    }


def _type_of(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type_of(each) for each in field["anyOf"])
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    return str(field.get("format", field["type"]))
