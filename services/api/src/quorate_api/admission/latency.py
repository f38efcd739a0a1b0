"""Whether the fleet keeps the commit latency that an SLA promises, by its measured cost profile. Pure."""

from quorate_api.coordinator.schemas import ObservedSla, Quote, Refusal
from quorate_api.promises.latency import latency_p99_us


def kept(sla: ObservedSla, quote: Quote) -> Quote:
    """The quote; refused where the fleet has room for the SLA, and servers were measured to be slower than it promises.

    The class `low` is refused as well where nothing was measured.
    """
    if not quote.admissible or not (message := _too_slow(sla, quote.commit_p99_us)):
        return quote
    slower = sla.model_copy(update={"latency": "standard"})
    fits = sla.latency != slower.latency and not _too_slow(slower, quote.commit_p99_us)
    refusal = Refusal(
        reason="latency_not_kept",
        scarce_resource="latency",
        message=message + (" Ask for the class standard." if fits else ""),
        largest_sla_that_fits=slower if fits else None,
    )
    return quote.model_copy(update={"admissible": False, "refusal": refusal})


def _too_slow(sla: ObservedSla, measured_us: int | None) -> str:
    """A sentence for people; empty if the latency is kept."""
    bound_us = latency_p99_us(sla.model_dump(mode="json"))
    what = f"{sla.durability.value} appends of {sla.request_size_bytes} bytes"
    if measured_us is None:
        if sla.latency == "standard":
            return ""
        return f"Commit latency of {what} was not measured on this fleet, so the class {sla.latency} is not sold."
    if measured_us <= bound_us:
        return ""
    return (
        f"The class {sla.latency} promises {what} within {bound_us / 1_000:.1f} ms at p99."
        f" Servers of this fleet were measured with {measured_us / 1_000:.1f} ms."
    )
