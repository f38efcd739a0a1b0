"""A machine of coordinator, API and worker: rendered, read as cloud-init and systemd read it, its scripts run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import jsonschema_rs
import pytest
from cloud_config import CLOUD_CONFIG, Machine
from releases import serve

from conftest import Configuration
from quorate_offline import mirror

FOLDER = mirror.TERRAFORM / "modules" / "control-machine"
SCRIPTS = sorted((FOLDER / "files").glob("*.sh"))
COORDINATOR = mirror.BINARIES / "quorate-coordinator"
API = mirror.REPOSITORY / "services" / "api" / "src"
SEED = "00112233445566778899aabbccddeeff" * 2
ADDRESSES = ["127.0.0.41", "127.0.0.42", "127.0.0.43"]
FLEET_S = 30.0
SERVICES = ["secrets", "coordinator", "migrate", "api", "worker"]
ROOT = """
module "control" {
  count              = 3
  source             = "../modules/control-machine"
  name               = "quorate"
  database_url       = "postgresql://quorate_login:secret@db.example.com:5432/quorate?sslmode=require"
  database_owner_url = "postgresql://quorate:owners@db.example.com:5432/quorate?sslmode=require"
  redis_url          = "redis://redis.example.com:6379/0"
  public_url         = "https://quorate.example.com"
  ports              = { api = 8080, coordinator = 7300, coordinator_http = 7301, members = 7302 }
  addresses          = ["127.0.0.41", "127.0.0.42", "127.0.0.43"]
  index              = count.index
  keys_seed          = "%s"
  traces_endpoint = "https://traces.example.com"
  data_device        = "/dev/disk/by-id/control"
  settings           = { QUORATE_MAIL = "smtp", QUORATE_LISTEN = "0.0.0.0:1" }
  secret_files       = { smtp-password = "hunter2-of-mail" }
  releases = {
    for name in ["coordinator", "api", "collector"] :
    name => { url = "https://releases.example.com/${name}", sha256 = "%s" }
  }
}
output "control" {
  value     = jsonencode(module.control[*].user_data)
  sensitive = true
}
"""


@pytest.fixture(scope="module")
def machines(installation: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Machine]:
    root = tmp_path_factory.mktemp("control")
    for name in ("machine", "control-machine", "collector"):
        shutil.copytree(mirror.TERRAFORM / "modules" / name, root / "modules" / name)
    (root / "render").mkdir()
    (root / "render" / "main.tf").write_text(ROOT % (SEED, "0" * 64))
    configuration = Configuration(root / "render", installation).init()
    assert "secret" not in configuration.run("apply", "-auto-approve").replace("quorate-secrets", "")
    return [Machine(text) for text in json.loads(configuration.outputs()["control"])]


@pytest.fixture
def machine(machines: list[Machine]) -> Machine:
    return machines[0]


def test_it_is_what_cloud_init_understands(machine: Machine) -> None:
    assert machine.text.startswith("#cloud-config\n")
    jsonschema_rs.validate(CLOUD_CONFIG, machine.config)


@pytest.mark.parametrize(
    ("name", "password", "readers"),
    [("control", "quorate_login:secret@", {"migrate", "api", "worker"}), ("owner", "quorate:owners@", {"migrate"})],
)
def test_a_password_stands_in_one_file_that_only_root_reads(
    machine: Machine, name: str, password: str, readers: set[str]
) -> None:
    """systemd hands it to the services that need it: the owner's to none that runs on."""
    assert machine.text.count(password) == 1
    file = machine.file(f"/etc/quorate/{name}.env")
    assert password in file["content"]
    assert (file["permissions"], file["owner"]) == ("0600", "root:root")
    units = {each: machine.file(f"/etc/systemd/system/quorate-{each}.service")["content"] for each in SERVICES}
    assert {each for each, unit in units.items() if f"EnvironmentFile=/etc/quorate/{name}.env" in unit} == readers


def test_further_settings_are_there_and_the_modules_own_win(machine: Machine) -> None:
    environment = machine.file("/etc/quorate/control.env")["content"]
    assert 'QUORATE_MAIL="smtp"\n' in environment
    assert 'QUORATE_LISTEN="0.0.0.0:8080"\n' in environment


def test_a_secret_file_is_for_the_apis_account_alone(machine: Machine) -> None:
    assert machine.text.count("hunter2-of-mail") == 1
    file = machine.file("/etc/quorate/files/smtp-password")
    assert (file["permissions"], file["owner"], file["defer"]) == ("0400", "quorate:quorate", True)


def test_the_seed_stands_in_one_file_that_only_root_reads(machine: Machine) -> None:
    assert machine.text.count(SEED) == 1
    file = machine.file("/etc/quorate/keys.seed")
    assert file["content"] == SEED + "\n"
    assert (file["permissions"], file["owner"]) == ("0600", "root:root")
    credentials = {name: machine.unit(f"quorate-{name}.service")["Service"].get("LoadCredential") for name in SERVICES}
    assert credentials.pop("secrets") == "keys-seed:/etc/quorate/keys.seed"
    assert set(credentials.values()) == {None}


def test_the_coordinator_starts_with_flags_that_it_has(machine: Machine) -> None:
    assert COORDINATOR.exists(), "`make rust` builds it"
    command = machine.unit("quorate-coordinator.service")["Service"]["ExecStart"].split()
    done = subprocess.run(
        [str(COORDINATOR), *command[1:], "--help"], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--allow-plaintext" not in command, "its HTTP interface has TLS"


def test_the_api_knows_its_commands_and_its_environment(machine: Machine) -> None:
    for name in ("migrate", "api", "worker"):
        start = machine.unit(f"quorate-{name}.service")["Service"]["ExecStart"]
        assert start == f"/opt/quorate/venv/bin/python -m quorate_api.main {name}"
        command = [sys.executable, "-m", "quorate_api.main", name, "--help"]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": str(API)}, capture_output=True, timeout=60, check=True)
    documented = (mirror.REPOSITORY / "docs" / "internals" / "processes.md").read_text()
    environment = re.findall(r'^(\w+)="', machine.file("/etc/quorate/control.env")["content"], re.MULTILINE)
    assert len(environment) > 10
    assert not [name for name in environment if name not in documented]
    assert "QUORATE_TRUSTED_PROXIES" in environment, "limits per address count clients, not the load balancer"


def test_services_have_little_privilege_and_an_order(machine: Machine) -> None:
    for name in SERVICES:
        unit = machine.unit(f"quorate-{name}.service")
        assert unit["Service"]["User"] == "quorate"
        assert unit["Service"]["ProtectSystem"] == "strict"
        assert unit["Service"]["CapabilityBoundingSet"] == ""
    requires = {name: machine.unit(f"quorate-{name}.service")["Unit"].get("Requires") for name in SERVICES}
    assert requires == {
        "secrets": "quorate-disk.service",
        "coordinator": "quorate-secrets.service",
        "migrate": "quorate-secrets.service",
        "api": "quorate-migrate.service",
        "worker": "quorate-migrate.service",
    }


def test_units_are_for_the_oldest_systemd_that_images_may_have(machine: Machine) -> None:
    assert machine.too_new_for_systemd() == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", SERVICES)
def test_systemd_finds_little_exposure(machine: Machine, tmp_path: Path, name: str) -> None:
    unit = tmp_path / f"quorate-{name}.service"
    unit.write_text(machine.file(f"/etc/systemd/system/{unit.name}")["content"])
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "Unknown key" not in done.stderr, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_sound(script: Path, machine: Machine) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True, timeout=20)
    subprocess.run(["shellcheck", "--severity=style", str(script)], check=True, timeout=60)
    assert "set -euo pipefail" in script.read_text()
    assert machine.file(f"/usr/local/lib/quorate/{script.stem}")["content"] == script.read_text()


def test_every_script_that_is_called_is_written(machine: Machine) -> None:
    written = {file["path"] for file in machine.config["write_files"]}
    called = {
        f"/usr/local/lib/quorate/{name}"
        for file in machine.config["write_files"]
        for name in re.findall(r'"\$here/([\w-]+)"', file["content"])
    }
    assert len(called) >= 3
    assert called <= written
    assert machine.config["runcmd"] == [["/usr/local/lib/quorate/bootstrap"]]


def made_secrets(folder: Path) -> dict[str, bytes]:
    """As the unit runs the script."""
    credentials = folder.parent / "credentials"
    credentials.mkdir(parents=True, exist_ok=True)
    (credentials / "keys-seed").write_text(SEED + "\n")
    env = os.environ | {
        "QUORATE_PYTHON": sys.executable,
        "PYTHONPATH": str(API),
        "CREDENTIALS_DIRECTORY": str(credentials),
    }
    command = ["bash", str(FOLDER / "files" / "make-secrets.sh"), str(folder)]
    subprocess.run(command, env=env, capture_output=True, timeout=60, check=True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_coordinators_of_new_machines_become_one_fleet(machines: list[Machine], tmp_path: Path) -> None:
    running = []
    try:
        for machine, address in zip(machines, ADDRESSES, strict=True):
            data = tmp_path / address
            made_secrets(data / "secrets")
            command = machine.unit("quorate-coordinator.service")["Service"]["ExecStart"]
            # All of them are on this machine.
            command = command.replace("/var/lib/quorate", str(data)).replace(" 0.0.0.0:", f" {address}:")
            arguments = command.split()[1:]
            log = (data / "log").open("w")
            running.append(subprocess.Popen([str(COORDINATOR), *arguments], stdout=log, stderr=log))
        status = [str(COORDINATOR), "status", "--json", "--coordinators", f"{ADDRESSES[2]}:7301"]
        status += ["--admin-token-file", str(data / "secrets" / "coordinator-admin-token")]
        status += ["--ca", str(data / "coordinator" / "ca.pem")]
        until = time.monotonic() + FLEET_S
        votes: list[str] = []
        while len(votes) < len(machines):
            assert time.monotonic() < until, f"{votes} {(data / 'log').read_text()[-3000:]}"
            time.sleep(0.2)
            done = subprocess.run(status, capture_output=True, text=True, timeout=20, check=False)
            members = json.loads(done.stdout)["members"] if done.returncode == 0 else []
            votes = [member["address"] for member in members if member["votes"]]
        assert sorted(votes) == [f"{address}:7302" for address in ADDRESSES]
    finally:
        for process in running:
            process.kill()
            process.wait(10)


def test_keys_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    first = made_secrets(folder)
    wanted = {
        "coordinator-admin-token",
        "token-signing-key.pem",
        "token-public-keys.json",
        "api-secret",
        "operator-token",
        "fleet.key",
    }
    assert wanted <= set(first)
    assert made_secrets(folder) == first
    assert made_secrets(tmp_path / "another machine") == first
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.suffix != ".json")


# Stands for python3.11: makes an environment whose Python is the tests' own, and whose pip notes what it was asked.
PYTHON = """#!/bin/bash
set -euo pipefail
[ "$1 $2" = "-m venv" ] || exit 64
mkdir -p "$3/bin"
cat >"$3/bin/python" <<'SCRIPT'
#!/bin/bash
[ "$1 $2" = "-m pip" ] && { printf '%%s\\n' "$@" >"$(dirname "$0")/asked"; exit; }
exec %s "$@"
SCRIPT
chmod +x "$3/bin/python"
"""


def test_the_api_is_installed_from_a_release(tmp_path: Path) -> None:
    script = mirror.REPOSITORY / "infra" / "setup" / "release.sh"
    subprocess.run([str(script)], capture_output=True, timeout=60, check=True)
    release = mirror.REPOSITORY / "build" / "release"
    checksum = sha256((release / "quorate-api.tar.gz").read_bytes()).hexdigest()
    assert f"{checksum}  quorate-api.tar.gz\n" in (release / "SHA256SUMS").read_text()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.11").write_text(PYTHON % sys.executable)
    (tmp_path / "bin" / "python3.11").chmod(0o755)
    folder = tmp_path / "quorate"
    with serve(release) as served:
        path = str(tmp_path / "bin")
        code, said = served.install("install-api", folder, "quorate-api.tar.gz", checksum, path=path)
        assert code == 0, said
        assert served.install("install-api", folder, "quorate-api.tar.gz", "0" * 64, path=path)[0] != 0
    asked = (folder / "venv" / "bin" / "asked").read_text().splitlines()
    assert {"--require-hashes", str(folder / "api" / "requirements.txt")} <= set(asked)
    assert (folder / "portal" / "index.html").exists()
    assert (folder / "migrations" / "alembic.ini").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["api", "migrations", "portal", "venv"]
