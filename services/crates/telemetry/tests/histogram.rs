//! The buckets are a contract with the worker: `sdk/contract/vectors/latency_buckets.json`.

use quorate_telemetry::usage::{Histogram, bucket_of, upper_edge_us};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    values: Vec<Value>,
    quantiles: Vec<Quantile>,
}

#[derive(Deserialize)]
struct Value {
    value_us: String,
    bucket: u32,
    upper_edge_us: String,
}

#[derive(Deserialize)]
struct Quantile {
    histogram: std::collections::BTreeMap<u32, u64>,
    per_mille: u32,
    quantile_us: u64,
}

fn vectors() -> Vectors {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../sdk/contract/vectors/latency_buckets.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).expect("the vectors are there")).expect("vectors")
}

#[test]
fn values_fall_into_the_buckets_of_the_contract() {
    for Value {
        value_us,
        bucket,
        upper_edge_us: edge,
    } in vectors().values
    {
        let value: u64 = value_us.parse().expect("a number");
        assert_eq!(bucket_of(value), bucket, "bucket of {value}");
        assert_eq!(
            upper_edge_us(bucket),
            edge.parse::<u64>().expect("a number"),
            "edge of {bucket}"
        );
    }
}

#[test]
fn quantiles_are_those_of_the_contract() {
    for Quantile {
        histogram,
        per_mille,
        quantile_us,
    } in vectors().quantiles
    {
        let mut found = Histogram::default();
        for (bucket, count) in &histogram {
            found.record(upper_edge_us(*bucket), *count);
        }
        assert_eq!(found.buckets(), histogram);
        assert_eq!(
            found.quantile_us(per_mille),
            Some(quantile_us),
            "{per_mille} ‰ of {histogram:?}"
        );
    }
}

#[test]
fn buckets_are_dense_narrow_and_in_order() {
    for bucket in 0..=bucket_of(u64::MAX) {
        let edge = upper_edge_us(bucket);
        assert_eq!(bucket_of(edge), bucket);
        if bucket > 0 {
            let begin = upper_edge_us(bucket - 1) + 1;
            assert_eq!(bucket_of(begin), bucket);
            assert!(
                (edge - begin) as f64 <= begin as f64 * 0.032,
                "bucket {bucket} is wide: {begin}..={edge}"
            );
        }
    }
}

#[test]
fn merging_and_taking_keep_every_count() {
    let (mut a, mut b) = (Histogram::default(), Histogram::default());
    a.record(5, 2);
    a.record(1_000, 3);
    b.record(1_000, 4);
    b.record(9_000_000, 1);
    a.merge(&b);
    assert_eq!(a.total(), 10);
    let taken = a.take();
    assert_eq!((taken.total(), a.total()), (10, 0));
    assert_eq!(
        taken.buckets(),
        [(5, 2), (bucket_of(1_000), 7), (bucket_of(9_000_000), 1)].into()
    );
    assert_eq!(a.quantile_us(990), None);
    a.record(7, 1);
    assert_eq!(a.take().buckets(), [(7, 1)].into());
}

#[test]
fn as_json_a_bucket_is_a_key() {
    let mut histogram = Histogram::default();
    histogram.record(1_234, 17);
    let bucket = bucket_of(1_234);
    assert_eq!(
        serde_json::to_string(&histogram.buckets()).expect("json"),
        format!("{{\"{bucket}\":17}}")
    );
}
