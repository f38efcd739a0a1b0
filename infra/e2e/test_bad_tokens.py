"""Tokens that are wrong, too old, or another customer's: refused with the reason, nothing read or written."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from conftest import Owner
from quorate import wire
from quorate.codes import Code
from quorate_local import Stack
from wire_client import WireClient


def attach(handle: dict[str, Any], token: str, group: str | None = None) -> Code:
    """The code of the refused attach."""
    with WireClient(handle) as client:
        answer = client.attach(group or handle["group_id"], token)
        assert isinstance(answer, wire.Refused | wire.Goodbye), f"expected a refusal, got {answer}"
        assert answer.message
        assert not token or token not in answer.message
        return Code(answer.code)


def changed(stack: Stack, token: str, key: Any = None, algorithm: str = "EdDSA", **claims: Any) -> str:
    """The same token with other claims, signed by the stack's own key unless another is given."""
    header = jwt.get_unverified_header(token)
    payload = jwt.decode(token, options={"verify_signature": False}) | claims
    if key is None:
        pem = (stack.layout.secrets / "token-signing-key.pem").read_bytes()
        key = load_pem_private_key(pem, password=None)
    return jwt.encode(payload, key, algorithm=algorithm, headers={"kid": header["kid"]})


@pytest.mark.parametrize("token", ["", "not a token", "a.b.c", "x" * 5000])
def test_nonsense(alice: Owner, token: str) -> None:
    assert attach(alice.handle(), token) == Code.TOKEN_INVALID


def test_signed_by_another_key(alice: Owner, stack: Stack) -> None:
    handle = alice.handle()
    forged = changed(stack, handle["token"], key=Ed25519PrivateKey.generate())
    assert attach(handle, forged) == Code.TOKEN_INVALID


def test_unsigned_or_with_another_algorithm(alice: Owner, stack: Stack) -> None:
    handle = alice.handle()
    assert attach(handle, changed(stack, handle["token"], key="", algorithm="none")) == Code.TOKEN_INVALID
    shared_secret = "a secret of more than thirty-two bytes, to be fair"
    assert attach(handle, changed(stack, handle["token"], key=shared_secret, algorithm="HS256")) == Code.TOKEN_INVALID


def test_altered_after_signing(alice: Owner) -> None:
    handle = alice.handle()
    header, payload, signature = handle["token"].split(".")
    flipped = payload[:-2] + ("A" if payload[-2] != "A" else "B") + payload[-1]
    assert attach(handle, f"{header}.{flipped}.{signature}") == Code.TOKEN_INVALID


def test_expired(alice: Owner, stack: Stack) -> None:
    handle = alice.handle()
    now = int(time.time())
    expired = changed(stack, handle["token"], iat=now - 7200, exp=now - 3600)
    assert attach(handle, expired) == Code.TOKEN_EXPIRED


def test_for_another_audience(alice: Owner, stack: Stack) -> None:
    handle = alice.handle()
    assert attach(handle, changed(stack, handle["token"], aud="quorate-peer")) == Code.TOKEN_INVALID


def test_the_unaltered_token_works(alice: Owner, stack: Stack) -> None:
    """Without this the tests above could pass for a wrong reason."""
    handle = alice.handle()
    with WireClient(handle) as client:
        assert isinstance(client.attach(handle["group_id"], changed(stack, handle["token"])), wire.Attached)


def test_another_tenants_group(alice: Owner, bob: Owner) -> None:
    code = attach(alice.handle(), bob.handle()["token"], group=alice.handle()["group_id"])
    assert code == Code.PERMISSION_DENIED


def test_a_token_that_may_only_read_cannot_append(alice: Owner, stack: Stack) -> None:
    handle = alice.handle()
    grants = [{"group": handle["group_id"], "ops": ["read"]}]
    with WireClient(handle) as client:
        attached = client.attach(handle["group_id"], changed(stack, handle["token"], grants=grants))
        if isinstance(attached, wire.Attached):
            attached = client.append(1, [b"not mine to write"])
        assert isinstance(attached, wire.Refused)
        assert attached.code == Code.PERMISSION_DENIED
