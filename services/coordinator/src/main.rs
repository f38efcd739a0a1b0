//! `quorate-coordinator`: see `docs/internals/coordinator.md`.

use std::process::ExitCode;

use clap::Parser;
use quorate_coordinator::options::{LogFormat, Options};
use quorate_coordinator::shell;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let options = Options::parse();
    start_logs(options.log_format);
    if options.otlp_endpoint.is_some() {
        tracing::warn!("--otlp-endpoint is not used by this version of the coordinator");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    match runtime.block_on(shell::run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tracing::error!(exit_code = failure.code as u8, "{}", failure.message);
            failure.exit_code()
        }
    }
}

/// To stderr; `RUST_LOG` sets the level.
fn start_logs(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Json => logs
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .init(),
        LogFormat::Text => logs.init(),
    }
}
