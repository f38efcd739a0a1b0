//! Logs, on stderr: one JSON object a line with `timestamp`, `level`, `target`, `message` and the event's fields; or text
//! for people.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The variable with the filter of logged events: `info`, or a list such as `warn,quorate_replica=debug`.
pub const FILTER_VARIABLE: &str = "QUORATE_LOG";

pub fn init(json: bool) {
    let wanted = std::env::var(FILTER_VARIABLE).unwrap_or_default();
    let parsed = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(&wanted);
    let (filter, fault) = match parsed {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Another caller may have been first in a test's process; its choice stands.
    let _was_set = if json {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init()
            .is_err()
    } else {
        builder
            .with_ansi(std::io::stderr().is_terminal())
            .try_init()
            .is_err()
    };
    if let Some(error) = fault {
        tracing::warn!(%error, "{FILTER_VARIABLE} is not a filter; info and above is logged");
    }
}
