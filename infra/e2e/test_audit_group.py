"""Audit logs are copied into a group of Quorate's own, and the group tells what the database's owner has changed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psycopg

from quorate_harness.customer import Customer
from quorate_local import Stack
from quorate_local.components import quorate_api

PATIENCE_S = 60.0
SLA = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 1024, "rate_per_s": 200}


def compared(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([quorate_api(), "audit-compare"], env=env, capture_output=True, text=True, timeout=60)


def test_the_group_shows_what_was_changed_in_the_database(stack: Stack, tmp_path: Path) -> None:
    with Customer(stack.api_url, "e2e-audited") as customer:
        group = customer.create_group("audit", SLA)
        key_file = tmp_path / "key"
        key_file.write_text(customer.api_key)
        key_file.chmod(0o600)
        env = os.environ | stack.api_environment() | {
            "QUORATE_AUDIT_GROUP_ID": group["id"],
            "QUORATE_AUDIT_KEY_FILE": str(key_file),
            "QUORATE_AUDIT_API_URL": stack.api_url,
        }  # fmt: skip
        worker = subprocess.Popen([quorate_api(), "worker"], env=env, stdout=subprocess.DEVNULL)
        try:
            with psycopg.connect(stack.addresses["postgres"], autocommit=True) as database:
                deadline = time.monotonic() + PATIENCE_S
                while database.execute("SELECT count(*) FROM uncopied_events").fetchone() != (0,):
                    assert time.monotonic() < deadline, "events are not copied"
                    time.sleep(0.2)
                found = compared(env)
                assert found.returncode == 0, found.stderr
                assert "the same as in the database" in found.stdout
                _falsify(database, customer)
                found = compared(env)
        finally:
            worker.terminate()
            worker.wait(timeout=30)
        assert found.returncode == 1
        assert "event 1 is another one in the database" in found.stderr
        customer.delete(f"/v1/groups/{group['id']}")


def _falsify(database: psycopg.Connection[tuple[int]], customer: Customer) -> None:
    database.execute("ALTER TABLE audit_events DISABLE TRIGGER USER")
    organization_id = customer.get("/v1/me")["organization"]["id"]
    database.execute(
        "UPDATE audit_events SET event = replace(event, 'e2e-audited', 'e2e-changed')"
        " WHERE seq = 1 AND organization_id = %s",
        [organization_id],
    )
    database.execute("ALTER TABLE audit_events ENABLE TRIGGER USER")
