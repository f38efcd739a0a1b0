"""Addresses to which webhooks may be sent: those of the public internet. Pure."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNICAST_6 = IPv6Network("2000::/3")
# Each may stand for an IPv4 address of a private network.
TRANSLATED_6 = (IPv6Network("2001::/32"), IPv6Network("2002::/16"), IPv6Network("64:ff9b::/96"))


def parse_networks(text: str) -> tuple[Network, ...]:
    """Networks with commas between, as in 10.1.0.0/16. Raises `ValueError`."""
    return tuple(ip_network(each.strip()) for each in text.split(",") if each.strip())


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    if address.ipv4_mapped is not None or any(address in network for network in TRANSLATED_6):
        return False
    return address in UNICAST_6 and address.is_global and not address.is_multicast


def may_send_to(address: Address, allowed: Sequence[Network]) -> bool:
    """`allowed`: networks of the operator's choice, beside public ones."""
    return is_public(address) or is_allowed(address, allowed)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    return any(address in network for network in allowed)


def literal(host: str) -> Address | None:
    """The address that a URL's host is, in any spelling that connects to one. None: it is a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
