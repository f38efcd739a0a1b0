//! `quorate-load`: puts a known load on groups and says what they made of it.

mod cpu;
mod entry;
mod floor;
mod history;
mod isolation;
mod marks;
mod measure;
mod producer;
mod profile;
mod profiling;
mod steady;
mod text;
mod verify;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use quorate_client::Handle;
use quorate_client::writer::Batching;
use quorate_figures::Figures;
use quorate_types::limits::{BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX};

use crate::entry::ENTRY_BYTES_MIN;
use crate::floor::{Hop, floor};
use crate::history::{HistoryFlags, ReadbackFlags};
use crate::isolation::isolation;
use crate::measure::{Measured, Run, Workload, measure};
use crate::steady::steady;

/// Puts a known load on groups and says what they made of it.
#[derive(Parser)]
#[command(name = "quorate-load", version, arg_required_else_help = true)]
struct Flags {
    #[command(subcommand)]
    command: Command,
    /// Connect without TLS, whatever the handles say; servers must run with --allow-plaintext
    #[arg(long, global = true)]
    plaintext: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Append as fast as acknowledgements come (closed loop), or at a fixed rate (open loop)
    Append(AppendFlags),
    /// Append steadily until stdin ends; each line on stdin ends one window, whose figures are told as a line of
    /// JSON, and begins the next, which it names
    Steady(SteadyFlags),
    /// Read a log back and check its order and completeness
    Verify(VerifyFlags),
    /// Measure what isolation costs: with it and without, in turn, on servers with --measure-isolation
    Isolation(IsolationFlags),
    /// Measure what an append costs each role of a chain, over durability and size: the cells of a cost profile
    Profile(profiling::ProfileFlags),
    /// Measure mixes of groups, sizes and durabilities: to calibrate a cost profile on, and others to judge it by
    ProfileMixes(profiling::MixesFlags),
    /// Write a cost profile of measured cells and mixes
    Fit(profiling::FitFlags),
    /// Compare what a cost profile says of measured mixes with what they used
    ProfileError(profiling::ErrorFlags),
    /// The same bytes through three hops of bare sockets: what cannot be undercut
    Floor(FloorFlags),
    /// One of those hops
    #[command(hide = true)]
    FloorHop { hop: Hop, next: Vec<SocketAddr> },
    /// Append, read and tail with every operation on record, for a checker to judge (loadtest/chaos)
    History(HistoryFlags),
    /// Write down the whole log of each replica, behind a history
    Readback(ReadbackFlags),
}

#[derive(Args)]
struct LoadFlags {
    /// File with a handle, as GET /v1/groups/{id}/handle gives it; several groups share
    /// the connections in turn, also one alone
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// Bytes of each entry
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(i64::from(ENTRY_BYTES_MIN)..=i64::from(ENTRY_BYTES_MAX)))]
    size: u32,
    /// Entries outstanding, over all connections (closed loop)
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    outstanding: u32,
    /// Entries a second, over all connections, whatever the servers do (open loop); latency counts from when each
    /// was due
    #[arg(long, value_name = "N", conflicts_with = "outstanding")]
    rate: Option<f64>,
    /// Entries that are due at once, in an open loop and for each connection to a group: as from a program that collects
    /// some before it appends them
    #[arg(long, value_name = "N", requires = "rate", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    burst: u32,
    /// Entries outstanding at most, in an open loop: what is due beyond them waits in the client
    #[arg(long, value_name = "N", requires = "rate", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    outstanding_max: u32,
    /// Entries that share a batch at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_ENTRIES_MAX)))]
    batch_entries_max: Option<u32>,
    /// To each server that is the head of a group
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    connections: u32,
    /// Look so long for an answer before sleeping
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    spin_us: u64,
    /// Hold back what is beyond the rate that heads tell, as users' clients do. Without it what servers do is measured,
    /// and not what clients hold back
    #[arg(long)]
    pace: bool,
    /// How long an append may take before its outcome is unknown
    #[arg(long, default_value_t = 10.0)]
    timeout: f64,
}

#[derive(Args)]
struct SteadyFlags {
    #[command(flatten)]
    load: LoadFlags,
    /// Write what was appended, acknowledged and not to this file at the end
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
struct Servers {
    /// Process ids of the servers, to count their processor time
    #[arg(long, value_name = "PIDS", value_delimiter = ',')]
    server_pids: Vec<u32>,
}

#[derive(Args)]
struct Keep {
    /// Where figures are kept
    #[arg(long, value_name = "DIR", default_value = "build/figures")]
    figures_dir: PathBuf,
    /// What to call the command in the figures; by default this one
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
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
    /// Entries in a batch: as many as `append` says that its batches had
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
    /// Result of `append --json` or `steady --json`: everything that was acknowledged must be there
    #[arg(long = "result", value_name = "FILE")]
    results: Vec<PathBuf>,
}

/// 0: good. 1: it ran, and something is wrong with what was found. 2: it could not run.
fn main() -> ExitCode {
    let Flags { command, plaintext } = Flags::parse();
    let outcome = match command {
        Command::Append(flags) => append(&flags, plaintext),
        Command::Steady(flags) => run_steady(&flags, plaintext),
        Command::Verify(flags) => verify(&flags, plaintext),
        Command::Isolation(flags) => run_isolation(&flags, plaintext),
        Command::Profile(flags) => profiling::measure(&flags, plaintext),
        Command::Fit(flags) => profiling::fit(&flags),
        Command::ProfileMixes(flags) => profiling::mixes(&flags, plaintext),
        Command::ProfileError(flags) => profiling::compare(&flags),
        Command::Floor(flags) => run_floor(&flags),
        Command::FloorHop { hop, next } => floor::hop(hop, &next).map(|()| true),
        Command::History(flags) => history::history(&flags, plaintext),
        Command::Readback(flags) => history::readback(&flags, plaintext),
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

impl LoadFlags {
    fn read_handles(&self, plaintext: bool) -> Result<Vec<Handle>, String> {
        let handles = self.handles.iter().map(|path| read_handle(path, plaintext));
        let handles = handles.collect::<Result<Vec<_>, _>>()?;
        for handle in &handles {
            if self.size > handle.limits.max_entry_bytes {
                return Err(format!(
                    "--size: the group takes at most {} bytes",
                    handle.limits.max_entry_bytes
                ));
            }
        }
        Ok(handles)
    }

    /// Without windows, which are the command's own.
    fn workload(&self) -> Result<Workload, String> {
        let producers = self.connections.max(self.handles.len() as u32);
        if self.rate.is_none() && self.outstanding < producers {
            return Err(
                "--outstanding must be at least --connections, and as many as there are groups".to_string(),
            );
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return Err("--rate must be above 0 and at most 1000000000".to_string());
        }
        let mut batching = Batching::default();
        if let Some(entries_max) = self.batch_entries_max {
            batching.entries_max = entries_max;
        }
        Ok(Workload {
            size: self.size,
            outstanding: self.outstanding,
            rate_per_s: self.rate,
            burst: self.burst,
            outstanding_max: self.outstanding_max,
            connections: self.connections,
            batching,
            spin: Duration::from_micros(self.spin_us),
            pace: self.pace,
            warmup: Duration::ZERO,
            window: Duration::ZERO,
            timeout: seconds("--timeout", self.timeout, 0.1)?,
            server_pids: Vec::new(),
        })
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
    let found = floor(&floor::Load {
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

fn write_json(path: Option<&Path>, what: &impl serde::Serialize) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let json = serde_json::to_string(what).expect("a result is plain data");
    fs::write(path, json + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
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
            if found.foreign > 0 {
                format!(", {} foreign", text::grouped(found.foreign))
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

/// The runs that a result names, with what was acknowledged of each.
fn runs_of(path: &Path) -> Result<Vec<Run>, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_value(json["runs"].clone())
        .map_err(|error| wrong(format!("not a result of append or steady: {error}")))
}

fn read_handle(path: &Path, plaintext: bool) -> Result<Handle, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut handle = Handle::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if plaintext {
        handle.tls = None;
    }
    Ok(handle)
}

fn seconds(flag: &str, value: f64, least: f64) -> Result<Duration, String> {
    if (least..=86_400.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("{flag} must be {least} to 86400 seconds"))
    }
}

/// The command as it was given, without the paths that differ between machines.
fn command_of(keep: &Keep) -> String {
    if let Some(command) = &keep.command {
        return command.clone();
    }
    let arguments = std::env::args()
        .skip(1)
        .map(|argument| match argument.rsplit_once('/') {
            Some((_, name)) => name.to_string(),
            None => argument,
        });
    std::iter::once("quorate-load".to_string())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
