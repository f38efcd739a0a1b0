import json

import pytest

from quorate import Guarantee, Handle, HandleError
from quorate.handle import split_address

HANDLE = {
    "group_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
    "name": "orders",
    "epoch": 3,
    "endpoints": [
        {"server_id": 1, "address": "127.0.0.1:7001", "role": "follower"},
        {"server_id": 2, "address": "[::1]:7002", "role": "head"},
    ],
    "token": "secret-token",
    "token_expires_at": "2026-11-20T12:00:00Z",
    "sla": {"durability": "persistent"},
    "limits": {"max_entry_bytes": 10, "max_batch_bytes": 20, "max_batch_entries": 30, "window_batches": 256},
}


def test_reads_the_api_s_answer():
    handle = Handle.parse(json.dumps(HANDLE))
    assert handle == Handle.parse(HANDLE) == Handle.parse(handle)
    assert handle.addresses() == ["[::1]:7002", "127.0.0.1:7001"]
    assert handle.limits.max_batch_entries == 30
    assert handle.token_expires_at.utcoffset().total_seconds() == 0


def test_says_what_the_project_guarantees():
    assert Handle.parse(HANDLE).guarantee is None
    shared = {"shared_tokens_per_s": 100_000, "tokens_per_append": 7.5, "shared_appends_per_s": 13_333}
    guarantee = Handle.parse({**HANDLE, "guarantee": shared}).guarantee
    assert guarantee == Guarantee(100_000, 7.5, 13_333)
    assert Handle.parse({**HANDLE, "guarantee": None}).guarantee is None


def test_does_not_show_its_token():
    assert "secret-token" not in repr(Handle.parse(HANDLE))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tls": {"required": True}}, "lacks 'ca_pem'"),
        ({"tls": {"required": True, "ca_pem": "nonsense"}}, "not a certificate authority"),
        ({"tls": "yes"}, "malformed"),
        ({"endpoints": []}, "no endpoints"),
        ({"endpoints": None}, "malformed"),
        ({"endpoints": [{"address": "nonsense"}]}, "host:port"),
        ({"group_id": "orders"}, "malformed"),
        ({"token": ...}, "lacks 'token'"),
        ({"token_expires_at": "tomorrow"}, "malformed"),
        ({"guarantee": {"shared_tokens_per_s": 1}}, "lacks 'tokens_per_append'"),
    ],
)
def test_says_what_is_wrong(change, says):
    broken = {key: value for key, value in {**HANDLE, **change}.items() if value is not ...}
    with pytest.raises(HandleError, match=says):
        Handle.parse(broken)


@pytest.mark.parametrize("source", ["", "not json", b"\xff", "[]", 7, None])
def test_rejects_what_is_no_handle(source):
    with pytest.raises(HandleError):
        Handle.parse(source)


def test_splits_addresses():
    assert split_address("localhost:80") == ("localhost", 80)
    assert split_address("[fe80::1]:7001") == ("fe80::1", 7001)
    for wrong in ("", "host", "host:", ":80", "host:0", "host:65536", "host:x"):
        with pytest.raises(ValueError, match="host:port"):
            split_address(wrong)
