"""Virtual cost functions of a group (Pulsar §3): what an operation of any size takes of a reservation. Pure.

Costs are those of one entry, for the server that takes them: the head for appends, a replica for reads.
"""

from dataclasses import dataclass

from quorate_api.coordinator.schemas import Charges, EntryCost, ObservedSla, ReadCharges, ShortBatch
from quorate_api.groups.schemas import OperationCost

# Thousandths of tokens: of nanoseconds, of bytes, and of thousandths of operations.
_UNITS = (1e3, 1e3, 1e6)
_ONE_STORAGE_OPERATION_MILLI = 1_000_000
SIZES_BYTES = (64, 1_024, 16_384, 262_144)

Milli = list[int]


@dataclass(frozen=True, slots=True)
class Function:
    """The cost of a batch, or of a page."""

    entry: EntryCost
    short: ShortBatch
    disk: EntryCost | None = None

    def of(self, entries: int, size_bytes: int) -> list[float]:
        """Thousandths of tokens for each of so many entries of this size."""
        batch = _of(self.entry, entries, size_bytes)
        lacking = max(0, self.short.entries - entries)
        batch = [own + lacking * each for own, each in zip(batch, self.short.lacking_milli, strict=True)]
        if self.disk is not None:
            cpu, network, storage = _of(self.disk, entries, size_bytes)
            disk = (cpu, network, max(storage, _ONE_STORAGE_OPERATION_MILLI))
            batch = [own + more for own, more in zip(batch, disk, strict=True)]
        return [milli / entries for milli in batch]


def costs(sla: ObservedSla, charges: Charges, reads: ReadCharges | None) -> list[OperationCost]:
    """Each operation at the declared size and some others, alone and in full batches."""
    append = Function(charges.cost, charges.short_batch)
    found = _table("append", append, append, sla.request_size_bytes)
    if reads is not None:
        memory = Function(reads.cost, reads.short_page)
        disk = Function(reads.cost, reads.short_page, reads.from_disk)
        # Reads of a persistent group are reserved as if all came from the disk.
        reserved = disk if sla.durability == "persistent" else memory
        found += _table("read", memory, reserved, sla.request_size_bytes)
        if sla.durability == "persistent":
            found += _table("catch_up", disk, reserved, sla.request_size_bytes)
    return found


def _table(operation: str, function: Function, reserved: Function, declared_bytes: int) -> list[OperationCost]:
    full = max(1, function.short.entries)
    unit = reserved.of(full, declared_bytes)
    found = []
    for size_bytes in sorted({*SIZES_BYTES, declared_bytes}):
        for entries in sorted({1, full}):
            milli = function.of(entries, size_bytes)
            cpu_ns, network_bytes, storage = (amount / one for amount, one in zip(milli, _UNITS, strict=True))
            counts_as = max(own / one for own, one in zip(milli, unit, strict=True) if one > 0)
            found.append(
                OperationCost(
                    operation=operation,
                    size_bytes=size_bytes,
                    entries=entries,
                    counts_as=round(counts_as, 3),
                    cpu_ns=round(cpu_ns),
                    network_bytes=round(network_bytes),
                    storage_operations=round(storage, 4),
                )
            )
    return found


def _of(cost: EntryCost, entries: int, size_bytes: int) -> Milli:
    return [
        fixed * entries + byte * entries * size_bytes
        for fixed, byte in zip(cost.fixed_milli, cost.per_byte_milli, strict=True)
    ]
