//! `quorate-replica`: the data plane server. Threads: one for each shard, one for the journal, and this one
//! for the listener, the control connection and telemetry (`docs/internals/replica.md`).

mod accept;
mod certificate;
mod clock;
mod control;
mod disk;
mod flags;
mod greetings;
mod identity;
mod ledger;
mod shard;
mod shared;
mod sharing;
mod start;
mod storage;
mod usage;

use std::process::ExitCode;

use clap::Parser;

/// Why the process ended, as its exit code (`docs/internals/processes.md`).
#[derive(Debug, thiserror::Error)]
pub enum Exit {
    #[error("{0}")]
    BadFlags(String),
    #[error("{0}")]
    DependencyMissing(String),
    #[error("{0}")]
    PortInUse(String),
    #[error("{0}")]
    DiskUnusable(String),
}

impl Exit {
    fn code(&self) -> u8 {
        match self {
            Exit::BadFlags(_) => 2,
            Exit::DependencyMissing(_) => 3,
            Exit::PortInUse(_) => 4,
            Exit::DiskUnusable(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    // An invariant that does not hold ends the server: its replicas are replaced, and nothing wrong is served.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let flags = flags::Flags::parse();
    let guard = quorate_telemetry::init(quorate_telemetry::Options {
        service: "quorate-replica",
        instance: flags.name(),
        otlp_endpoint: flags.otlp_endpoint.clone(),
        json: flags.log_format == flags::LogFormat::Json,
    });
    let ended = start::run(
        flags,
        usage::Exports {
            tracer: guard.tracer(),
            meter: guard.meter(),
        },
    );
    drop(guard);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            eprintln!("quorate-replica: {exit}");
            ExitCode::from(exit.code())
        }
    }
}
