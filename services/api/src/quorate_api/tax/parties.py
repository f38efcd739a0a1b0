"""Seller and customer, as a document names them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seller:
    """Empty texts are not set."""

    name: str = ""
    address: tuple[str, ...] = ()  # one line each
    tax_id: str = ""

    @property
    def is_set(self) -> bool:
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
