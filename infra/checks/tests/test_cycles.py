"""Import cycles in small trees are found, and nothing else is."""

import subprocess
from pathlib import Path

import pytest

from quorate_checks.cycles import allowed, command, graph, projects, rust
from quorate_checks.cycles.graph import Import


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def cycles(root: Path) -> list[tuple[str, ...]]:
    return [found.names for found in projects.survey(root).found]


def crate(root: Path, files: dict[str, str]) -> list[tuple[str, ...]]:
    write(root, {"services/a/Cargo.toml": "", **{f"services/a/src/{name}": text for name, text in files.items()}})
    return [tuple(name.removeprefix("src/") for name in names) for names in cycles(root)]


def edges(files: dict[str, str]) -> set[tuple[str, str]]:
    return {one.ends for one in rust.imports(files, "lib.rs")}


def test_two_files_of_a_crate(tree: Path) -> None:
    files = {"lib.rs": "mod a;\nmod b;\n", "a.rs": "use crate::b::B;\npub struct A;\n", "b.rs": "pub struct B;\n"}
    assert crate(tree, files) == []
    assert crate(tree, {"b.rs": "pub struct B(crate::a::A);\n"}) == [("a.rs", "b.rs")]


def test_a_cycle_is_printed_with_file_and_line(tree: Path) -> None:
    lib = "mod a;\nmod b;\nmod c;\n"
    a, b = "use crate::{\n    b::B,\n};\npub struct A;\n", "use super::c::C;\npub struct B;\n"
    crate(tree, {"lib.rs": lib, "a.rs": a, "b.rs": b, "c.rs": "pub struct C;\nfn f(_: crate::a::A) {}\n"})
    (found,) = projects.survey(tree).found
    assert command.report(found, is_new=False) == [
        "services/a: 3 files import one another: src/a.rs, src/b.rs, src/c.rs",
        "  loop of 3:",
        "    src/a.rs:2 → src/b.rs   use crate::b::B",
        "    src/b.rs:1 → src/c.rs   use super::c::C",
        "    src/c.rs:2 → src/a.rs   crate::a::A",
        "",
    ]


def test_tests_comments_and_strings_are_no_imports() -> None:
    b = """\
// use crate::a::A;
/* crate::a::A */
const TEXT: &str = "crate::a::A";
const RAW: &str = r#"use "crate::a::A;"#;
const QUOTE: char = '\\'';
pub(in crate::a) struct B<'x>(&'x str);
#[cfg(test)]
fn only<T, U>(_: crate::a::A) {}
#[cfg(test)]
#[allow(unused)]
mod tests {
    use crate::a::A;
}
#[cfg(test)]
mod b_tests;
"""
    files = {"lib.rs": "mod a;\nmod b;\n", "a.rs": "pub struct A;\n", "b.rs": b, "b/b_tests.rs": "use crate::a::A;"}
    assert edges(files) == set()
    assert edges({**files, "b.rs": b + "fn after(_: crate::a::A) {}\n"}) == {("b.rs", "a.rs")}


def test_a_re_export_is_an_import_of_the_file_that_defines() -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\npub use a::A;\n",
        "a/mod.rs": "mod inner;\npub use inner::A;\npub use inner::deep::*;\n",
        "a/inner/mod.rs": "pub mod deep;\npub struct A;\n",
        "a/inner/deep.rs": "pub struct D;\n",
        "b.rs": "use crate::A;\nuse crate::a::D as Other;\n",
    }
    assert edges(files) == {("b.rs", "a/inner/mod.rs"), ("b.rs", "a/inner/deep.rs")}


def test_a_module_that_is_imported_counts_where_its_items_are_named() -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "mod inner;\npub use inner::A;\npub fn f() {}\n",
        "a/inner.rs": "pub struct A;\n",
        "b.rs": "use crate::a;\nfn g(_: a::A) {}\n",
    }
    assert edges(files) == {("b.rs", "a/inner.rs")}
    assert edges({**files, "b.rs": "use crate::a;\nfn g() { a::f() }\n"}) == {("b.rs", "a/mod.rs")}


def test_a_parent_and_its_child_only_where_both_use_the_other() -> None:
    child = "use super::Shared;\npub struct Part(Shared);\n"
    declares = "mod child;\npub use child::Part;\npub struct Shared;\n"
    assert edges({"lib.rs": declares, "child.rs": child}) == {("child.rs", "lib.rs")}
    uses = declares + "pub struct Whole(Part);\n"
    assert edges({"lib.rs": uses, "child.rs": child}) == {("child.rs", "lib.rs"), ("lib.rs", "child.rs")}
    by_path = "mod child;\npub struct Shared;\npub struct Whole(child::Part);\n"
    assert edges({"lib.rs": by_path, "child.rs": child}) == {("child.rs", "lib.rs"), ("lib.rs", "child.rs")}


def test_a_glob_imports_the_names_that_are_used() -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nuse a::A;\npub struct Here;\n",
        "a.rs": "pub struct A;\n",
        "b.rs": "use super::*;\nfn f(_: A) {}\n",
    }
    assert edges(files) == {("b.rs", "a.rs"), ("lib.rs", "a.rs")}
    assert ("b.rs", "lib.rs") in edges({**files, "b.rs": "use super::*;\nfn f(_: Here) {}\n"})


def test_items_of_other_crates_are_no_imports() -> None:
    files = {"lib.rs": "mod log;\nmod b;\n", "log.rs": "pub fn x() {}\n", "b.rs": "use log::Level;\nuse std::fmt;\n"}
    assert edges(files) == set()


def test_folders_of_a_crate(tree: Path) -> None:
    files = {
        "lib.rs": "mod shard;\nmod shared;\n",
        "shard/mod.rs": "pub mod a;\npub mod b;\n",
        "shard/a.rs": "use crate::shared::S;\n",
        "shard/b.rs": "pub struct B;\n",
        "shared.rs": "use crate::shard::b::B;\npub struct S;\n",
    }
    assert crate(tree, files) == [("shard", "shared")]
    assert crate(tree, {"shared.rs": "pub struct S;\n"}) == []


def test_python_packages(tree: Path) -> None:
    package = {"x/pyproject.toml": "", "x/p/__init__.py": "", "x/p/a/__init__.py": "", "x/p/b/__init__.py": ""}
    write(tree, {**package, "x/p/a/one.py": "from p.b import one\n", "x/p/b/one.py": "", "x/p/b/two.py": ""})
    assert cycles(tree) == []
    write(tree, {"x/p/b/two.py": "def f():\n    from ..a.one import name\n"})
    assert cycles(tree) == [("p/a", "p/b")]
    write(tree, {"x/p/b/one.py": "import p.a.one as other\n"})
    assert cycles(tree) == [("p/a/one.py", "p/b/one.py"), ("p/a", "p/b")]


def test_cycles_of_whole_packages(tree: Path) -> None:
    packages = {"in/x/pyproject.toml": "", "in/z/pyproject.toml": "", "out/y/pyproject.toml": ""}
    names = ["in/x/p", "out/y/q", "in/z/r"]
    write(tree, {**packages, **{f"{name}/__init__.py": "" for name in names}})
    write(tree, {"in/x/p/a.py": "import q.a\n", "out/y/q/a.py": "import r.a\n", "in/z/r/a.py": "", "in/x/p/b.py": ""})
    assert cycles(tree) == []
    write(tree, {"in/z/r/b.py": "import p.b\n"})
    assert cycles(tree) == [("in/x", "in/z", "out/y")]


def test_python_imports_for_type_checkers_are_left_out(tree: Path) -> None:
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A\nelse:\n    A = None\n"
    write(tree, {"x/p/__init__.py": "", "x/p/a.py": "from p import b\n", "x/p/b.py": checked})
    assert cycles(tree) == []
    write(tree, {"x/p/b.py": "from p.a import A\n"})
    assert cycles(tree) == [("a.py", "b.py")]


def test_typescript_modules(tree: Path) -> None:
    settings = '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}'
    a = "import {\n  b,\n} from '@/b'\nexport const a = 1 // from './c'\n"
    write(tree, {"w/tsconfig.json": settings, "w/src/a.ts": a})
    for b in ("import type { A } from './a'", "import { type A } from './a.js'", "// import { a } from './a'"):
        write(tree, {"w/src/b.tsx": b + "\n"})
        assert cycles(tree) == []
    for b in ("import { a } from './a.js'", "export * from '../src/a'", "import './a'", "await import('./a')"):
        write(tree, {"w/src/b.tsx": b + "\n"})
        assert cycles(tree) == [("src/a.ts", "src/b.tsx")]


def test_separate_cycles_and_their_loops() -> None:
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")]
    found = graph.cycles([Import(source, target, 1) for source, target in pairs])
    assert [cycle.members for cycle in found] == [("a", "b", "c"), ("d", "e")]
    assert [[one.source for one in loop] for loop in found[0].loops] == [["a", "b"], ["b", "c", "a"]]


def test_the_table_only_shrinks(tree: Path, tmp_path: Path) -> None:
    lib = "mod a;\nmod b;\nmod c;\n"
    files = {"lib.rs": lib, "a.rs": "use crate::b::B;\npub struct A;\n", "b.rs": "use crate::a::A;\npub struct B;\n"}
    crate(tree, {**files, "c.rs": ""})
    table = {"services/a": [frozenset({"src/a.rs", "src/b.rs", "src/c.rs"})], "gone": [frozenset({"x", "y"})]}
    found = projects.survey(tree).found
    assert allowed.is_allowed(found[0], table)
    lowered = allowed.lowered(found, table)
    assert lowered == {"services/a": [frozenset({"src/a.rs", "src/b.rs"})]}
    file = tmp_path / "table.toml"
    allowed.write(lowered, file)
    assert allowed.read(file) == lowered
    crate(
        tree,
        {"b.rs": "use crate::a::A;\nuse crate::c::C;\npub struct B;\n", "c.rs": "use crate::b::B;\npub struct C;\n"},
    )
    found = projects.survey(tree).found
    assert not allowed.is_allowed(found[0], lowered)
    assert allowed.lowered(found, lowered) == {}
