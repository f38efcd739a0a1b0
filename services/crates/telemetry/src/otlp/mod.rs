//! Traces and metrics over OTLP/HTTP with protobuf, when an endpoint is set.

mod http;
pub mod meter;
pub mod spans;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;

use self::http::Client;
use self::meter::Meter;
use self::spans::Tracer;
use crate::options::TelemetryOptions;

/// The interval of exports, the same as the API's.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// The longest wait for the collector at the end of a process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The scope name of instruments and spans.
const SCOPE: &str = "quorate";

pub struct Exporters {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportersError {
    #[error(
        "{0} is not an http:// address; TLS is not supported in this version: run a collector on this host"
    )]
    NotHttp(String),
    #[error(transparent)]
    Build(#[from] ExporterBuildError),
}

impl Exporters {
    /// Builds the pipelines, each with a thread of its own. Does not connect.
    pub fn new(options: &TelemetryOptions, endpoint: &str) -> Result<Self, ExportersError> {
        if !endpoint.starts_with("http://") {
            return Err(ExportersError::NotHttp(endpoint.to_string()));
        }
        let endpoint = endpoint.trim_end_matches('/');
        let client = Arc::new(Client::new(endpoint));
        let once = RetryPolicy::disabled();
        let spans = SpanExporter::builder()
            .with_http()
            .with_shared_http_client(client.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_retry_policy(once.clone())
            .with_endpoint(format!("{endpoint}/v1/traces"))
            .build()?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_shared_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_retry_policy(once)
            .with_endpoint(format!("{endpoint}/v1/metrics"))
            .build()?;
        let resource = Resource::builder()
            .with_service_name(options.service)
            .with_attribute(KeyValue::new("service.instance.id", options.instance.clone()))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let reader = PeriodicReader::builder(metrics)
            .with_interval(METRICS_EVERY)
            .build();
        let meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_reader(reader)
            .build();
        let tracers = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(spans)
            .build();
        let exporters = Self { tracers, meters };
        meter::observe_process(&exporters.meters.meter(SCOPE));
        Ok(exporters)
    }

    pub fn tracer(&self) -> Tracer {
        Tracer::new(self.tracers.tracer(SCOPE))
    }

    pub fn meter(&self) -> Meter {
        Meter::new(&self.meters.meter(SCOPE))
    }
}

impl Drop for Exporters {
    fn drop(&mut self) {
        let _collector_away = self.tracers.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_err();
        let _collector_away = self.meters.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_err();
    }
}
