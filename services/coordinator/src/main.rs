//! `quorate-coordinator`: see `docs/internals/coordinator.md`.

use std::process::ExitCode;

use clap::Parser;
use quorate_coordinator::options::{LogFormat, Options};
use quorate_coordinator::shell;

fn main() -> ExitCode {
    let options = Options::parse();
    let guard = quorate_telemetry::init(quorate_telemetry::TelemetryOptions {
        service: "quorate-coordinator",
        instance: options.listen_control.to_string(),
        otlp_endpoint: options.otlp_endpoint.clone(),
        json: matches!(options.log_format, LogFormat::Json),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let ended = runtime.block_on(shell::run(options));
    drop(guard);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tracing::error!(exit_code = failure.code as u8, "{}", failure.message);
            failure.exit_code()
        }
    }
}
