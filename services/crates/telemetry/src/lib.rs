//! What a server tells about itself: logs, usage and SLIs on their way to the bill, traces and metrics.

mod logs;
pub mod publish;
pub mod usage;

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
pub struct Guard {}

/// Sets up logging and, with an endpoint, the exporters. Call once, first thing in `main`.
pub fn init(options: Options) -> Guard {
    logs::init(options.json);
    Guard {}
}
