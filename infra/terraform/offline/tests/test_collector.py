"""OpenTelemetry's collector on the machines of servers and of the coordinator, with infra/observability's settings."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from cloud_config import Machine
from releases import Releases, serve

from conftest import Configuration
from quorate_offline import mirror

MODULES = mirror.TERRAFORM / "modules"
OBSERVABILITY = mirror.REPOSITORY / "infra" / "observability"
CONFIG = yaml.safe_load((OBSERVABILITY / "collector.yaml").read_text())
METRICS_PORT = CONFIG["exporters"]["prometheus"]["endpoint"].rpartition(":")[2]
SCRIPT = MODULES / "collector" / "files" / "install-collector.sh"
ROOT = """
module "server" {
  source        = "../modules/machine"
  name          = "s1"
  coordinator   = "coordinator.internal:7300"
  join_token    = "qjt_one"
  listen        = "10.4.0.4:7400"
  region        = "eu"
  release       = local.release
  otlp_endpoint = "http://127.0.0.1:4318"
  collector     = merge(local.release, { traces_endpoint = "https://traces.example.com" })
}
module "control" {
  source           = "../modules/control-machine"
  name             = "quorate"
  database_url     = "postgresql://quorate_login:secret@db.example.com:5432/quorate?sslmode=require"
  database_owner_url = "postgresql://quorate:owners@db.example.com:5432/quorate?sslmode=require"
  redis_url        = "redis://redis.example.com:6379/0"
  public_url       = "https://quorate.example.com"
  ports            = { api = 8080, coordinator = 7300, coordinator_http = 7301, members = 7302 }
  addresses        = ["10.65.1.4"]
  index            = 0
  keys_seed        = "%s"
  traces_endpoint  = "https://traces.example.com"
  data_device      = "/dev/disk/by-id/control"
  releases         = { for name in ["coordinator", "api", "collector"] : name => local.release }
}
locals {
  release = { url = "https://releases.example.com/x", sha256 = "%s" }
}
output "server" {
  value     = module.server.user_data
  sensitive = true
}
output "control" {
  value     = module.control.user_data
  sensitive = true
}
"""


@pytest.fixture(scope="module")
def machines(installation: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Machine]:
    root = tmp_path_factory.mktemp("collector")
    for name in ("machine", "control-machine", "collector"):
        shutil.copytree(MODULES / name, root / "modules" / name)
    (root / "render").mkdir()
    (root / "render" / "main.tf").write_text(ROOT % ("0" * 64, "0" * 64))
    configuration = Configuration(root / "render", installation).init()
    configuration.run("apply", "-auto-approve")
    return {kind: Machine(text) for kind, text in configuration.outputs().items()}


@pytest.fixture(params=["server", "control"])
def machine(machines: dict[str, Machine], request: pytest.FixtureRequest) -> Machine:
    return machines[request.param]


def test_machines_have_the_configuration_that_alerts_are_written_for(machine: Machine) -> None:
    text = machine.file("/etc/quorate/collector.yaml")["content"]
    assert text.startswith("# Generated from infra/observability/collector.yaml")
    assert yaml.safe_load(text) == CONFIG, "`make gen` writes it again"


def test_the_environment_of_its_unit_has_what_the_configuration_asks_for(machine: Machine) -> None:
    text = (OBSERVABILITY / "collector.yaml").read_text()
    file = machine.file("/etc/quorate/collector.env")
    given = re.findall(r"^(\w+)=", file["content"], re.MULTILINE)
    assert given == re.findall(r"\$\{env:(\w+)\}", text)
    assert (file["permissions"], file["owner"]) == ("0600", "root:root")
    service = machine.unit("quorate-collector.service")["Service"]
    assert service["EnvironmentFile"] == "/etc/quorate/collector.env"
    assert service["ExecStart"] == "/usr/local/bin/otelcol-contrib --config /etc/quorate/collector.yaml"


def test_what_is_on_the_machine_sends_to_it(machines: dict[str, Machine]) -> None:
    address = f"http://{CONFIG['receivers']['otlp']['protocols']['http']['endpoint']}"
    server = machines["server"].unit("quorate-replica.service")["Service"]["ExecStart"]
    assert f"--otlp-endpoint {address}" in server
    control = machines["control"].file("/etc/quorate/control.env")["content"]
    assert f'OTEL_EXPORTER_OTLP_ENDPOINT="{address}"\n' in control
    for env in ("azure", "aws", "gcp"):
        text = (mirror.TERRAFORM / "envs" / env / "main.tf").read_text()
        assert re.findall(r'otlp_endpoint += "(.*?)"', text) == [address], env


def test_prometheus_is_let_in_where_the_collector_serves() -> None:
    for module in ("azure", "aws", "gcp"):
        text = "".join((MODULES / module / file).read_text() for file in ("main.tf", "machines.tf"))
        assert set(re.findall(r"\b9\d{3}\b", text)) == {METRICS_PORT}, module
    text = (MODULES / "control-plane" / "network.tf").read_text()
    assert re.findall(r"metrics = (\d+)", text) == [METRICS_PORT]


def test_it_starts_after_all_else_and_with_little_privilege(machine: Machine, tmp_path: Path) -> None:
    steps = machine.file("/usr/local/lib/quorate/bootstrap")["content"]
    assert steps.count("quorate-collector") == 1
    assert steps.index("install-collector") > steps.index("enable --now")
    service = machine.unit("quorate-collector.service")["Service"]
    assert (service["DynamicUser"], service["ProtectSystem"], service["CapabilityBoundingSet"]) == ("yes", "strict", "")
    if shutil.which("systemd-analyze"):
        unit = tmp_path / "quorate-collector.service"
        unit.write_text(machine.file(f"/etc/systemd/system/{unit.name}")["content"])
        command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        assert "Unknown key" not in done.stderr, done.stderr


def test_the_script_is_sound(machine: Machine) -> None:
    subprocess.run(["shellcheck", "--severity=style", str(SCRIPT)], check=True, timeout=60)
    written = machine.file("/usr/local/lib/quorate/install-collector")
    assert (written["content"], written["permissions"]) == (SCRIPT.read_text(), "0755")


def test_a_collector_that_nobody_sends_to_is_refused(installation: dict[str, str], tmp_path: Path) -> None:
    for name in ("machine", "control-machine", "collector"):
        shutil.copytree(MODULES / name, tmp_path / "modules" / name)
    (tmp_path / "render").mkdir()
    (tmp_path / "render" / "main.tf").write_text(ROOT % ("0" * 64, "0" * 64))
    configuration = Configuration(tmp_path / "render", installation)
    configuration.edit("main.tf", '  otlp_endpoint = "http://127.0.0.1:4318"\n', "")
    assert "Nothing would be sent to the collector" in configuration.init().run("plan", expect=1)


# -- the script, run ---------------------------------------------------------------------------------------------------

# Stands for the collector. It accepts YAML with exporters, if its environment has an https address.
PROGRAM = """#!/bin/bash
set -euo pipefail
case $1 in
--version) echo 'otelcol-contrib version 0.120.0' ;;
validate) [ "$2" = --config ] && grep -q '^exporters:' "$3" && [[ $TRACES_ENDPOINT == https://* ]] ;;
*) exit 64 ;;
esac
"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    folder = tmp_path_factory.mktemp("releases")
    for archive, name in (("good.tar.gz", "otelcol-contrib"), ("of-another-program.tar.gz", "otelcol")):
        with tarfile.open(folder / archive, "w:gz") as packed:
            for member, text in (("README.md", "Read me."), (name, PROGRAM)):
                info = tarfile.TarInfo(member)
                info.size, info.mode = len(text), 0o755
                packed.addfile(info, io.BytesIO(text.encode()))
    with serve(folder) as served:
        yield served


def test_the_collector_is_installed_if_it_takes_its_configuration(releases: Releases, tmp_path: Path) -> None:
    program, folder = tmp_path / "otelcol-contrib", tmp_path / "etc"
    folder.mkdir()
    shutil.copy(OBSERVABILITY / "collector.yaml", folder)
    (folder / "collector.env").write_text('TRACES_ENDPOINT="https://traces.example.com"\n')

    def install(name: str, checksum: str | None = None) -> tuple[int, str]:
        checksum = checksum or sha256((releases.folder / name).read_bytes()).hexdigest()
        return releases.install("install-collector", program, name, checksum, str(folder))

    code, said = install("good.tar.gz")
    assert (code, "installed otelcol-contrib version 0.120.0" in said) == (0, True), said
    assert program.stat().st_mode & 0o777 == 0o755
    program.write_text("the one before")
    assert install("good.tar.gz", "0" * 64)[0] != 0
    assert install("of-another-program.tar.gz")[0] != 0
    (folder / "collector.yaml").write_text("")
    code, said = install("good.tar.gz")
    assert (code, "refuses its configuration: not installed" in said) == (1, True), said
    assert program.read_text() == "the one before"
    assert sorted(path.name for path in tmp_path.glob("otelcol*")) == ["otelcol-contrib"]
