#!/usr/bin/env python3
"""Writes every language's table of error codes from errors.json.

python3 sdk/contract/generate.py           write them
python3 sdk/contract/generate.py --check   exit 1 if one of them is stale
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "sdk/contract/errors.json"
BANNER = "Generated from `sdk/contract/errors.json` by `sdk/contract/generate.py`; do not edit."

RUST_WIDTH = 110  # max_width of rustfmt.toml


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def literal(text):
    return json.dumps(text, ensure_ascii=False)


def rust(data):
    codes = data["data_plane"]
    lines = [f"//! Error codes of the data plane. {BANNER}", "", "/// An error, as a stable number on the wire."]
    lines += ["#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]", "#[repr(u16)]", "pub enum Code {"]
    for c in codes:
        lines += [f"    /// {c['meaning']} {c['action']}", f"    {camel(c['name'])} = {c['code']},"]
    lines += ["}", "", "/// What a client should do with a refusal.", "#[derive(Debug, Clone, Copy, PartialEq, Eq)]"]
    lines += ["pub enum Retry {", "    Never,", "    /// The same server, after the given time.", "    Here,"]
    lines += ["    /// The head named in the answer.", "    Head,", "    /// With a fresh handle.", "    Handle,"]
    lines += [
        "    /// On a new connection.",
        "    Connection,",
        "}",
        "",
        "impl Code {",
        "    pub const ALL: &'static [Code] = &[",
    ]
    lines += [f"        Code::{camel(c['name'])}," for c in codes]
    lines += ["    ];", "", "    pub fn from_u16(value: u16) -> Option<Code> {"]
    lines += ["        Self::ALL.iter().copied().find(|code| *code as u16 == value)", "    }", ""]
    lines += ["    pub fn name(self) -> &'static str {", "        match self {"]
    lines += [f'            Code::{camel(c["name"])} => "{c["name"]}",' for c in codes]
    lines += ["        }", "    }", "", "    pub fn retry(self) -> Retry {", "        match self {"]
    lines += [f"            Code::{camel(c['name'])} => Retry::{camel(c['retry'])}," for c in codes]
    lines += ["        }", "    }", "", "    /// The meaning and the next step, for people."]
    lines += ["    pub fn explanation(self) -> &'static str {", "        match self {"]
    for c in codes:
        arm, text = f"            Code::{camel(c['name'])} =>", literal(f"{c['meaning']} {c['action']}")
        # As rustfmt has it: on one line if it fits.
        fits = len(f"{arm} {text},") <= RUST_WIDTH
        lines += [f"{arm} {text},"] if fits else [f"{arm} {{", f"                {text}", "            }"]
    lines += ["        }", "    }", "}"]
    return "\n".join(lines) + "\n"


PYTHON_HEAD = '''
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Fault = Literal["client", "service", "network", "nobody"]
Retry = Literal["never", "here", "head", "handle", "connection", "check"]


class Code(IntEnum):
    """An error, as a stable number. The SDK makes those from 1000 on, which never travel."""
'''

PYTHON_TABLE = '''

@dataclass(frozen=True, slots=True)
class CodeInfo:
    """A code's fault, retry, meaning and next step."""

    name: str
    fault: Fault
    retry: Retry
    meaning: str
    action: str


CODES: dict[int, CodeInfo] = {
'''


def python(data):
    codes = data["data_plane"] + data["client_side"]
    text = f'"""Error codes of the data plane. {BANNER}"""\n' + PYTHON_HEAD + "\n"
    text += "".join(f"    {c['name'].upper()} = {c['code']}\n" for c in codes) + PYTHON_TABLE
    for c in codes:
        text += f"    {c['code']}: CodeInfo(\n"
        text += "".join(f"        {literal(c[key])},\n" for key in ("name", "fault", "retry", "meaning", "action"))
        text += "    ),\n"
    return text + "}\n"


TYPESCRIPT_TABLE = """
/** A code's fault, retry, meaning and next step. */
export interface CodeInfo {
  readonly name: CodeName;
  readonly fault: "client" | "service" | "network" | "nobody";
  readonly retry: "never" | "here" | "head" | "handle" | "connection" | "check";
  readonly meaning: string;
  readonly action: string;
}

"""


def typescript(data):
    codes = data["data_plane"] + data["client_side"]
    text = f"/** Error codes of the data plane. {BANNER} */\n\n"
    text += "/** An error, as a stable number. The SDK makes those from 1000 on, which never travel. */\n"
    text += "export const Code = {\n" + "".join(f"  {c['name']}: {c['code']},\n" for c in codes) + "} as const;\n\n"
    text += "export type CodeName = keyof typeof Code;\n" + TYPESCRIPT_TABLE
    text += "export const CODES: ReadonlyMap<number, CodeInfo> = new Map<number, CodeInfo>([\n"
    for c in codes:
        text += f"  [\n    {c['code']},\n    {{\n"
        text += "".join(f"      {key}: {literal(c[key])},\n" for key in ("name", "fault", "retry", "meaning", "action"))
        text += "    },\n  ],\n"
    return text + "]);\n"


RUST_SDK_HEAD = """
/// A code's fault, retry, meaning and next step.
#[derive(Debug, PartialEq, Eq)]
pub struct CodeInfo {
    pub code: u16,
    pub name: &'static str,
    pub fault: &'static str,
    pub retry: &'static str,
    pub meaning: &'static str,
    pub action: &'static str,
}

/// Codes that the client makes itself. They never travel.
pub mod client_side {
"""


def rust_sdk(data):
    text = f"//! The meaning of error codes. {BANNER}\n" + RUST_SDK_HEAD
    for c in data["client_side"]:
        text += f"    /// {c['meaning']} {c['action']}\n    pub const {c['name'].upper()}: u16 = {c['code']};\n"
    codes = sorted(data["data_plane"] + data["client_side"], key=lambda c: c["code"])
    text += f"}}\n\n/// Every code, in order.\npub static CODES: [CodeInfo; {len(codes)}] = [\n"
    for c in codes:
        text += f"    CodeInfo {{\n        code: {c['code']},\n"
        keys = ("name", "fault", "retry", "meaning", "action")
        text += "".join(f"        {key}: {literal(c[key])},\n" for key in keys)
        text += "    },\n"
    return text + "];\n"


def api(data):
    """For the API's pages of codes (`/errors/NAME`)."""
    head = f'"""Error codes of the data plane and of SDKs, for their pages. {BANNER}"""\n\n'
    text = head + "from typing import NamedTuple\n\n\nclass DataCode(NamedTuple):\n    code: int\n    fault: str\n"
    text += "    retry: str\n    meaning: str\n    action: str\n\n\nDATA_CODES: dict[str, DataCode] = {\n"
    for c in sorted(data["data_plane"] + data["client_side"], key=lambda c: c["code"]):
        text += f'    "{c["name"]}": DataCode(\n        {c["code"]},\n'
        text += "".join(f"        {literal(c[key])},\n" for key in ("fault", "retry", "meaning", "action")) + "    ),\n"
    return text + "}\n"


OUTPUTS = {
    "services/api/src/quorate_api/errors/data_codes.py": api,
    "services/crates/types/src/codes.rs": rust,
    "sdk/rust/src/codes.rs": rust_sdk,
    "sdk/python/src/quorate/codes.py": python,
    "sdk/js/src/codes.ts": typescript,
}


def main():
    data = json.loads(SOURCE.read_text(encoding="utf-8"))
    numbers = [c["code"] for c in data["data_plane"] + data["client_side"]]
    assert len(numbers) == len(set(numbers)), "a code is used twice"
    stale = []
    for name, render in OUTPUTS.items():
        path, text = ROOT / name, render(data)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"stale, run python3 sdk/contract/generate.py: {', '.join(stale)}")


if __name__ == "__main__":
    main()
