"""`make model`: explores the worlds of `services/verify/model` in full, and keeps how many states that was."""

from __future__ import annotations

import json
import subprocess

from quorate_harness import figures
from quorate_local.display import Display
from quorate_local.options import REPOSITORY


def explore(display: Display) -> int:
    """0 when every property held in every state, and every state that must be reached was."""
    command = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "quorate-model", "--", "large", "--json"]
    states = 0
    with subprocess.Popen(command, cwd=REPOSITORY / "services", stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        display.line(f"{'world':<34}{'states':>12}{'transitions':>14}{'depth':>7}{'time':>10}")
        for text in child.stdout:
            world = json.loads(text)
            states += world["states"]
            row = f"{world['states']:>12,}{world['transitions']:>14,}{world['depth']:>7}{world['seconds']:>8.1f} s"
            display.line(f"{world['world']:<34}{row}")
            for problem in world["violated"]:
                display.line(f"    VIOLATED: {problem}")
            if not world["exhaustive"]:
                display.line("    not exhaustive")
    if child.returncode == 0:
        figure = figures.Figure("model_states_explored", states, "states")
        figures.keep([figure], "make model", figures.FOLDER / "model.jsonl")
    display.line(f"{states:,} states in all{'' if child.returncode == 0 else ': NOT CLEAN'}")
    return child.returncode
