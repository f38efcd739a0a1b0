"""The address to which a request counts, for limits per address."""

from ipaddress import ip_address

from starlette.requests import HTTPConnection


def client_address(connection: HTTPConnection, trusted_proxies: int) -> str:
    """The client's address as the first trusted proxy saw it, or the peer's own without proxies.

    Each proxy appends its peer's address to X-Forwarded-For. The client's own text therefore stands left of the
    trusted addresses. A request with fewer addresses than proxies bypassed them, and counts to its peer.
    """
    peer = connection.client.host if connection.client else "unknown"
    if trusted_proxies == 0:
        return peer
    lines = connection.headers.getlist("x-forwarded-for")
    hops = [hop.strip() for line in lines for hop in line.split(",")]
    if len(hops) < trusted_proxies:
        return peer
    return _without_port(hops[-trusted_proxies]) or peer


def _without_port(hop: str) -> str | None:
    """The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`, else None."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ip_address(hop))
    except ValueError:
        return None
