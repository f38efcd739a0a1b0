"""Passwords that guessers try first are refused; all others are taken as they are."""

import pytest

from quorate_api.security.weak_passwords import weakness
from support.customer import PASSWORD, Customer, problem


@pytest.mark.parametrize(
    "password",
    [
        "1234567890",
        "Password12",
        "qwertyuiop",
        "Quorate2026!",
        "quorate-quorate"[:7] + "_0000",
        "password!!",
        "aaaaaaaaaaaa",
    ],
)
def test_known_ones(password: str) -> None:
    assert weakness(password) is not None


@pytest.mark.parametrize(
    "password", [PASSWORD, "tr0ub4dor & three", "пароль-подлиннее", "8f3k-22ma-0pqz", "quorate rocks slowly"]
)
def test_others_of_any_kind(password: str) -> None:
    assert weakness(password) is None


async def test_they_are_refused_wherever_one_is_chosen(alice: Customer) -> None:
    body = {"email": "new@example.com", "password": "1234567890", "organization": "new"}
    told = problem(await alice.api.post("/v1/signup", json=body), 422, "validation_failed")
    assert "guessed first" in told["errors"][0]["message"]
    change = {"password": PASSWORD, "new_password": "Password12"}
    problem(await alice.post("/v1/me/password", change), 422, "validation_failed")
    reset = {"token": "x", "password": "qwertyuiop"}
    problem(await alice.api.post("/v1/password/reset", json=reset), 422, "validation_failed")
