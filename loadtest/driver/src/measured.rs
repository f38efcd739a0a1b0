//! The result of one measurement.

use serde::Serialize;

use crate::runs::Run;

#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    pub size_bytes: u32,
    pub outstanding: u32,
    pub offered_per_s: Option<f64>,
    pub connections: u32,
    pub window_s: f64,
    pub acked: u64,
    pub acked_per_s: f64,
    /// Mean entries of an acknowledged batch.
    pub batch_entries: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// Processor seconds for a million appends; `None` without the servers' pids.
    pub servers_cpu_s_per_m: Option<f64>,
    pub client_cpu_s_per_m: f64,
    /// Cores used meanwhile by processes other than servers and client: they disturb the figures.
    pub others_cores: Option<f64>,
    pub reconnects: u32,
    /// Entries by code, from the first append on.
    pub refused: std::collections::BTreeMap<&'static str, u64>,
    pub unknown: std::collections::BTreeMap<&'static str, u64>,
    /// The run of each producer: for `verify --result`.
    pub runs: Vec<Run>,
}
