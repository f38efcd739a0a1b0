"""The collector's configuration, as far as it can be checked without a collector."""

import yaml

from quorate_observe.exposition import EXPIRY_S
from quorate_observe.metrics import FOLDER

CONFIG = yaml.safe_load((FOLDER / "collector.yaml").read_text())
# Settings of each component, by its documentation.
SETTINGS = {
    "otlp": {"protocols"},
    "memory_limiter": {"check_interval", "limit_mib", "spike_limit_mib"},
    "batch": {"timeout", "send_batch_size", "send_batch_max_size"},
    "tail_sampling": {"decision_wait", "num_traces", "expected_new_traces_per_sec", "policies"},
    "prometheus": {
        "endpoint", "metric_expiration", "send_timestamps", "enable_open_metrics", "resource_to_telemetry_conversion",
    },
    "otlphttp": {"endpoint", "sending_queue", "retry_on_failure"},
    "health_check": {"endpoint"},
}  # fmt: skip
KINDS = ("receivers", "processors", "exporters", "extensions")


def test_only_known_components_and_settings() -> None:
    assert set(CONFIG) == {*KINDS, "service"}
    for kind in KINDS:
        for name, settings in CONFIG[kind].items():
            assert set(settings) <= SETTINGS[name], name


def test_pipelines_use_what_is_there_and_all_of_it() -> None:
    used = {kind: set() for kind in KINDS}
    for pipeline in CONFIG["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            used[kind] |= set(pipeline[kind])
    used["extensions"] = set(CONFIG["service"]["extensions"])
    assert used == {kind: set(CONFIG[kind]) for kind in KINDS}


def test_memory_is_limited_first_and_batches_are_made_last() -> None:
    for name, pipeline in CONFIG["service"]["pipelines"].items():
        assert pipeline["processors"][0] == "memory_limiter", name
        assert pipeline["processors"][-1] == "batch", name
    limiter = CONFIG["processors"]["memory_limiter"]
    assert 0 < limiter["spike_limit_mib"] < limiter["limit_mib"]


def test_series_expire_as_in_the_local_stack() -> None:
    assert CONFIG["exporters"]["prometheus"]["metric_expiration"] == f"{EXPIRY_S:.0f}s"


def test_prometheus_scrapes_where_the_collector_serves() -> None:
    scrape = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())["scrape_configs"][0]
    port = CONFIG["exporters"]["prometheus"]["endpoint"].rsplit(":", 1)[1]
    assert scrape["static_configs"][0]["targets"][0].endswith(f":{port}")
    assert scrape["honor_labels"] is True
