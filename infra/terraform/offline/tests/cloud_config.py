"""A rendered machine, read as cloud-init and systemd read it."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from typing import Any

import yaml

# Of cloud-init's schema, the fields that we use, and no others.
COMMANDS = {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 1, "items": {"type": "string"}}}
USER = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "system": {"type": "boolean"},
        "no_create_home": {"type": "boolean"},
        "shell": {"type": "string"},
    },
}
FILE = {
    "type": "object",
    "required": ["path", "content", "permissions", "owner"],
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "pattern": "^/"},
        "content": {"type": "string"},
        "permissions": {"type": "string", "pattern": "^0[0-7]{3}$"},
        "owner": {"type": "string", "pattern": "^[a-z]+:[a-z]+$"},
    },
}
CLOUD_CONFIG = {
    "type": "object",
    "additionalProperties": False,
    "required": ["users", "write_files", "runcmd"],
    "properties": {
        "users": {"type": "array", "items": {"anyOf": [{"const": "default"}, USER]}},
        "write_files": {"type": "array", "minItems": 1, "items": FILE},
        "runcmd": COMMANDS,
        "packages": {"type": "array", "items": {"type": "string"}},
    },
}


@dataclass
class Machine:
    text: str

    @property
    def config(self) -> dict[str, Any]:
        config = yaml.safe_load(self.text)
        assert isinstance(config, dict)
        return config

    def file(self, path: str) -> dict[str, str]:
        found = [file for file in self.config["write_files"] if file["path"] == path]
        assert len(found) == 1, f"{path} is written {len(found)} times"
        return dict(found[0])

    def unit(self, name: str) -> configparser.RawConfigParser:
        parser = configparser.RawConfigParser(strict=True, delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
        parser.read_string(self.file(f"/etc/systemd/system/{name}")["content"])
        return parser
