"""The accounts of the ledger that payments move money between. A payment entry debits one and credits another by the
same amount, so the books add up by its shape.
"""

from typing import Literal

from quorate_api.checkout.port import ProviderName

RECEIVABLE = "accounts_receivable"
ROUNDING = "rounding"
BAD_DEBT = "bad_debt"

Kind = Literal["payment", "write_off", "reversal"]


def transfer(kind: Literal["payment", "write_off"], provider: ProviderName) -> tuple[str, str]:
    """The accounts debited and credited. A reversal moves the same amount back."""
    return (f"cash:{provider}" if kind == "payment" else BAD_DEBT), RECEIVABLE
