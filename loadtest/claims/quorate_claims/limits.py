"""The data plane's bounds, read from where they are written."""

from __future__ import annotations

import re

from quorate_local.options import REPOSITORY

SOURCE = REPOSITORY / "services" / "crates" / "types" / "src" / "limits.rs"
_CONSTANT = re.compile(r"^pub const (\w+): (?:u8|u16|u32|u64|usize) = ([\d_]+)(?: << (\d+))?;$", re.M)


def limits() -> dict[str, int]:
    """Every bound that is a number or a number shifted; those made of others are left out."""
    return {
        name: int(number.replace("_", "")) << int(shift or 0)
        for name, number, shift in _CONSTANT.findall(SOURCE.read_text())
    }
