"""No constant is named twice in a file: the later one would hold for both."""

import ast
from collections import Counter
from pathlib import Path


def named_twice(text: str) -> list[str]:
    """Names in capitals that a module assigns more than once, outside of conditions."""
    names: Counter[str] = Counter()
    for node in ast.parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names.update(target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper())
    return [name for name, count in names.items() if count > 1]


def test_constants_are_found() -> None:
    assert named_twice("A = 1\nb = 1\nb = 2\nC: int = 1\nA = 2\nif b:\n    C = 2\nA += 1\n") == ["A"]


def test_constants_are_named_once(texts: dict[Path, str]) -> None:
    found = {str(path): names for path, text in texts.items() if path.suffix == ".py" and (names := named_twice(text))}
    assert not found
