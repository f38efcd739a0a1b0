"""Guarantees of a session while its group is over its budget."""

from __future__ import annotations

import time

from conftest import Owner
from quorate import wire
from quorate.codes import Code
from wire_client import WireClient, append_frame

RATE_PER_S = 20
TIMEOUT_MS = 5_000


def test_what_waits_in_the_queue_goes_with_its_channel(alice: Owner) -> None:
    """The client attaches again, hears that batch 2 was not ordered, and appends something else as batch 2."""
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": RATE_PER_S}
    group = alice.customer.create_group("session-moves", sla)
    handle = alice.customer.get(f"/v1/groups/{group['id']}/handle")
    with WireClient(handle) as first, WireClient(handle) as second:
        attached = first.attach(handle["group_id"], handle["token"], session=77)
        all_of_it = [b"x" * 64] * RATE_PER_S
        assert isinstance(first.append(1, all_of_it, floor_index=attached.last_index), wire.Acked)
        first.send(
            append_frame(2, [b"left behind"] * RATE_PER_S, floor_index=attached.last_index, timeout_ms=TIMEOUT_MS)
        )
        time.sleep(0.2)  # the frame is in the queue by then; if it were not, the refusal below would be the same
        again = second.attach(handle["group_id"], handle["token"], session=77)
        assert again.next_seq == 2
        refused = first.expect(wire.Refused)
        assert (refused.code, refused.outcome, refused.id) == (Code.SESSION_MOVED, 1, 2)
        acked = second.append(2, [b"instead"], floor_index=attached.last_index, timeout_ms=TIMEOUT_MS)
        assert isinstance(acked, wire.Acked)
        assert acked.acks[0][1] == RATE_PER_S


def test_a_retry_of_an_ordered_batch_is_not_refused_for_lack_of_budget(alice: Owner) -> None:
    """After a refusal the client would take it for not ordered, and give its seq to the next batch."""
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": RATE_PER_S}
    group = alice.customer.create_group("session-retries", sla)
    handle = alice.customer.get(f"/v1/groups/{group['id']}/handle")
    debt = [b"x" * 64] * RATE_PER_S * 100
    with WireClient(handle) as first, WireClient(handle) as second:
        attached = first.attach(handle["group_id"], handle["token"], session=78)
        acked = first.append(1, debt, floor_index=attached.last_index)
        assert isinstance(acked, wire.Acked)
        assert second.attach(handle["group_id"], handle["token"], session=78).next_seq == 2
        assert second.append(1, debt, floor_index=attached.last_index, timeout_ms=1) == acked
        refused = second.append(2, [b"new"], floor_index=attached.last_index, timeout_ms=1)
        assert isinstance(refused, wire.Refused)
        assert (refused.code, refused.outcome) == (Code.THROTTLED, 1)
