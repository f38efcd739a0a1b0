"""Networks of a run's own: where there can be none the reason is said, and cuts end."""

import os
import shutil
import subprocess

import pytest

from quorate_sla import apart


def test_without_root_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert apart.missing() == "it needs root"


def test_missing_tools_are_named_by_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in ("ip", "nft") else f"/usr/bin/{tool}")
    assert apart.missing() == "missing: iproute2, nftables (`make setup` installs them as root)"


def test_a_refusal_of_the_kernel_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    refused = subprocess.CompletedProcess([], 1, "", "unshare failed: Operation not permitted\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    assert apart.missing() == "unshare failed: Operation not permitted"


def test_nothing_is_cut_off_where_there_is_no_own_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(apart.INSIDE, raising=False)
    assert apart.group_ids(["s1", "s2"]) == {}
    monkeypatch.setenv(apart.INSIDE, "1")
    assert apart.group_ids(["s1", "s2"]) == {"s1": 60_001, "s2": 60_002}


def test_a_cut_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(apart, "_nft", said.append)
    with apart.Filter({"s1": 60_001}, {"s1": 7001}).cut(("clients", "s1")):
        assert "meta skgid 60000 tcp dport 7001 drop" in said[0]
        assert len(said) == 1
    assert said[1:] == ["delete table inet cuts\n"]
