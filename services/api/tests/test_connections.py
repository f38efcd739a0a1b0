"""Connections that PostgreSQL closed are replaced before a request meets them."""

import psycopg

from support.customer import Customer

END_ALL = (
    "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
    " WHERE application_name = 'quorate_api' AND datname = current_database()"
)


async def test_a_closed_connection_is_replaced(alice: Customer, owner: psycopg.Connection) -> None:
    for _ in range(3):
        assert (await alice.request("GET", f"/v1/projects/{alice.project_id}/groups")).status_code == 200
        ended = owner.execute(END_ALL).fetchone()
        assert ended is not None
        assert ended[0] > 0
    assert (await alice.request("GET", f"/v1/projects/{alice.project_id}/groups")).status_code == 200
