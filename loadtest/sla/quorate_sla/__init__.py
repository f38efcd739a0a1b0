"""Whether the SLA is judged honestly: attacks and faults on the whole stack, beside the reports that customers get."""
