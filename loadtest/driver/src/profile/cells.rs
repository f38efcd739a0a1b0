//! Measures one durability and size after another, repeatedly, so that drift affects all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorate_types::{Durability, Role};
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;

use super::MeasuredGroup;
use crate::cpu::CpuSeconds;
use crate::load::{Load, PATIENCE};
use crate::processes::{Counters, Process, Used, disk_flushes, loopback_bytes};
use crate::workload::Workload;

/// One durability and size, once. Amounts are for each append.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub durability: Durability,
    pub size_bytes: u32,
    /// Shards of each server.
    pub shards: u32,
    pub groups: u32,
    pub acked_per_s: f64,
    pub batch_entries: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// Use by role. With several groups a server has several roles, and only `servers` are given.
    pub roles: Vec<OfRole>,
    /// Cores of each server, all threads and the busiest.
    pub servers: Vec<Used>,
    /// Bytes over the loopback interface, each copy once.
    pub loopback_bytes: f64,
    /// Flushes of all disks.
    pub flushes: f64,
    /// Cores used meanwhile by other processes and the machine's host: they disturb the figures.
    pub others_cores: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OfRole {
    pub role: Role,
    #[serde(flatten)]
    pub used: Used,
}

pub struct CellsPlan {
    pub sizes: Vec<u32>,
    pub shards: u32,
    pub repetitions: u32,
    /// Entries outstanding in each group; fewer of large sizes, within [`OUTSTANDING_BYTES`].
    pub outstanding: u32,
    pub workload: Workload,
}

/// Most bytes outstanding in each group: a server's queues take as much without a throttle answer.
const OUTSTANDING_BYTES: u32 = 2 << 20;

pub fn measure_cells(
    groups: &[MeasuredGroup],
    plan: &CellsPlan,
    mut tell: impl FnMut(&Cell),
) -> Result<Vec<Cell>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let mut cells = Vec::new();
    for _ in 0..plan.repetitions {
        for durability in [Durability::InMemory, Durability::Persistent] {
            let groups: Vec<&MeasuredGroup> = groups
                .iter()
                .filter(|group| group.durability == durability)
                .collect();
            for size_bytes in plan.sizes.iter().copied().filter(|_| !groups.is_empty()) {
                let cell = LocalSet::new().block_on(&runtime, cell(&groups, size_bytes, plan))?;
                tell(&cell);
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

/// Outstanding entries of this size: bounded in number and bytes.
pub fn outstanding(size_bytes: u32, most: u32) -> u32 {
    most.min(OUTSTANDING_BYTES / size_bytes).max(1)
}

async fn cell(groups: &[&MeasuredGroup], size_bytes: u32, plan: &CellsPlan) -> Result<Cell, String> {
    let count = u32::try_from(groups.len()).expect("groups are counted in arguments");
    let workload = Workload {
        size: size_bytes,
        outstanding: outstanding(size_bytes, plan.outstanding) * count,
        connections: count,
        ..plan.workload.clone()
    };
    let handles: Vec<_> = groups.iter().map(|group| group.handle.clone()).collect();
    let load = Load::start(&handles, &workload);
    let window = window(groups, &load, &workload).await;
    let ended = load.stop(PATIENCE).await;
    let mut cell = window?;
    ended?;
    cell.size_bytes = size_bytes;
    cell.shards = plan.shards;
    Ok(cell)
}

async fn window(groups: &[&MeasuredGroup], load: &Load, workload: &Workload) -> Result<Cell, String> {
    load.wait_attached(|_| ()).await?;
    tokio::time::sleep(workload.warmup).await;
    let processes: BTreeSet<Process> = groups
        .iter()
        .flat_map(|group| group.chain.iter().copied())
        .collect();
    let pids: Vec<u32> = processes.iter().map(|process| process.0).collect();
    let counters = || {
        processes
            .iter()
            .map(|process| Counters::of(*process))
            .collect::<Result<Vec<_>, _>>()
    };
    let machine = CpuSeconds::now(&pids)?;
    let (flushes, bytes) = (disk_flushes(), loopback_bytes());
    let before = counters()?;
    load.tally.borrow_mut().begin();
    let began = Instant::now();
    tokio::time::sleep(workload.window).await;
    let after = counters()?;
    let (acked, batches) = (load.tally.borrow().acked, load.tally.borrow().batches);
    let (flushes, bytes) = (disk_flushes() - flushes, loopback_bytes().wrapping_sub(bytes));
    let window_s = began.elapsed().as_secs_f64();
    let machine = CpuSeconds::now(&pids)?.since(&machine);
    let tally = load.tally.borrow();
    tally.check_all_acked(acked)?;
    let used: Vec<Used> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after.since(before))
        .collect();
    let of = |process: &Process| {
        let at = pids.iter().position(|pid| *pid == process.0);
        used[at.expect("all of the chain are counted")].each(acked)
    };
    let role = |(position, process)| OfRole {
        role: groups[0].role(position),
        used: of(process),
    };
    let alone = groups.len() == 1;
    let cores = |used: &Used| used.each((window_s * 1e9) as u64);
    Ok(Cell {
        durability: groups[0].durability,
        size_bytes: 0,
        shards: 0,
        groups: workload.connections,
        acked_per_s: acked as f64 / window_s,
        batch_entries: acked as f64 / batches.max(1) as f64,
        p50_us: tally.latency_us.value_at_quantile(0.5),
        p99_us: tally.latency_us.value_at_quantile(0.99),
        roles: groups[0]
            .chain
            .iter()
            .enumerate()
            .filter(|_| alone)
            .map(role)
            .collect(),
        servers: used.iter().map(cores).collect(),
        loopback_bytes: bytes as f64 / acked as f64,
        flushes: flushes as f64 / acked as f64,
        others_cores: (machine.machine - machine.servers - machine.client).max(0.0) / window_s,
    })
}

/// The sizes of Filo's Figure 3.
pub fn sizes() -> Vec<u32> {
    (0..10).map(|power| 64 << power).collect()
}

/// Least time of one run of all cells.
pub fn length(plan: &CellsPlan, durabilities: u32) -> Duration {
    let cells = plan.repetitions * durabilities * u32::try_from(plan.sizes.len()).expect("few sizes");
    (plan.workload.warmup + plan.workload.window) * cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outstanding_entries_are_bounded_in_bytes() {
        assert_eq!(
            (
                outstanding(64, 512),
                outstanding(32 << 10, 512),
                outstanding(4 << 20, 512)
            ),
            (512, 64, 1)
        );
        assert_eq!((sizes()[0], sizes()[9]), (64, 32 << 10));
    }
}
