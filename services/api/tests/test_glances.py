"""Groups of a project at a glance: their use in the last minute, and the minutes that they missed."""

import time

import psycopg

from support.customer import Customer, bearer, problem


def window(owner: psycopg.Connection, customer: Customer, group_id: str, role: str, minute_s: int, first: int) -> None:
    owner.execute(
        "INSERT INTO usage_windows (organization_id, group_id, server_id, incarnation, epoch, window_start_s, role,"
        " log_epoch, committed_entries, committed_bytes, first_committed_entries, first_committed_bytes,"
        " offered_entries, throttled_entries, throttled_within_sla_entries, within_sla_entries, refused_entries,"
        " read_entries, read_bytes, active_ms, paused_ms, from_ms, to_ms, stored_bytes, owed_read_entries,"
        " late_read_entries, latency_count, latency_us) VALUES (%s, %s, 1, %s, 1, %s, %s, 0, %s, 0, %s, 0, 0, 0, 0, 0,"
        " 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '{}')",
        (customer.organization_id, group_id, role, minute_s, role, first + 600, first),
    )


async def test_use_and_bad_minutes_of_each_group(alice: Customer, bob: Customer, owner: psycopg.Connection) -> None:
    used, idle = await alice.create_group("used"), await alice.create_group("idle")
    minute_s = int(time.time()) // 60 * 60 - 60
    owner.execute("SELECT set_config('app.organization_id', %s, false)", (alice.organization_id,))
    owner.execute(
        f"CREATE TABLE IF NOT EXISTS usage_of_test PARTITION OF usage_windows"
        f" FOR VALUES FROM ({minute_s // 86_400 * 86_400}) TO ({minute_s // 86_400 * 86_400 + 86_400})"
    )
    window(owner, alice, used["id"], "head", minute_s, 1_000)
    window(owner, alice, used["id"], "tail", minute_s, 1_000)  # counts the same entries
    window(owner, alice, idle["id"], "head", minute_s - 60, 0)  # is of an earlier minute
    found = await alice.get(f"/v1/projects/{alice.project_id}/glance")
    assert found["items"] == [{"group_id": used["id"], "appends_per_s": 10.0, "bad_minutes": 0}]
    assert (await bob.get(f"/v1/projects/{bob.project_id}/glance"))["items"] == []
    problem(await bob.request("GET", f"/v1/projects/{alice.project_id}/glance"), 404, "not_found")
    narrow = await alice.create_key(scopes=["read:other"])
    path = f"/v1/projects/{alice.project_id}/glance"
    problem(await alice.api.get(path, headers=bearer(narrow)), 403, "permission_denied")
