//! Options of a process's telemetry.

/// The identity of a process, and the destinations of its telemetry.
#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    /// The process's kind, such as `quorate-replica`.
    pub service: &'static str,
    /// The process among its kind: a server's name.
    pub instance: String,
    /// The collector of traces and metrics, such as `http://127.0.0.1:4318`; `None`: they are not exported.
    pub otlp_endpoint: Option<String>,
    /// Writes logs as one JSON object a line; otherwise as text for people.
    pub json: bool,
}
