//! Telemetry of a server: logs, usage and SLIs on their way to the bill, traces and metrics.

pub mod burst_grants;
mod logs;
pub mod metric_names;
mod options;
mod otlp;
pub mod process;
pub mod publish;
pub mod spool;
pub mod usage;

pub use options::TelemetryOptions;
pub use otlp::meter::{Meter, ServerCounts};
pub use otlp::spans::{self, SpanRecord, SpanSender, Tracer};

use crate::otlp::Exporters;

/// Keeps the exporters. Dropping it sends their remaining data, within their time limits.
#[must_use = "dropped at once, it exports nothing"]
pub struct Guard {
    exporters: Option<Exporters>,
}

/// Sets up logging and, with an endpoint, the exporters, which report the process's memory and CPU by themselves. Call
/// once, first thing in `main`.
pub fn init(options: TelemetryOptions) -> Guard {
    logs::init(options.json);
    let endpoint = options
        .otlp_endpoint
        .as_deref()
        .filter(|endpoint| !endpoint.is_empty());
    let exporters = endpoint.and_then(|endpoint| match Exporters::new(&options, endpoint) {
        Ok(exporters) => Some(exporters),
        Err(error) => {
            tracing::error!(%error, "no traces and metrics are exported; check the OTLP endpoint");
            None
        }
    });
    Guard { exporters }
}

impl Guard {
    /// The exporter of spans; `None` without an endpoint.
    pub fn tracer(&self) -> Option<Tracer> {
        self.exporters.as_ref().map(Exporters::tracer)
    }

    /// The exporter of a server's metrics; `None` without an endpoint.
    pub fn meter(&self) -> Option<Meter> {
        self.exporters.as_ref().map(Exporters::meter)
    }
}
