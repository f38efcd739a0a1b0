//! The commands that make cost profiles: flags in, files out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use quorate_client::writer::Batching;
use quorate_figures::Figures;
use quorate_placement::{Machine, Profile};
use quorate_types::Durability;
use quorate_types::limits::{BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX};

use crate::entry::ENTRY_BYTES_MIN;
use crate::files::{read_handle, write_json};
use crate::flags::{Keep, command_of, seconds};
use crate::profile::cells::{Cell, CellsPlan, length, measure_cells, sizes};
use crate::profile::error::judge;
use crate::profile::mixed::{Mix, measure_mixes};
use crate::profile::{MeasuredGroup, fit as fitting, mixed};
use crate::text;
use crate::workload::Workload;

#[derive(Args)]
struct Groups {
    /// File with the handle of an in-memory group of degree 3
    #[arg(long = "in-memory", value_name = "HANDLE")]
    in_memory: Vec<PathBuf>,
    /// File with the handle of a persistent group of degree 3
    #[arg(long = "persistent", value_name = "HANDLE")]
    persistent: Vec<PathBuf>,
    /// A server's address, as in the handles, and the id of its process
    #[arg(long = "server", value_name = "HOST:PORT=PID", value_parser = server, required = true)]
    servers: Vec<(String, u32)>,
    /// Entries that share a batch at most: a commitment should not rest on larger batches than tenants send
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_ENTRIES_MAX)))]
    batch_entries_max: u32,
    /// Length of one measurement
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Seconds that an append may take before its outcome is unknown
    #[arg(long, default_value_t = 10.0)]
    timeout: f64,
}

#[derive(Args)]
pub struct ProfileFlags {
    #[command(flatten)]
    groups: Groups,
    /// Shards of each server, as it was started
    #[arg(long, default_value_t = 1)]
    shards: u32,
    /// Bytes of entries; by default 64 to 32768, each twice the one before
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(i64::from(ENTRY_BYTES_MIN)..=i64::from(ENTRY_BYTES_MAX)))]
    sizes: Vec<u32>,
    /// Entries outstanding in each group, and 2 MiB at most
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    outstanding: u32,
    /// Number of measurements of each cell
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeats: u32,
    /// Write the cells to this file
    #[arg(long, value_name = "OUT")]
    json: PathBuf,
}

#[derive(Args)]
pub struct FitFlags {
    /// Files of `profile --json`
    #[arg(long = "cells", value_name = "FILE", required = true)]
    cells: Vec<PathBuf>,
    /// Files of `profile --json --batch-entries-max 1`: for the cost of a batch itself
    #[arg(long = "unbatched", value_name = "FILE", required = true)]
    unbatched: Vec<PathBuf>,
    /// Files of `profile-mixes --json` to calibrate it on: for the cost of sharing a server
    #[arg(long = "mixes", value_name = "FILE", required = true)]
    mixes: Vec<PathBuf>,
    /// Files of read cells: results of `read --json` with `source` and `size_bytes`
    #[arg(long = "reads", value_name = "FILE", required = true)]
    reads: Vec<PathBuf>,
    /// Name of the profile, shown in quotes
    #[arg(long)]
    version: String,
    /// Source of the numbers: commit and command
    #[arg(long)]
    source: String,
    /// Version of the measured servers
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    servers_version: String,
    /// Share of the measured capacity that may be promised (Filo §6.1.1)
    #[arg(long, default_value_t = 0.8)]
    safety_factor: f64,
    /// Write the profile to this file
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
}

#[derive(Args)]
pub struct MixesFlags {
    #[command(flatten)]
    groups: Groups,
    /// Number of mixes of groups, sizes and entries outstanding
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    mixes: u32,
    /// Seed of the draw: another one draws other mixes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only these mixes, counted from 0: to repeat disturbed ones
    #[arg(long, value_name = "N", value_delimiter = ',')]
    only: Vec<u32>,
    /// Write the mixes to this file
    #[arg(long, value_name = "OUT")]
    json: PathBuf,
}

#[derive(Args)]
pub struct ErrorFlags {
    /// The profile
    #[arg(long)]
    profile: PathBuf,
    /// Files of `profile-mixes --json`: other mixes than the profile was calibrated on
    #[arg(long = "mixes", value_name = "FILE", required = true)]
    mixes: Vec<PathBuf>,
    /// Files of `profile --json --batch-entries-max 1`: other cells than the profile was made of
    #[arg(long = "unbatched", value_name = "FILE")]
    unbatched: Vec<PathBuf>,
    /// Files of read cells: others than the profile was made of
    #[arg(long = "reads", value_name = "FILE")]
    reads: Vec<PathBuf>,
    /// Write the result to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    #[command(flatten)]
    keep: Keep,
}

fn server(text: &str) -> Result<(String, u32), String> {
    let (address, pid) = text.rsplit_once('=').ok_or("must be HOST:PORT=PID")?;
    let pid = pid.parse().map_err(|_| format!("{pid:?} is no process id"))?;
    Ok((address.to_string(), pid))
}

impl Groups {
    fn read(&self, plaintext: bool) -> Result<Vec<MeasuredGroup>, String> {
        let processes: BTreeMap<String, u32> = self.servers.iter().cloned().collect();
        let mut groups = Vec::new();
        for (durability, paths) in [
            (Durability::InMemory, &self.in_memory),
            (Durability::Persistent, &self.persistent),
        ] {
            for path in paths {
                let group = MeasuredGroup::new(read_handle(path, plaintext)?, durability, &processes);
                groups.push(group.map_err(|problem| format!("{}: {problem}", path.display()))?);
            }
        }
        if groups.is_empty() {
            return Err("--in-memory or --persistent must name a group to put load on".to_string());
        }
        Ok(groups)
    }

    fn workload(&self) -> Result<Workload, String> {
        Ok(Workload {
            size: 0,
            outstanding: 0,
            rate_per_s: None,
            burst: 1,
            outstanding_max: u32::MAX,
            connections: 1,
            batching: Batching {
                entries_max: self.batch_entries_max,
                ..Batching::default()
            },
            spin: std::time::Duration::ZERO,
            pace: false,
            warmup: seconds("--warmup", self.warmup, 0.0)?,
            window: seconds("--seconds", self.seconds, 0.1)?,
            timeout: seconds("--timeout", self.timeout, 0.1)?,
            server_pids: self.servers.iter().map(|(_, pid)| *pid).collect(),
        })
    }
}

pub fn measure(flags: &ProfileFlags, plaintext: bool) -> Result<bool, String> {
    let groups = flags.groups.read(plaintext)?;
    let plan = CellsPlan {
        sizes: if flags.sizes.is_empty() {
            sizes()
        } else {
            flags.sizes.clone()
        },
        shards: flags.shards,
        repetitions: flags.repeats,
        outstanding: flags.outstanding,
        workload: flags.groups.workload()?,
    };
    let durabilities = [&flags.groups.in_memory, &flags.groups.persistent];
    let durabilities = durabilities
        .into_iter()
        .filter(|handles| !handles.is_empty())
        .count();
    let length_s = length(&plan, durabilities as u32).as_secs();
    text::print(&format!("{length_s} s, or a little longer"));
    let cells = measure_cells(&groups, &plan, |cell| text::print(&describe_cell(cell)))?;
    write_json(Some(&flags.json), &cells)?;
    Ok(true)
}

fn describe_cell(cell: &Cell) -> String {
    let roles = cell
        .roles
        .iter()
        .map(|one| format!("{:?} {:.0}", one.role, one.used.cpu_ns));
    let roles = roles.collect::<Vec<_>>().join(", ");
    let (durability, size, rate) = (
        cell.durability,
        text::size(cell.size_bytes),
        text::grouped(cell.acked_per_s as u64),
    );
    let (batch, others) = (cell.batch_entries, cell.others_cores);
    format!(
        "{durability:?} {size}: {rate} appends/s in batches of {batch:.1}; ns of CPU: {roles}; others {others:.2} cores"
    )
}

pub fn fit(flags: &FitFlags) -> Result<bool, String> {
    let measured = fitting::ProfileMeasurements {
        cells: read(&flags.cells)?,
        unbatched: read(&flags.unbatched)?,
        mixes: read(&flags.mixes)?,
        reads: read(&flags.reads)?,
    };
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let about = fitting::About {
        version: flags.version.clone(),
        source: flags.source.clone(),
        machine: Machine::of_cpuinfo(
            &cpuinfo,
            std::thread::available_parallelism().map_or(0, usize::from),
        ),
        servers_version: flags.servers_version.clone(),
        safety_factor: flags.safety_factor,
    };
    let (text, sharing) = fitting::profile(&measured, &about)?;
    text::print(&format!(
        "groups that share a server use {sharing:.3} times as much as alone"
    ));
    replace(&flags.out, &text)?;
    Ok(true)
}

/// The lists of several files as one.
fn read<T: serde::de::DeserializeOwned>(paths: &[PathBuf]) -> Result<Vec<T>, String> {
    let mut found = Vec::new();
    for path in paths {
        let wrong = |what: String| format!("{}: {what}", path.display());
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        found.extend(serde_json::from_str::<Vec<T>>(&text).map_err(|error| wrong(error.to_string()))?);
    }
    Ok(found)
}

/// Replaces the file whole or not at all: a coordinator may be watching it.
fn replace(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

pub fn mixes(flags: &MixesFlags, plaintext: bool) -> Result<bool, String> {
    let groups = flags.groups.read(plaintext)?;
    let plan = mixed::MixesPlan {
        seed: flags.seed,
        mixes: flags.mixes,
        only: flags.only.clone(),
    };
    let workload = flags.groups.workload()?;
    let mixes = measure_mixes(&groups, &workload, &plan, |mix| text::print(&describe_mix(mix)))?;
    write_json(Some(&flags.json), &mixes)?;
    Ok(true)
}

fn describe_mix(mix: &Mix) -> String {
    let part = |part: &crate::profile::mixed::Part| {
        let rate = text::grouped(part.acked_per_s as u64);
        let (durability, size) = (part.durability, text::size(part.size_bytes));
        format!("{durability:?} {size} {rate}/s by {:.1}", part.batch_entries)
    };
    let parts = mix.parts.iter().map(part).collect::<Vec<_>>().join(", ");
    let cores = mix.servers.iter().map(|server| format!("{:.2}", server.cores));
    let cores = cores.collect::<Vec<_>>().join(", ");
    format!("{parts}; cores {cores}; others {:.2} cores", mix.others_cores)
}

pub fn compare(flags: &ErrorFlags) -> Result<bool, String> {
    let wrong = |what: String| format!("{}: {what}", flags.profile.display());
    let text = fs::read_to_string(&flags.profile).map_err(|error| wrong(error.to_string()))?;
    let profile = Profile::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let unbatched: Vec<Cell> = read(&flags.unbatched)?;
    let found = judge(
        &profile,
        &read::<Mix>(&flags.mixes)?,
        &unbatched,
        &read(&flags.reads)?,
    )?;
    for mix in &found.mixes {
        let server =
            |one: &crate::profile::error::Compared| format!("{:.2} of {:.2}", one.predicted, one.measured);
        let servers = mix.servers.iter().map(server).collect::<Vec<_>>().join(", ");
        text::print(&format!("cores predicted of measured: {servers}"));
    }
    text::print(&format!(
        "error {:.3} (median), {:.3} (worst); measured at most {:.3} times the prediction; bytes written {:.3} times; \
         bytes over the network {:.3} (median)",
        found.median, found.worst, found.understated, found.storage_understated, found.network_median
    ));
    write_json(flags.json.as_deref(), &found)?;
    let figures = Figures::new(&flags.keep.figures_dir, command_of(&flags.keep));
    figures.write("cost_model_error", found.median, "ratio", None)
}
