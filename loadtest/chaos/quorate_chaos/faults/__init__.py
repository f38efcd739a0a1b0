"""Every fault, by its name, in the order of the table."""

from quorate_chaos.faults import clocks, combined, coordinators, disks, links, power, processes, slow
from quorate_chaos.trial import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in [
        *processes.FAULTS,
        *coordinators.FAULTS,
        *power.FAULTS,
        *links.FAULTS,
        *disks.FAULTS,
        *slow.FAULTS,
        *clocks.FAULTS,
        *combined.FAULTS,
    ]
}

# Not in the table: their damage must be found, which shows the tests that the checker finds it.
MUST_BE_FOUND: dict[str, Fault] = {fault.name: fault for fault in power.MUST_BE_FOUND}
