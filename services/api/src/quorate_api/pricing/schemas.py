"""The price of a reservation, and the price list of usage."""

from typing import Literal

from pydantic import Field

from quorate_api.http.schemas import Output


class PriceLine(Output):
    resource: str = Field(description="cpu, network or storage_io")
    quantity: float
    unit: str
    unit_price_micros: int = Field(description="Price of one unit for an hour.")
    hourly_micros: int = Field(description="Rounded up.")


class UsagePriceLine(Output):
    kind: Literal["appends", "reads", "egress", "storage"]
    label: str
    per: str = Field(description="The quantity that unit_price_micros buys, as in `million entries`.")
    unit: str
    price_quantity: int = Field(description="How many units unit_price_micros buys.")
    unit_price_micros: int


class Price(Output):
    """The price of the reservation. Usage is billed in addition."""

    hourly_micros: int
    monthly_micros: int = Field(description="Price of 730 hours. Billing is by the second.")
    currency: str
    lines: list[PriceLine]
    usage: list[UsagePriceLine]
