"""No function too long to read: those of Rust, as rustfmt lays them out."""

import re
from collections.abc import Iterator
from pathlib import Path

LINES_MAX = 70
# Path and function → lines that it may have: one match over all there is, or not split yet.
LONGER = {
    ("services/crates/types/src/codes.rs", "explanation"): 123,
    ("services/crates/wire/src/client/encode.rs", "put_head"): 83,
}
BEGIN = re.compile(r"( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)")


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Names and lines, from `fn` to the brace in its column."""
    lines = text.split("\n")
    for first, line in enumerate(lines):
        begin = BEGIN.match(line)
        if not begin:
            continue
        indent, name = begin.groups()
        for last in range(first, len(lines)):
            is_in_column = not lines[last].startswith(f"{indent} ")
            if last > first and lines[last] == f"{indent}}}":
                yield name, last - first + 1
                break
            if is_in_column and lines[last].endswith((";", "}")):
                break  # No body, or one on the line of its name.


def is_of_tests(path: Path) -> bool:
    return "tests" in path.parts or path.stem.endswith("tests")


def long_functions(texts: dict[Path, str]) -> dict[tuple[str, str], int]:
    of_rust = {path: text for path, text in texts.items() if path.suffix == ".rs" and not is_of_tests(path)}
    found: dict[tuple[str, str], int] = {}
    for path, text in of_rust.items():
        for name, lines in functions(text):
            found[str(path), name] = max(lines, found.get((str(path), name), 0))
    return {place: lines for place, lines in found.items() if lines > LINES_MAX}


def test_functions_are_measured() -> None:
    text = """
impl A {
    pub fn one(&self) {
        x();
    }

    fn two(
        a: u8,
    ) -> u8 {
        a
    }
}
trait B {
    fn three(&self);
    fn four(
        &self,
    );
}
fn five() {}
"""
    assert list(functions(text)) == [("one", 3), ("two", 5)]


def test_functions_stay_readable(texts: dict[Path, str]) -> None:
    too_long = [
        f"{path}: {name} has {lines} lines, at most {LONGER.get((path, name), LINES_MAX)}; split it by idea"
        for (path, name), lines in long_functions(texts).items()
        if lines > LONGER.get((path, name), LINES_MAX)
    ]
    assert not too_long, "\n".join(too_long)


def test_the_list_of_longer_functions_is_not_stale(texts: dict[Path, str]) -> None:
    assert not LONGER.keys() - long_functions(texts).keys()
