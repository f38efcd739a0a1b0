//! What a server tells about itself: logs, usage and SLIs on their way to the bill, traces and metrics.

pub mod lending;
mod logs;
pub mod metric_names;
mod otlp;
pub mod process;
pub mod publish;
pub mod usage;

pub use otlp::meter::{Meter, ServerCounts};
pub use otlp::spans::{self, SpanRecord, SpanSender, Tracer};

use crate::otlp::Exporters;

/// How a process tells about itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// The process's kind, such as `quorate-replica`.
    pub service: &'static str,
    /// Which of its kind it is: a server's name.
    pub instance: String,
    /// Where traces and metrics go, such as `http://127.0.0.1:4318`; `None`: nowhere.
    pub otlp_endpoint: Option<String>,
    /// Logs as one JSON object a line; otherwise for people.
    pub json: bool,
}

/// Keeps the exporters; dropping it sends what they still hold, within their time limits.
#[must_use = "dropped at once, it exports nothing"]
pub struct Guard {
    exporters: Option<Exporters>,
}

/// Sets up logging and, with an endpoint, the exporters, which tell of the process's memory and CPU by
/// themselves. Call once, first thing in `main`.
pub fn init(options: Options) -> Guard {
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
    /// For spans; `None` without an endpoint.
    pub fn tracer(&self) -> Option<Tracer> {
        self.exporters.as_ref().map(Exporters::tracer)
    }

    /// For a server's metrics; `None` without an endpoint.
    pub fn meter(&self) -> Option<Meter> {
        self.exporters.as_ref().map(Exporters::meter)
    }
}
