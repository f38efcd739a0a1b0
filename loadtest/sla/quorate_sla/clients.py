"""Programs that a developer would write with an SDK, as processes of their own, in both languages."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from quorate_harness.customer import Customer
from quorate_local.options import REPOSITORY
from quorate_sla.apart import CLIENTS_GROUP_ID

PROGRAMS = Path(__file__).parent / "programs"
MODULE = REPOSITORY / "sdk" / "js" / "dist" / "index.js"
# Each program with its interpreter, and what comes before its own arguments.
LANGUAGES = {"python": ([sys.executable], ".py", []), "typescript": (["node"], ".mjs", [MODULE.as_uri()])}


def command_of(name: str, language: str, *arguments: object) -> list[str]:
    """The command of a program of `programs/`."""
    interpreter, suffix, first = LANGUAGES[language]
    return [*interpreter, str(PROGRAMS / f"{name}{suffix}"), *first, *map(str, arguments)]


@dataclass(frozen=True)
class Program:
    """A program of `programs/` in one language, for one group."""

    name: str
    language: str
    group_id: str

    def start(self, customer: Customer, *arguments: object, is_apart: bool = False) -> subprocess.Popen[str]:
        """Start it. Its answers are lines on its standard output; errors go to ours.

        `is_apart`: a packet filter may cut it off from servers.
        """
        command = command_of(self.name, self.language, *arguments)
        environment = os.environ | {
            "QUORATE_API_URL": customer.api_url,
            "QUORATE_API_KEY": customer.api_key,
            "QUORATE_GROUP_ID": self.group_id,
        }
        group_id = CLIENTS_GROUP_ID if is_apart else None
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True, group=group_id
        )
