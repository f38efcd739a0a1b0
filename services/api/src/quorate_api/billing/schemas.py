"""Invoices and credit notes."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output
from quorate_api.payments.schemas import Payment


class InvoiceLine(Output):
    group_id: UUID | None = Field(
        description="null in lines of a project, and for what an organization committed to and did not reserve."
    )
    group_name: str
    kind: Literal["reservation", "appends", "reads", "egress", "storage", "guarantee", "commitment", "sla_credit"]
    description: str
    quantity: int = Field(description="Negative in corrections that take off use.")
    unit: str = Field(description="second, entry, byte, megabyte_second or percent")
    price_quantity: int = Field(description="How many units unit_price_micros buys.")
    unit_price_micros: int
    amount_micros: int = Field(
        description="quantity · unit_price_micros / price_quantity, rounded half up; negative for credits and "
        "discounts. A correction has what it changes of the amount of all lines of its kind, in their order."
    )
    correction_id: UUID | None = Field(description="The correction that this line bills; null in other lines.")
    project_id: UUID | None = Field(description="The project whose guarantee this line bills; null in other lines.")


class InvoiceTax(Output):
    label: str = Field(description="As in `VAT 19 %`.")
    rate_ppm: int = Field(description="Millionths of the base.")
    base_micros: int = Field(description="The taxed amount; negative on credit notes.")
    amount_micros: int = Field(description="Rounded half up, once; on a credit note its share of the invoice's tax.")


class InvoiceHead(Output):
    id: UUID | None = Field(description="null for the open invoice.")
    kind: Literal["invoice", "credit_note"]
    number: str | None = Field(
        description="Unique, and without gaps among all of the year and kind; null for the open invoice."
    )
    status: Literal["open", "issued"]
    period_start: datetime
    period_end: datetime
    issued_at: datetime | None
    currency: str
    subtotal_micros: int = Field(description="Sum of the lines. Negative for credit notes.")
    tax_micros: int = Field(description="Sum of the tax lines. At most 0 for credit notes.")
    total_micros: int = Field(description="Subtotal and tax. Negative for credit notes.")
    corrects_invoice_id: UUID | None = Field(description="The invoice that a credit note corrects.")
    payment: Payment | None = Field(description="null for the open invoice and for credit notes.")


class Invoice(InvoiceHead):
    lines: list[InvoiceLine]
    taxes: list[InvoiceTax]
