//! `docs/reference/metrics.md` is what the constants say. `QUORATE_WRITE=1 cargo test` writes it.

use std::collections::HashSet;
use std::fmt::Write;

use quorate_telemetry::metric_names::{ALL, Kind};

fn reference() -> String {
    let mut text = String::from(
        "<!-- Generated from services/crates/telemetry/src/metric_names.rs; do not edit. \
         Write it with `QUORATE_WRITE=1 cargo test --release -p quorate-telemetry`. -->\n\n\
         # Metrics\n\n\
         Servers export these over OTLP/HTTP every 10 seconds when `--otlp-endpoint` (or \
         `OTEL_EXPORTER_OTLP_ENDPOINT`) is set, with `service.name` and `service.instance.id` as resource \
         attributes. The coordinator exports the `process.*` ones only. None has a label for a single group: usage \
         and SLIs of groups are in the API.\n\n\
         | name | kind | unit | meaning | attributes |\n| --- | --- | --- | --- | --- |\n",
    );
    for metric in ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let (name, unit) = (metric.name, metric.unit);
        writeln!(
            text,
            "| `{name}` | {kind} | `{unit}` | {} | {} |",
            metric.description, metric.attributes
        )
        .expect("a string takes everything");
    }
    text
}

#[test]
fn the_reference_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/metrics.md");
    if std::env::var_os("QUORATE_WRITE").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().expect("a folder"))
            .expect("docs/reference");
        std::fs::write(path, reference()).expect("the reference can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == reference(),
        "docs/reference/metrics.md is stale: run the test with QUORATE_WRITE=1"
    );
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), ALL.len());
}
