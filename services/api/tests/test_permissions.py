"""Scopes of API keys: what they allow, and which of them covers which. No I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate_api.access.permissions import (
    OF_ORGANIZATION_KEYS,
    OF_PROJECT_KEYS,
    ON_GROUPS,
    PERMISSIONS_BY_ROLE,
    Allowed,
    KeyScope,
    Permission,
)


def parse(text: str) -> KeyScope:
    return KeyScope.parse(text, OF_ORGANIZATION_KEYS)


def test_what_roles_may_in_one_table() -> None:
    may = {
        permission: {role for role, has in PERMISSIONS_BY_ROLE.items() if permission in has}
        for permission in Permission
    }
    assert may == {
        Permission.APPEND: {"owner", "admin", "developer"},
        Permission.READ: {"owner", "admin", "developer"},
        Permission.MANAGE: {"owner", "admin", "developer"},
        Permission.BILLING: {"owner", "admin", "billing"},
        Permission.VIEW: {"owner", "admin", "developer", "billing", "viewer"},
        Permission.TEAM: {"owner", "admin", "developer"},
        Permission.ADMINISTER: {"owner", "admin"},
        Permission.OWN: {"owner"},
    }


@pytest.mark.parametrize(
    "bad",
    ["", "fly", "append:", "append: x", "append:x ", "append:a\nb", "billing:x", "view", "own", "administer", ":x"],
)
def test_bad_scopes_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        KeyScope.parse(bad, OF_PROJECT_KEYS)


@pytest.mark.parametrize(
    ("scopes", "group", "may"),
    [
        (["append"], "orders", {"append", "view"}),
        (["append:orders"], "orders", {"append", "view"}),
        (["append:orders"], "orders2", set()),
        (["append:orders"], "order", set()),
        (["append:pay-*"], "pay-", {"append", "view"}),
        (["append:pay-*", "read:pay-eu"], "pay-eu", {"append", "read", "view"}),
        (["append:pay-*", "read:pay-eu"], "pay-us", {"append", "view"}),
        (["append:*"], "anything", {"append", "view"}),
        (["read", "append:orders"], "other", {"read", "view"}),
        (["billing", "append:orders"], "other", {"billing"}),
        (["billing"], "other", {"billing", "view"}),
        (["append:a:b"], "a:b", {"append", "view"}),
    ],
)
def test_what_scopes_allow_on_a_group(scopes: list[str], group: str, may: set[str]) -> None:
    allowed = Allowed.of_scopes(scopes)
    assert {str(each) for each in Permission if allowed.has(each, group)} == may


def test_a_narrow_key_sees_what_it_works_on() -> None:
    assert Allowed.of_scopes(["append"]).groups_seen() is None
    assert Allowed.of_scopes(["append:a", "read:b-*", "read:a"]).groups_seen() == ("a", "b-*")
    assert Allowed.of_scopes(["read", "append:a"]).groups_seen() is None
    assert not Allowed.of_scopes(["append:a"]).has(Permission.VIEW), "nothing beside its groups"


texts = st.builds(
    lambda permission, groups: f"{permission}{groups}",
    st.sampled_from(sorted(ON_GROUPS)),
    st.sampled_from(["", ":a", ":a*", ":ab", ":ab*", ":*", ":b"]),
)


@given(texts, texts, st.text(alphabet="ab*", min_size=1, max_size=4))
def test_a_scope_that_covers_another_allows_all_of_it(own: str, other: str, group: str) -> None:
    if parse(own).covers(parse(other)) and Allowed.of_scopes([other]).has(parse(other).permission, group):
        assert Allowed.of_scopes([own]).has(parse(other).permission, group)


@given(texts)
def test_a_scope_covers_itself_and_is_read_as_it_is_written(text: str) -> None:
    assert parse(text).covers(parse(text))
    assert str(parse(text)) == text
