"""A rendered machine, read as cloud-init and systemd read it."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from typing import Any

import yaml

# The used fields of cloud-init's schema, and no others.
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
        "defer": {"type": "boolean"},
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
        "package_update": {"type": "boolean"},
    },
}

# The oldest systemd that an image may have, as in the modules' variables for images. The lists below hold the settings
# that units may use, by systemd.unit(5), systemd.service(5) and systemd.exec(5), which name the version of each.
SYSTEMD_MIN = 247
SPECIFIERS = set("%bCEfgGhHiIjJlLmnNpPsStTuUvV")
SETTINGS = {
    "Unit": {"Description", "Wants", "After", "Requires", "StartLimitIntervalSec"},
    "Install": {"WantedBy"},
    "Service": {
        # The service itself.
        "Type", "User", "Group", "Environment", "EnvironmentFile", "ExecStartPre", "ExecStart", "LoadCredential",
        "RemainAfterExit",
        "Restart", "RestartSec", "RestartPreventExitStatus", "TimeoutStartSec", "TimeoutStopSec", "LimitNOFILE",
        "StateDirectory", "StateDirectoryMode", "DynamicUser",
        # rdma.conf.
        "DeviceAllow", "DevicePolicy", "LimitMEMLOCK",
        # least-privilege.conf.
        "CapabilityBoundingSet", "LockPersonality", "MemoryDenyWriteExecute", "NoNewPrivileges", "PrivateDevices",
        "PrivateTmp", "ProtectClock", "ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs",
        "ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "RemoveIPC",
        "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
        "SystemCallArchitectures", "SystemCallFilter", "UMask",
    },
}  # fmt: skip
UNITS = "/etc/systemd/system/"


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
        # Not strict: lists of systemd's, such as EnvironmentFile, are lines with one name. The last one is answered.
        parser = configparser.RawConfigParser(strict=False, delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
        parser.read_string(self.file(f"/etc/systemd/system/{name}")["content"])
        return parser

    def too_new_for_systemd(self) -> list[str]:
        """Settings of its units that SYSTEMD_MIN does not know."""
        paths = [file["path"] for file in self.config["write_files"] if file["path"].startswith(UNITS)]
        assert paths
        return [found for path in paths for found in too_new(self.file(path)["content"])]


def too_new(unit: str) -> list[str]:
    found, section = [], ""
    for line in unit.splitlines():
        name, equals, value = line.partition("=")
        if line.startswith("["):
            section = line.strip("[]")
        elif equals and not line.startswith("#"):
            if name not in SETTINGS[section]:
                found.append(name)
            found += [f"%{letter}" for letter in re.findall("%(.)", value) if letter not in SPECIFIERS]
    return found
