//! The data that a collector receives, decoded from the protobuf of real HTTP requests.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use quorate_telemetry::metric_names::ALL;
use quorate_telemetry::spans::{ORDER, REPLICATE};
use quorate_telemetry::usage::Histogram;
use quorate_telemetry::{ServerCounts, SpanRecord, TelemetryOptions};
use quorate_types::{GroupId, Role, ServerId};
use uuid::Uuid;

/// A collector that forwards the path and body of each request, and answers 200 with an empty message.
fn collector() -> (String, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, &sender));
        }
    });
    (endpoint, receiver)
}

fn serve(stream: TcpStream, sender: &mpsc::Sender<(String, Vec<u8>)>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut stream = stream;
    while let Some((path, body)) = read_request(&mut reader) {
        let _test_is_over = sender.send((path, body)).is_err();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_string();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn options(endpoint: Option<String>) -> TelemetryOptions {
    TelemetryOptions {
        service: "quorate-replica",
        instance: "s1".to_string(),
        otlp_endpoint: endpoint,
        json: true,
    }
}

fn span(name: &'static str, server_id: u32) -> SpanRecord {
    SpanRecord {
        name,
        trace_id: [7; 16],
        parent_span_id: [9; 8],
        trace_flags: 1,
        began_us: 1_732_112_345_000_000,
        ended_us: 1_732_112_345_000_250,
        server_id: ServerId(server_id),
        group: GroupId(Uuid::from_u128(5)),
        epoch: 3,
        index: 12,
        entry_count: 4,
    }
}

fn attribute(span: &Span, key: &str) -> Option<Value> {
    span.attributes
        .iter()
        .find(|a| a.key == key)?
        .value
        .clone()?
        .value
}

#[test]
fn spans_of_head_and_followers_are_children_of_the_clients() {
    let (endpoint, requests) = collector();
    let guard = quorate_telemetry::init(options(Some(endpoint)));
    let tracer = guard.tracer().expect("there is an endpoint");
    tracer.export(&span(ORDER, 1));
    tracer.export(&span(REPLICATE, 2));
    tracer.export(&span(REPLICATE, 3));
    drop(guard);

    let mut spans = Vec::new();
    while let Ok((path, body)) = requests.recv_timeout(Duration::from_secs(1)) {
        if path == "/v1/traces" {
            let request = ExportTraceServiceRequest::decode(&body[..]).expect("protobuf");
            let scopes = request.resource_spans.into_iter().flat_map(|r| r.scope_spans);
            spans.extend(scopes.flat_map(|scope| scope.spans));
        }
    }
    let found: BTreeSet<_> = spans
        .iter()
        .map(|s| match attribute(s, "quorate.server_id") {
            Some(Value::IntValue(server_id)) => (s.name.as_str(), server_id),
            other => panic!("quorate.server_id is {other:?}"),
        })
        .collect();
    assert_eq!(found, [(ORDER, 1), (REPLICATE, 2), (REPLICATE, 3)].into());
    for span in &spans {
        assert_eq!(
            (&span.trace_id[..], &span.parent_span_id[..]),
            (&[7; 16][..], &[9; 8][..])
        );
        assert_ne!(span.span_id, [9; 8]);
        assert_eq!(span.end_time_unix_nano - span.start_time_unix_nano, 250_000);
        assert_eq!(attribute(span, "quorate.epoch"), Some(Value::IntValue(3)));
        assert_eq!(attribute(span, "quorate.index"), Some(Value::IntValue(12)));
        assert_eq!(attribute(span, "quorate.entries"), Some(Value::IntValue(4)));
        let group = Uuid::from_u128(5).to_string();
        assert_eq!(
            attribute(span, "quorate.group_id"),
            Some(Value::StringValue(group))
        );
    }
}

#[test]
fn every_metric_of_the_reference_is_exported() {
    let (endpoint, requests) = collector();
    let guard = quorate_telemetry::init(options(Some(endpoint)));
    let meter = guard.meter().expect("there is an endpoint");
    let mut latency = Histogram::default();
    latency.record(120, 5);
    meter.record(&ServerCounts {
        appends: 2,
        entries: 5,
        latency,
        roles: vec![Role::Head],
        ..Default::default()
    });
    drop(guard);

    let mut names = BTreeSet::new();
    while let Ok((path, body)) = requests.recv_timeout(Duration::from_secs(1)) {
        if path == "/v1/metrics" {
            let request = ExportMetricsServiceRequest::decode(&body[..]).expect("protobuf");
            let scopes = request.resource_metrics.into_iter().flat_map(|r| r.scope_metrics);
            names.extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
        }
    }
    let expected: BTreeSet<_> = ALL.iter().map(|metric| metric.name.to_string()).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_collector_that_is_away_delays_the_end_only_so_long() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .expect("a free port")
        .local_addr()
        .expect("an address");
    let guard = quorate_telemetry::init(options(Some(format!("http://{gone}"))));
    guard
        .tracer()
        .expect("there is an endpoint")
        .export(&span(ORDER, 1));
    let began = Instant::now();
    drop(guard);
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "took {:?}",
        began.elapsed()
    );
}

#[test]
fn without_an_endpoint_there_is_nothing_to_export_to() {
    for endpoint in [
        None,
        Some(String::new()),
        Some("https://collector:4318".to_string()),
    ] {
        let guard = quorate_telemetry::init(options(endpoint));
        assert!(guard.tracer().is_none() && guard.meter().is_none());
    }
}
