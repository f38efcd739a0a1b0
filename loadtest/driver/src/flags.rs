//! Flags that several commands have.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quorate_client::Handle;
use quorate_client::writer::Batching;
use quorate_types::limits::{BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX};

use crate::entry::ENTRY_BYTES_MIN;
use crate::files::read_handle;
use crate::workload::Workload;

#[derive(Args)]
pub struct LoadFlags {
    /// File with a handle, as GET /v1/groups/{id}/handle gives it; several groups share
    /// the connections in turn, also one alone
    #[arg(long = "handle", value_name = "FILE", required = true)]
    pub handles: Vec<PathBuf>,
    /// Bytes of each entry
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(i64::from(ENTRY_BYTES_MIN)..=i64::from(ENTRY_BYTES_MAX)))]
    pub size: u32,
    /// Entries outstanding, over all connections (closed loop)
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub outstanding: u32,
    /// Entries a second, over all connections, whatever the servers do (open loop); latency counts from the time at
    /// which each was due
    #[arg(long, value_name = "N", conflicts_with = "outstanding")]
    pub rate: Option<f64>,
    /// Entries due at once, in an open loop and for each connection to a group: as from a program that collects some
    /// first
    #[arg(long, value_name = "N", requires = "rate", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub burst: u32,
    /// Entries outstanding at most, in an open loop: further due entries wait in the client
    #[arg(long, value_name = "N", requires = "rate", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub outstanding_max: u32,
    /// Entries that share a batch at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_ENTRIES_MAX)))]
    pub batch_entries_max: Option<u32>,
    /// Connections to each server that is the head of a group
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub connections: u32,
    /// Time to poll for an answer before sleeping
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub spin_us: u64,
    /// Pace appends to the rate that heads announce, as users' clients do. Without it the servers are measured, and not
    /// the clients' pacing
    #[arg(long)]
    pub pace: bool,
    /// Seconds that an append may take before its outcome is unknown
    #[arg(long, default_value_t = 10.0)]
    pub timeout: f64,
}

#[derive(Args)]
pub struct Servers {
    /// Process ids of the servers, to count their processor time
    #[arg(long, value_name = "PIDS", value_delimiter = ',')]
    pub server_pids: Vec<u32>,
}

#[derive(Args)]
pub struct Keep {
    /// Folder of the figures
    #[arg(long, value_name = "DIR", default_value = "build/figures")]
    pub figures_dir: PathBuf,
    /// Name of the command in the figures; by default this one
    #[arg(long, value_name = "TEXT")]
    pub command: Option<String>,
}

impl LoadFlags {
    pub fn read_handles(&self, plaintext: bool) -> Result<Vec<Handle>, String> {
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

    /// The workload without windows, which are the command's own.
    pub fn workload(&self) -> Result<Workload, String> {
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

pub fn seconds(flag: &str, value: f64, least: f64) -> Result<Duration, String> {
    if (least..=86_400.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("{flag} must be {least} to 86400 seconds"))
    }
}

/// The command line, without paths that differ between machines.
pub fn command_of(keep: &Keep) -> String {
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
