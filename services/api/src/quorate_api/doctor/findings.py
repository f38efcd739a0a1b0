"""Findings of the doctor: what was looked at, how it is, and what to do. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    state: State
    text: str
    todo: str = ""


def as_text(findings: Sequence[Finding]) -> str:
    """A line for each, and below what is not well its remedy."""
    width = max(len(each.subject) for each in findings)
    lines = []
    for each in findings:
        lines.append(f"{each.state:<4}  {each.subject:<{width}}  {each.text}")
        if each.todo:
            lines.append(f"{'':<{width + 8}}→ {each.todo}")
    counts = {state: sum(each.state == state for each in findings) for state in ("ok", "warn", "fail")}
    lines.append(f"\n{counts['ok']} well, {counts['warn']} to look at, {counts['fail']} to mend")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    return json.dumps([asdict(each) for each in findings], ensure_ascii=False, indent=1)


def is_well(findings: Sequence[Finding]) -> bool:
    return all(each.state != "fail" for each in findings)
