"""The listener of customers, where operators have one of their own: it says so to their calls."""

from starlette.types import ASGIApp, Receive, Scope, Send

FOR_CUSTOMERS = "quorate.for_customers"


class Customers:
    """Marks what comes in by it. `http/route.py` heeds the mark."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("extensions", {})[FOR_CUSTOMERS] = {}
        await self._app(scope, receive, send)


def is_for_customers(scope: Scope) -> bool:
    return FOR_CUSTOMERS in scope.get("extensions", {})
