"""Whose address a request counts for, where limits are per address."""

from ipaddress import ip_address

from starlette.requests import HTTPConnection


def client_address(connection: HTTPConnection, trusted_proxies: int) -> str:
    """The client's, as the first of so many proxies saw it; the peer's own without proxies.

    Each proxy appends whom it saw to X-Forwarded-For, so what the client itself wrote there stands further left than
    the trusted ones' words. A request with fewer of these came round the proxies: it counts for its peer.
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
    """Of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; None of anything else."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ip_address(hop))
    except ValueError:
        return None
