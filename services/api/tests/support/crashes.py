"""A process that ends in the midst of what it does to files."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

EFFECTS = ((Path, "replace"), (Path, "unlink"), (os, "utime"))


class Crash(Exception):
    """Raised in place of an effect on files."""


def repeated(monkeypatch: pytest.MonkeyPatch, number: int, step: Callable[[], object]) -> bool:
    """Run a step that crashes before its `number`-th effect, and again to its end. False: it has fewer effects."""
    effects = count()

    def crashing(effect: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(effects) == number:
                raise Crash
            return effect(*arguments, **options)

        return run

    with monkeypatch.context() as patched:
        for owner, name in EFFECTS:
            patched.setattr(owner, name, crashing(getattr(owner, name)))
        try:
            step()
        except Crash:
            crashed = True
        else:
            crashed = False
    if crashed:
        step()
    return crashed
