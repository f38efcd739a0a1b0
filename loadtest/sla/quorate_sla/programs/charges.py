"""The charges of the Python SDK for batches. Reads traces from standard input and answers each, as JSON."""

import json
import sys
from typing import Any

from quorate.pacing import Charges, Pacing


def answer(trace: dict[str, Any]) -> dict[str, Any]:
    charges = Charges.parse(trace["charges"])
    costs, waits_us = [], []
    for entries, size in trace["batches"]:
        pacing = Pacing(charges)
        pacing.set_rate(charges.rate_per_s, 0.0)
        # Empty the buckets, which are a sixteenth larger than the head's.
        whole = [milli * 17 // 16 for milli in charges.tokens_per_s]
        assert pacing.take(0.0, (whole[0], whole[1], whole[2])) == 0.0
        cost = pacing.cost(entries, size)
        costs.append(cost)
        waits_us.append(pacing.take(0.0, cost) * 1e6)
    return {"milli": costs, "wait_us": waits_us}


print(json.dumps([answer(trace) for trace in json.load(sys.stdin)]))
