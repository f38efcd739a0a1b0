"""Every fault, by its name, in the order of the table."""

from quorate_chaos.faults import clocks, combined, disks, links, processes, slow
from quorate_chaos.trial import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in [
        *processes.FAULTS,
        *links.FAULTS,
        *disks.FAULTS,
        *slow.FAULTS,
        *clocks.FAULTS,
        *combined.FAULTS,
    ]
}
