"""Placement and work conservation by `quorate-planner`, with the cost profile that the figures use."""

from __future__ import annotations

from typing import Any

from quorate_papers import tool
from quorate_papers.instances import Instance
from quorate_papers.profiles import chosen


def place(instance: Instance, how: str, algorithm: str = "shape") -> dict[str, Any]:
    """`how`: online or offline; `algorithm`: shape (the coordinator's), or filo (Algorithm 1 as printed)."""
    return tool.run(["place", f"--{how}", "--algorithm", algorithm], chosen().path, instance)


def conserve(instance: Instance, algorithm: str, repeat: int = 1, *more: str) -> dict[str, Any]:
    """Shares out all that is idle."""
    flags = ["--algorithm", algorithm, "--policy", "idle", "--repeat", str(repeat), *more]
    return tool.run(["conserve", *flags], chosen().path, instance)
