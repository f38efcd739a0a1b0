//! `quorate-load`: puts a known load on groups and reports the results.

mod bare_sockets;
mod charges;
mod control_fleet;
mod cpu;
mod entry;
mod files;
mod flags;
mod history;
mod isolation;
mod load;
mod marks;
mod measure;
mod measured;
mod open_loop;
mod processes;
mod producer;
mod profile;
mod profiling;
mod reads;
mod runs;
mod steady;
mod tally;
mod telemetry;
mod text;
mod verify;
mod workload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use quorate_figures::Figures;
use quorate_types::limits::{BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX};

use crate::bare_sockets::{Hop, baseline};
use crate::control_fleet::ControlFleetFlags;
use crate::files::{read_handle, runs_of, write_json};
use crate::flags::{Keep, LoadFlags, Servers, command_of, seconds};
use crate::history::{HistoryFlags, ReadbackFlags};
use crate::isolation::isolation;
use crate::measure::measure;
use crate::measured::Measured;
use crate::steady::steady;
use crate::workload::Workload;

/// Puts a known load on groups and reports the results.
#[derive(Parser)]
#[command(name = "quorate-load", version, arg_required_else_help = true)]
struct Flags {
    #[command(subcommand)]
    command: Command,
    /// Connect without TLS, also if the handles name an authority; servers must run with --allow-plaintext
    #[arg(long, global = true)]
    plaintext: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Append as fast as acknowledgements come (closed loop), or at a fixed rate (open loop)
    Append(AppendFlags),
    /// Append steadily until stdin ends; each line on stdin ends a window, whose figures are printed as a line of JSON,
    /// and names the next
    Steady(SteadyFlags),
    /// Read pages of a log from one replica, as fast as they come or at a fixed rate
    Read(ReadFlags),
    /// Read a log back and check its order and completeness
    Verify(VerifyFlags),
    /// Measure the cost of isolation: with it and without, in turn, on servers with --measure-isolation
    Isolation(IsolationFlags),
    /// Measure the cost of an append to each role of a chain, over durability and size: the cells of a cost profile
    Profile(profiling::ProfileFlags),
    /// Measure mixes of groups, sizes and durabilities: some to calibrate a cost profile, others to judge it
    ProfileMixes(profiling::MixesFlags),
    /// Write a cost profile of measured cells and mixes
    Fit(profiling::FitFlags),
    /// Compare a cost profile's predictions for measured mixes with their use
    ProfileError(profiling::ErrorFlags),
    /// Send the same bytes through three hops of bare sockets: the least cost of any replication
    Floor(FloorFlags),
    /// One of those hops
    #[command(hide = true)]
    FloorHop { hop: Hop, next: Vec<SocketAddr> },
    /// Append, read and tail with every operation on record, for a checker (loadtest/chaos)
    History(HistoryFlags),
    /// Record the whole log of each replica, behind a history
    Readback(ReadbackFlags),
    /// Play servers on a coordinator's control connections, for as many replicas as no one machine serves
    ControlFleet(ControlFleetFlags),
    /// Answer traces of batches on stdin with what a head charges for them
    #[command(hide = true)]
    Charges,
    /// Play a server's telemetry of some hours while Redis is away, and send it afterwards
    Telemetry(telemetry::TelemetryFlags),
}

#[derive(Args)]
struct SteadyFlags {
    #[command(flatten)]
    load: LoadFlags,
    /// Write the appended, acknowledged and failed entries to this file at the end
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct AppendFlags {
    #[command(flatten)]
    load: LoadFlags,
    /// Length of the measurement
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds of the same load before it, which do not count
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
    /// Write the result to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    #[command(flatten)]
    servers: Servers,
    /// Append the rate to build/figures/NAME.jsonl
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// The rate that the figure should have at least
    #[arg(long, value_name = "N", requires = "figure")]
    goal: Option<f64>,
    #[command(flatten)]
    keep: Keep,
}

#[derive(Args)]
struct ReadFlags {
    /// File with a handle: its first address is read
    #[arg(long, value_name = "FILE")]
    handle: PathBuf,
    /// Entries of a page: as many as the log's batches have
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_ENTRIES_MAX)))]
    page_entries: u32,
    /// Pages under way, over all connections
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    outstanding: u32,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    connections: u32,
    /// Pages a second, over all connections (open loop); `outstanding` at most are under way
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Process id of the replica's server, to count its processor time
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Share of the log that is read, from its beginning on: a reader that is far behind
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    oldest: f64,
    /// Write the result to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct IsolationFlags {
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    servers: Servers,
    /// Windows with and without isolation
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pairs: u32,
    /// Length of a window
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
    /// Write the result to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct FloorFlags {
    /// Bytes of each entry
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=i64::from(ENTRY_BYTES_MAX)))]
    size: u32,
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    outstanding: u32,
    /// Entries in a batch: take `batch_entries` of `append --json`
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_ENTRIES_MAX)))]
    batch_entries: u32,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Write the result to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct VerifyFlags {
    /// File with a handle
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// Result of `append --json` or `steady --json`: all its acknowledged entries must be there
    #[arg(long = "result", value_name = "FILE")]
    results: Vec<PathBuf>,
}

/// 0: good. 1: it ran, and a result is wrong. 2: it could not run.
fn main() -> ExitCode {
    let Flags { command, plaintext } = Flags::parse();
    let outcome = match command {
        Command::Append(flags) => append(&flags, plaintext),
        Command::Steady(flags) => run_steady(&flags, plaintext),
        Command::Read(flags) => read(&flags, plaintext),
        Command::Verify(flags) => verify(&flags, plaintext),
        Command::Isolation(flags) => run_isolation(&flags, plaintext),
        Command::Profile(flags) => profiling::measure(&flags, plaintext),
        Command::Fit(flags) => profiling::fit(&flags),
        Command::ProfileMixes(flags) => profiling::mixes(&flags, plaintext),
        Command::ProfileError(flags) => profiling::compare(&flags),
        Command::Floor(flags) => run_floor(&flags),
        Command::FloorHop { hop, next } => bare_sockets::hop(hop, &next).map(|()| true),
        Command::History(flags) => history::history(&flags, plaintext),
        Command::Readback(flags) => history::readback(&flags, plaintext),
        Command::ControlFleet(flags) => control_fleet::play(&flags).map(|()| true),
        Command::Telemetry(flags) => telemetry::play(&flags).map(|()| true),
        Command::Charges => charges::answer().map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => {
            eprintln!("quorate-load: {reason}");
            ExitCode::from(2)
        }
    }
}

fn append(flags: &AppendFlags, plaintext: bool) -> Result<bool, String> {
    let handles = flags.load.read_handles(plaintext)?;
    let workload = Workload {
        warmup: seconds("--warmup", flags.warmup, 0.0)?,
        window: seconds("--seconds", flags.seconds, 0.1)?,
        server_pids: flags.servers.server_pids.clone(),
        ..flags.load.workload()?
    };
    let title = handles
        .iter()
        .map(|handle| handle.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let measured = measure(&handles, &workload, &title)?;
    text::print(&text::describe(&measured));
    write_json(flags.json.as_deref(), &measured)?;
    let is_good = keep_figure(flags, &measured)?;
    let all_acked = measured.refused.is_empty() && measured.unknown.is_empty() && measured.acked > 0;
    Ok(is_good && all_acked)
}

fn run_steady(flags: &SteadyFlags, plaintext: bool) -> Result<bool, String> {
    let ended = steady(&flags.load.read_handles(plaintext)?, &flags.load.workload()?)?;
    write_json(flags.json.as_deref(), &ended)?;
    Ok(true)
}

fn read(flags: &ReadFlags, plaintext: bool) -> Result<bool, String> {
    if flags.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err("--rate: must be above 0".to_string());
    }
    if !(flags.oldest > 0.0 && flags.oldest <= 1.0) {
        return Err("--oldest: must be above 0, and at most 1".to_string());
    }
    let load = reads::ReadLoad {
        oldest_share: flags.oldest,
        page_entries: flags.page_entries,
        outstanding: flags.outstanding,
        connections: flags.connections.min(flags.outstanding),
        rate_per_s: flags.rate,
        warmup: seconds("--warmup", flags.warmup, 0.0)?,
        window: seconds("--seconds", flags.seconds, 0.1)?,
        server: flags.server_pid,
    };
    let found = reads::read(&read_handle(&flags.handle, plaintext)?, &load)?;
    text::print(&format!(
        "{} entries/s in pages of {:.0}, p50 {} µs, p99 {} µs",
        text::grouped(found.entries_per_s as u64),
        found.page_entries,
        text::grouped(found.p50_us),
        text::grouped(found.p99_us),
    ));
    write_json(flags.json.as_deref(), &found)?;
    Ok(true)
}

fn run_isolation(flags: &IsolationFlags, plaintext: bool) -> Result<bool, String> {
    let workload = Workload {
        warmup: seconds("--warmup", flags.warmup, 0.0)?,
        window: seconds("--seconds", flags.seconds, 0.1)?,
        server_pids: flags.servers.server_pids.clone(),
        ..flags.load.workload()?
    };
    let found = isolation(&flags.load.read_handles(plaintext)?, &workload, flags.pairs)?;
    for pair in &found.pairs {
        let (on, off) = (text::cpu(pair.on), text::cpu(pair.off));
        text::print(&format!("CPU s per million appends: with {on}, without {off}"));
    }
    text::print(&format!("ratio {:.3}, the median of the pairs", found.cpu_ratio));
    write_json(flags.json.as_deref(), &found)?;
    Ok(true)
}

fn run_floor(flags: &FloorFlags) -> Result<bool, String> {
    let found = baseline(&bare_sockets::SocketLoad {
        size: flags.size,
        batch_entries: flags.batch_entries.min(flags.outstanding),
        outstanding: flags.outstanding,
        warmup: seconds("--warmup", flags.warmup, 0.0)?,
        window: seconds("--seconds", flags.seconds, 0.1)?,
    })?;
    text::print(&format!(
        "{} entries/s of {} in batches of {}, p50 {} µs, CPU s per million: hops {}, client {}",
        text::grouped(found.acked_per_s as u64),
        text::size(found.size_bytes),
        found.batch_entries,
        text::grouped(found.p50_us),
        text::cpu(found.servers_cpu_s_per_m),
        text::cpu(found.client_cpu_s_per_m)
    ));
    write_json(flags.json.as_deref(), &found)?;
    Ok(true)
}

fn keep_figure(flags: &AppendFlags, measured: &Measured) -> Result<bool, String> {
    let Some(name) = &flags.figure else {
        return Ok(true);
    };
    let figures = Figures::new(&flags.keep.figures_dir, command_of(&flags.keep));
    let is_met = figures.write(name, measured.acked_per_s, "appends/s", flags.goal)?;
    if let (false, Some(goal)) = (is_met, flags.goal) {
        eprintln!("missed: the goal is {goal} appends/s");
    }
    Ok(is_met)
}

fn verify(flags: &VerifyFlags, plaintext: bool) -> Result<bool, String> {
    let mut expected = Vec::new();
    for path in &flags.results {
        expected.extend(runs_of(path)?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let mut is_sound = true;
    for path in &flags.handles {
        let handle = read_handle(path, plaintext)?;
        let name = handle.name.clone();
        let found = runtime.block_on(verify::read_back(handle, &expected))?;
        text::print(&format!(
            "{name}: {} entries of {} runs at offsets {} to {}: {} missing, {} doubled, {} disordered{}",
            text::grouped(found.entries),
            found.runs,
            text::grouped(found.first_offset),
            text::grouped(found.end_offset),
            text::grouped(found.missing + found.offsets_missing),
            text::grouped(found.doubled),
            text::grouped(found.disordered),
            if found.unknown > 0 {
                format!(", {} of other writers", text::grouped(found.unknown))
            } else {
                String::new()
            },
        ));
        for example in &found.examples {
            text::print(&format!("  {example}"));
        }
        is_sound &= found.is_sound();
    }
    Ok(is_sound)
}
