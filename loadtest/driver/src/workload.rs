//! The load to put on groups.

use std::time::Duration;

use quorate_client::writer::Batching;

/// The load to measure.
#[derive(Debug, Clone)]
pub struct Workload {
    pub size: u32,
    /// Entries outstanding over all connections, in a closed loop.
    pub outstanding: u32,
    /// Entries a second over all connections, in an open loop.
    pub rate_per_s: Option<f64>,
    /// Entries due at once, in an open loop.
    pub burst: u32,
    /// Most entries outstanding in an open loop: further due entries wait in the client.
    pub outstanding_max: u32,
    /// Connections to each server that is the head of a group. With more groups than connections, groups share them.
    pub connections: u32,
    pub batching: Batching,
    /// Time to poll for an answer before the client sleeps.
    pub spin: Duration,
    /// The client paces appends to the rate that heads announce, as users' clients do.
    pub pace: bool,
    pub warmup: Duration,
    pub window: Duration,
    pub timeout: Duration,
    pub server_pids: Vec<u32>,
}

impl Workload {
    /// Number of producers: each connection has one at least, and each group too.
    pub fn producers(&self, groups: usize) -> u32 {
        self.connections.max(groups as u32)
    }
}
