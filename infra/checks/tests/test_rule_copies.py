"""Copies of the group's rules in the simulator are found, in manifests and in sources."""

import pytest

from quorate_checks import rule_copies
from quorate_checks.cycles import rust_source
from quorate_local.options import REPOSITORY

SERVER = rule_copies.SERVER + "serve.rs"
GROUP_CRATES = ["services/crates/group/src", "services/crates/chain/src"]
CODES_OF_ANY_SERVER = {"Internal"}


def texts_of(path: str, text: str) -> list[str]:
    return [copy.text for copy in rule_copies.in_sources({path: text})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use quorate_qos::{Admission, FairQueue};", ["quorate_qos::Admission"]),
        ("use quorate_qos::*;", ["quorate_qos::*"]),
        ("fn f() { quorate_qos::Buckets::new() }", ["quorate_qos::Buckets::new"]),
        ("use quorate_chain::Verdict as Judged;", ["quorate_chain::Verdict"]),
        ("use quorate_chain::Replica;\nfn f() { Replica::new(1) }", ["quorate_chain::Replica::new"]),
        ("use quorate_types::Code;\nfn f() { refuse(Code::NotHead) }", ["quorate_types::Code::NotHead"]),
        ("use quorate_types::Code as C;\nfn f() { refuse(C::Throttled) }", ["quorate_types::Code::Throttled"]),
        ("use quorate_types::Code::Fenced;", ["quorate_types::Code::Fenced"]),
        ("use quorate_types::Code::*;", ["quorate_types::Code::*"]),
        ("mod inner { fn f() { quorate_types::Code::Syncing } }", ["quorate_types::Code::Syncing"]),
        ("use quorate_group::{Group, Output};\nuse quorate_types::Code;\nfn f() { Code::Internal }", []),
        ('use quorate_chain::ClientRef;\n// Code::NotHead\nconst A: &str = "Code::NotHead";', []),
        ("#[cfg(test)]\nmod tests { use quorate_qos::Admission; }", []),
    ],
)
def test_the_server_of_the_simulator(text: str, expected: list[str]) -> None:
    assert texts_of(SERVER, text) == expected


def test_clients_and_invariants_may_name_codes() -> None:
    text = "fn f(code: Code) { assert_eq!(code, Code::NotHead) }"
    assert texts_of(SERVER, text)
    assert texts_of(rule_copies.FLEET + "server.rs", text)
    assert not texts_of(rule_copies.SIMULATOR + "client.rs", text)
    assert texts_of(rule_copies.SIMULATOR + "client.rs", "use quorate_qos::Admission;")
    assert not texts_of("services/replica/src/start.rs", text + "use quorate_qos::Admission;")


def package(name: str, *dependencies: tuple[str, str | None, str | None]) -> dict[str, object]:
    listed = [{"name": other, "path": path, "kind": kind} for other, path, kind in dependencies]
    return {"name": name, "manifest_path": f"/r/{name}/Cargo.toml", "dependencies": listed}


def test_both_link_the_one_core() -> None:
    core = (rule_copies.CORE, f"/r/{rule_copies.CORE}", None)
    own_copy = (rule_copies.CORE, "/r/other", None)
    for_tests = (rule_copies.CORE, f"/r/{rule_copies.CORE}", "dev")

    def copies(*packages: dict[str, object]) -> list[str]:
        return [copy.path for copy in rule_copies.in_manifests({"packages": list(packages)})]

    both = ["quorate-sim/Cargo.toml", "quorate-replica/Cargo.toml"]
    group, sim, replica = package(rule_copies.CORE), package("quorate-sim", core), package("quorate-replica", core)
    assert copies(group, sim, replica) == []
    assert copies(sim, replica) == both
    assert copies(group, package("quorate-sim"), package("quorate-replica", for_tests)) == both
    assert copies(group, package("quorate-sim", own_copy), replica) == both[:1]


def test_the_list_has_every_code_of_the_group() -> None:
    found = set()
    for folder in GROUP_CRATES:
        for path in (REPOSITORY / folder).rglob("*.rs"):
            found |= _codes(rust_source.read(path.read_text()))
    assert len(found) > 10
    assert found - CODES_OF_ANY_SERVER <= rule_copies.code_names()


def _codes(module: rust_source.Module) -> set[str]:
    return {path.segments[1] for path in module.paths if path.segments[0] == "Code" and path.segments[1][0].isupper()}


def test_the_simulator_is_where_the_rules_say() -> None:
    assert (REPOSITORY / rule_copies.SERVER).is_dir()
    assert (REPOSITORY / rule_copies.FLEET).is_dir()
