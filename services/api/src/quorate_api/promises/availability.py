"""The availability that an SLA promises (`docs/reference/sla.md`), in parts per million of the time. Pure."""

PPM = 1_000_000

ORDINARY_PPM = 999_500
APART_PPM = 999_900
# Two domains may fail one after the other, and a replica is left.
FAILURE_DOMAINS_MIN = 3


def availability_ppm(failure_domains: int) -> int:
    """The target for a group whose replicas are in so many different failure domains."""
    return APART_PPM if failure_domains >= FAILURE_DOMAINS_MIN else ORDINARY_PPM
