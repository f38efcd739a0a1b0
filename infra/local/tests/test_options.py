"""Options, and refusals with a reason."""

from pathlib import Path

import pytest

from quorate_local.options import BadOptions, ServerResources, StackOptions, free_disk_bytes, memory_bytes


def test_servers_and_ports_have_bounds() -> None:
    with pytest.raises(BadOptions, match="SERVERS must be 0 to 32, not -1"):
        StackOptions(servers=-1)
    with pytest.raises(BadOptions, match="API_PORT"):
        StackOptions(api_port=70_000)
    with pytest.raises(BadOptions, match="SERVER_PORTS"):
        StackOptions(server_port_base=65_533, servers=5)


def test_server_ports_count_up_from_the_base() -> None:
    options = StackOptions(server_port_base=7001, servers=3)
    assert [options.server_port(name) for name in options.server_names()] == [7001, 7002, 7003]
    assert StackOptions().server_port("s2") == 0


def test_only_the_resources_given_are_announced() -> None:
    assert ServerResources().flags() == []
    assert ServerResources(cpu_cores=1.5, storage_io_per_s=900).flags() == [
        *("--cpu", "1.5"),
        *("--storage-io-per-s", "900"),
    ]


def test_servers_of_one_machine_divide_its_memory_and_disk(tmp_path: Path) -> None:
    for servers in (3, 5, 10):
        each = StackOptions(state=tmp_path / "none" / "yet", servers=servers).resources_of_each()
        assert each.memory_bytes is not None
        assert each.disk_bytes is not None
        assert each.memory_bytes * servers <= memory_bytes()
        assert 0 < each.disk_bytes * servers <= free_disk_bytes(tmp_path)
    chosen = StackOptions(server_resources=ServerResources(memory_bytes=1 << 30)).resources_of_each()
    assert chosen.memory_bytes == 1 << 30


def test_the_environment_gives_the_urls_and_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/quorate")
    monkeypatch.setenv("REDIS_URL", "")
    options = StackOptions.from_environment(state=Path("elsewhere"))
    assert options.database_url == "postgresql://db.example/quorate"
    assert options.redis_url is None
    assert StackOptions.from_environment(database_url=None).database_url is None


def test_observing_takes_the_metrics_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert StackOptions.from_environment(observe=True).observe
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert StackOptions.from_environment().otlp_endpoint
    with pytest.raises(BadOptions, match="unset OTEL_EXPORTER_OTLP_ENDPOINT"):
        StackOptions.from_environment(observe=True)
