from quorate_harness.customer import billed_entries


def test_only_the_groups_own_append_lines_are_billed() -> None:
    lines = [
        {"group_id": "a", "kind": "appends", "quantity": 700},
        {"group_id": "a", "kind": "appends", "quantity": 300},
        {"group_id": "a", "kind": "reads", "quantity": 5},
        {"group_id": "b", "kind": "appends", "quantity": 9},
    ]
    assert billed_entries({"lines": lines}, "a") == 1000
