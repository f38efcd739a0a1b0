"""A machine's first start: rendered by Terraform, read as cloud-init reads it, and its scripts run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import jsonschema_rs
import pytest
from cloud_config import CLOUD_CONFIG, SYSTEMD_MIN, Machine, too_new
from releases import Releases, serve

from conftest import Configuration
from quorate_offline import mirror

FILES = mirror.TERRAFORM / "modules" / "machine" / "files"
SCRIPTS = sorted(FILES.glob("*.sh"))
SERVER = mirror.BINARIES / "quorate-replica"
TOKEN, ADDRESS, REDIS = (
    "qjt_a-secret",
    "https://releases.example.com/quorate-replica?sig=secret",
    "redis://u:secret@r:6379/0",
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a block device")

MACHINE = """
module "%s" {
  source      = "../machine"
  name        = "s1"
  coordinator = "coordinator.internal:7300"
  join_token  = "%s"
  listen      = "10.4.0.4:7400"
  region      = "eu"
  release     = { url = "%s", sha256 = "%s" }
  %s
}
output "%s" {
  value     = module.%s.user_data
  sensitive = true
}
"""
EVERYTHING = f"""
  failure_domain = "rack-7"
  capacity       = {{ shards = 8, cpu = 16.5, network_bytes_per_s = 10000000000, storage_io_per_s = 2000000 }}
  redis_url      = "{REDIS}"
  otlp_endpoint  = "http://127.0.0.1:4318"
  data_device    = "/dev/disk/by-id/google-quorate-data"
  ofi_provider   = "efa"
  transport      = "ofi"
  collector = {{
    url             = "https://releases.example.com/otelcol-contrib.tar.gz?sig=other"
    sha256          = "{"0" * 64}"
    traces_endpoint = "https://traces.example.com"
  }}
"""


@pytest.fixture(scope="module")
def machines(installation: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Machine]:
    """One with nothing that can be left out, one with everything."""
    root = tmp_path_factory.mktemp("machine")
    for name in ("machine", "collector"):
        shutil.copytree(mirror.TERRAFORM / "modules" / name, root / name)
    (root / "render").mkdir()
    text = "".join(
        MACHINE % (kind, TOKEN, ADDRESS, "0" * 64, options, kind, kind)
        for kind, options in (("least", ""), ("most", EVERYTHING))
    )
    (root / "render" / "main.tf").write_text(text)
    configuration = Configuration(root / "render", installation).init()
    said = configuration.run("apply", "-auto-approve")
    assert TOKEN not in said
    assert "secret@" not in said
    return {kind: Machine(text) for kind, text in configuration.outputs().items()}


@pytest.fixture(params=["least", "most"])
def machine(machines: dict[str, Machine], request: pytest.FixtureRequest) -> Machine:
    return machines[request.param]


def test_it_is_what_cloud_init_understands(machine: Machine) -> None:
    assert machine.text.startswith("#cloud-config\n")
    jsonschema_rs.validate(CLOUD_CONFIG, machine.config)
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(CLOUD_CONFIG, machine.config | {"write_file": []})


@pytest.mark.parametrize(
    ("secret", "path"),
    [
        (TOKEN, "/etc/quorate/join-token"),
        (ADDRESS, "/etc/quorate/release"),
        ("u:secret@", "/etc/quorate/replica.env"),
        ("?sig=other", "/etc/quorate/collector.release"),
    ],
)
def test_secrets_stand_in_one_file_that_only_root_reads(machines: dict[str, Machine], secret: str, path: str) -> None:
    machine = machines["most"]
    assert machine.text.count(secret) == 1
    file = machine.file(path)
    assert secret in file["content"]
    assert (file["permissions"], file["owner"]) == ("0600", "root:root")


def test_the_unit_starts_the_server_with_flags_that_it_has(machine: Machine) -> None:
    assert SERVER.exists(), "`make rust` builds it"
    command = machine.unit("quorate-replica.service")["Service"]["ExecStart"].split()
    assert command[0] == "/usr/local/bin/quorate-replica"
    assert "--join-token-file" in command
    # With --help at its end the server reads all flags before it, and refuses what it does not know.
    done = subprocess.run(
        [str(SERVER), *command[1:], "--help"], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    wrong = subprocess.run(
        [str(SERVER), *command[1:], "--self-test", "--help"], capture_output=True, timeout=20, check=False
    )
    assert wrong.returncode == 2, "a flag that it does not have would be noticed"


def test_the_most_has_all_that_can_be_set(machines: dict[str, Machine]) -> None:
    command = machines["most"].unit("quorate-replica.service")["Service"]["ExecStart"]
    for words in ("--failure-domain rack-7", "--shards 8", "--cpu 16.5", "--network-bytes-per-s 10000000000"):
        assert words in command
    assert "--transport ofi" in command
    least = machines["least"].unit("quorate-replica.service")["Service"]["ExecStart"]
    assert "--failure-domain" not in least
    assert "ofi" not in least
    assert "null" not in least


def test_the_unit_has_least_privilege(machine: Machine) -> None:
    service = machine.unit("quorate-replica.service")["Service"]
    assert service["User"] == "quorate"
    assert service["CapabilityBoundingSet"] == ""
    wanted = {"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateDevices": "yes"}
    assert wanted.items() <= dict(service).items()
    assert any(user != "default" and user["name"] == "quorate" for user in machine.config["users"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_little_exposure(machine: Machine, tmp_path: Path) -> None:
    unit = tmp_path / "quorate-replica.service"
    unit.write_text(machine.file("/etc/systemd/system/quorate-replica.service")["content"])
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "Unknown key" not in done.stderr, done.stderr


def test_units_are_for_the_oldest_systemd_that_images_may_have(machine: Machine) -> None:
    assert machine.too_new_for_systemd() == []
    assert "--join-token-file ${CREDENTIALS_DIRECTORY}/join-token" in machine.text
    newer = "[Service]\nLoadCredentialEncrypted=a:b\nExecStart=/bin/true %d/join-token %%d %y\n"
    assert too_new(newer) == ["LoadCredentialEncrypted", "%d", "%y"], "it would be noticed"


@pytest.mark.parametrize(
    "folder", ["modules/azure", "modules/aws", "modules/gcp", "modules/control-plane", "envs/aws", "envs/gcp"]
)
def test_the_image_variable_names_systemd(folder: str) -> None:
    text = "".join(path.read_text() for path in (mirror.TERRAFORM / folder).glob("*.tf"))
    (description,) = re.findall(r'^variable "image(?:_id)?" {\n  description = "(.*)"', text, re.MULTILINE)
    assert "systemd" in description
    assert f"{SYSTEMD_MIN} or newer" in description


def test_one_sided_writes_are_tested_before_each_start(machines: dict[str, Machine]) -> None:
    service = machines["most"].unit("quorate-replica.service")["Service"]
    assert service["ExecStartPre"].endswith(" /var/lib/quorate efa 10.4.0.4")
    assert "--ofi-selftest /var/lib/quorate/ofi-selftest.json" in service["ExecStart"]
    assert machines["most"].config["packages"] == ["libfabric1"]
    assert "DeviceAllow" in machines["most"].file("/etc/systemd/system/quorate-replica.service.d/rdma.conf")["content"]
    assert machines["least"].config["packages"] == []


def test_a_disk_of_its_own_comes_before_the_server(machines: dict[str, Machine]) -> None:
    assert machines["most"].unit("quorate-replica.service")["Unit"]["Requires"] == "quorate-disk.service"
    start = machines["most"].unit("quorate-disk.service")["Service"]["ExecStart"]
    assert start.split()[1:] == ["/dev/disk/by-id/google-quorate-data", "/var/lib/quorate"]
    assert "Requires" not in machines["least"].unit("quorate-replica.service")["Unit"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_sound(script: Path, machines: dict[str, Machine]) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True, timeout=20)
    subprocess.run(["shellcheck", "--severity=style", str(script)], check=True, timeout=60)
    assert "set -euo pipefail" in script.read_text()
    written = machines["most"].file(f"/usr/local/lib/quorate/{script.stem}")
    assert written["content"] == script.read_text(), "YAML carries every character"
    assert written["permissions"] == "0755"


def test_every_command_is_a_script_that_is_written(machine: Machine) -> None:
    written = {file["path"] for file in machine.config["write_files"]}
    commands = [command[0] for command in machine.config["runcmd"]]
    service = machine.unit("quorate-replica.service")["Service"]
    commands.append(service["ExecStartPre"].split()[0])
    assert set(commands) <= written
    called = re.findall(r'"\$here/([\w-]+)"', (FILES / "bootstrap.sh").read_text())
    called += re.findall(r'"\$here/([\w-]+)"', (FILES / "install-release.sh").read_text())
    assert called == ["install-release", "install-collector", "fetch-release"]
    with_a_collector = "/etc/quorate/collector.release" in written
    assert {
        f"/usr/local/lib/quorate/{name}" for name in called if with_a_collector or "collector" not in name
    } <= written


# -- the scripts, run --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    folder = tmp_path_factory.mktemp("releases")
    (folder / "good").write_text('#!/bin/sh\necho "quorate-replica 0.1.0"\n')
    (folder / "for-another-machine").write_text("#!/bin/sh\nexit 1\n")
    with serve(folder) as served:
        yield served


def test_the_release_that_was_named_is_installed(releases: Releases, tmp_path: Path) -> None:
    program = tmp_path / "quorate-replica"
    wanted = sha256((releases.folder / "good").read_bytes()).hexdigest()
    code, said = releases.install("install-release", program, "good", wanted)
    assert code == 0, said
    assert "installed quorate-replica 0.1.0" in said
    assert sha256(program.read_bytes()).hexdigest() == wanted
    assert program.stat().st_mode & 0o777 == 0o755
    assert not list(tmp_path.glob("*.new"))


def test_another_release_is_not_installed(releases: Releases, tmp_path: Path) -> None:
    program = tmp_path / "quorate-replica"
    program.write_text("the one before")
    bad = sha256((releases.folder / "for-another-machine").read_bytes()).hexdigest()
    plain = releases.address.replace("https:", "http:")
    for name, checksum, address, words in [
        ("good", "0" * 64, None, "was asked for: not installed"),
        ("absent", "0" * 64, None, "404"),
        ("for-another-machine", bad, None, "does not run on this machine"),
        ("good", "0" * 64, plain, "rotocol"),
    ]:
        code, said = releases.install("install-release", program, name, checksum, address=address)
        assert code != 0, name
        assert words in said, name
        assert program.read_text() == "the one before"
        assert not list(tmp_path.glob("*.new"))


def test_preflight_says_what_is_wrong(releases: Releases, tmp_path: Path) -> None:
    program = tmp_path / "quorate-replica"
    program.write_text((releases.folder / "good").read_text())
    program.chmod(0o755)
    data = mirror.REPOSITORY / "build" / "terraform" / "preflight"  # on a disk: memory takes no direct writes
    data.mkdir(parents=True, exist_ok=True)

    def preflight(*arguments: str) -> tuple[int, str]:
        command = ["bash", str(FILES / "preflight.sh"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stdout + done.stderr

    assert preflight(str(program), str(data)) == (0, "quorate-replica 0.1.0\n")
    assert not list(data.iterdir()), "the probe is removed"
    code, said = preflight(str(program), str(data / "absent"))
    assert (code, "takes no direct writes" in said) == (1, True)
    assert preflight(str(releases.folder / "for-another-machine"), str(data))[0] != 0
    assert preflight(str(program), str(data), "efa", "10.4.0.4")[0] == 0, "the server does without one-sided writes"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "disk.img"
    with image.open("wb") as stream:
        stream.truncate(32 << 20)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip("needs a block device")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["umount", str(tmp_path / "data")], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", device], check=True)


def _prepare(device: str, folder: Path) -> tuple[int, str]:
    command = ["bash", str(FILES / "prepare-disk.sh"), device, str(folder)]
    env = os.environ | {"DISK_WAIT_S": "1", "PATH": f"{os.environ['PATH']}:/sbin:/usr/sbin"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_root
def test_a_blank_disk_is_formatted_once_and_never_again(disk: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert _prepare(disk, data) == (0, "")
    assert os.path.ismount(data)
    (data / "journal").write_text("what was acknowledged")
    assert _prepare(disk, data) == (0, ""), "a second start finds it mounted"
    subprocess.run(["umount", str(data)], check=True)
    assert _prepare(disk, data) == (0, "")
    assert (data / "journal").read_text() == "what was acknowledged"


@needs_root
def test_a_disk_with_something_else_is_left_alone(disk: str, tmp_path: Path) -> None:
    subprocess.run(
        ["mkswap", disk], env=os.environ | {"PATH": "/sbin:/usr/sbin:/bin:/usr/bin"}, capture_output=True, check=True
    )
    before = Path(disk).read_bytes()
    code, said = _prepare(disk, tmp_path / "data")
    assert (code, "swap, not ext4: left alone" in said) == (1, True), said
    assert Path(disk).read_bytes() == before


def test_a_disk_that_never_appears(tmp_path: Path) -> None:
    code, said = _prepare("/dev/quorate-absent", tmp_path / "data")
    assert (code, said) == (1, "/dev/quorate-absent did not appear\n")
