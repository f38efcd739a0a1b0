//! `quorate-coordinator`: see `docs/internals/coordinator.md`.

use std::process::ExitCode;

use clap::Parser;
use quorate_coordinator::exit::Failure;
use quorate_coordinator::operator::{COMMANDS, Operator};
use quorate_coordinator::options::{LogFormat, Options};
use quorate_coordinator::shell;

fn main() -> ExitCode {
    if std::env::args()
        .nth(1)
        .is_some_and(|first| COMMANDS.contains(&first.as_str()))
    {
        let operator = Operator::parse();
        return ended(runtime().block_on(quorate_coordinator::operator::run(operator)));
    }
    let options = Options::parse();
    let guard = quorate_telemetry::init(quorate_telemetry::TelemetryOptions {
        service: "quorate-coordinator",
        instance: options.listen_control.to_string(),
        otlp_endpoint: options.otlp_endpoint.clone(),
        json: matches!(options.log_format, LogFormat::Json),
    });
    let served = runtime().block_on(shell::run(options));
    drop(guard);
    if let Err(failure) = &served {
        tracing::error!(exit_code = failure.code as u8, "{}", failure.message);
    }
    served.map_or_else(|failure| failure.exit_code(), |()| ExitCode::SUCCESS)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
}

/// For a person at a terminal.
fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.message);
            failure.exit_code()
        }
    }
}
