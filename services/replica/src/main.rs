//! `quorate-replica`: the data plane server. Threads: one for each shard, one for the journal, and this one
//! for the listener, the control connection and telemetry (`docs/internals/replica.md`).

mod accept;
mod backlog;
mod burst_task;
mod capacity_task;
mod certificate;
mod clock;
mod clock_watch;
mod connection_slots;
mod control;
mod exit;
mod flags;
mod grant_report;
mod guarantee_task;
mod handshakes;
mod hang_task;
mod identity;
mod journal_port;
mod link_transport;
mod messages;
mod orders;
mod place_file;
mod place_keeper;
mod room;
mod selftest;
mod shard;
mod shared;
mod start;
mod storage;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // An invariant that does not hold stops its group; one that is of no group ends the server. Replicas are replaced, and
    // nothing wrong is served.
    shard::quarantine::end_on_panic(std::panic::take_hook());
    if std::env::args().nth(1).as_deref() == Some(selftest::COMMAND) {
        return exit_code(selftest::run(std::env::args().skip(1)));
    }
    let flags = flags::Flags::parse();
    let guard = quorate_telemetry::init(quorate_telemetry::TelemetryOptions {
        service: "quorate-replica",
        instance: flags.name(),
        otlp_endpoint: flags.otlp_endpoint.clone(),
        json: flags.log_format == flags::LogFormat::Json,
    });
    let ended = start::run(
        flags,
        telemetry::Exports {
            tracer: guard.tracer(),
            meter: guard.meter(),
        },
    );
    drop(guard);
    exit_code(ended)
}

fn exit_code(ended: Result<(), exit::Exit>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            eprintln!("quorate-replica: {exit}");
            ExitCode::from(exit.code())
        }
    }
}
