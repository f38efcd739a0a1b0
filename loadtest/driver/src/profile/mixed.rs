//! How good the profile is: groups of several sizes and both durabilities under load at once, what the profile says
//! that their servers use, and what they use.

use std::collections::BTreeMap;

use quorate_placement::Profile;
use quorate_types::{Durability, Sla};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use serde_json::json;
use tokio::task::LocalSet;

use super::cells::outstanding;
use super::processes::{Counters, Process};
use super::{Group, median};
use crate::measure::{Load, PATIENCE, Workload};

#[derive(Debug, Serialize)]
pub struct Error {
    /// Median over mixes and servers of |predicted − measured| ÷ measured.
    pub median: f64,
    pub worst: f64,
    pub mixes: Vec<Mix>,
}

#[derive(Debug, Serialize)]
pub struct Mix {
    pub parts: Vec<Part>,
    pub servers: Vec<Server>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Part {
    pub durability: Durability,
    pub size_bytes: u32,
    pub acked_per_s: f64,
}

/// Cores.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Server {
    pub predicted: f64,
    pub measured: f64,
}

impl Server {
    fn error(&self) -> f64 {
        (self.predicted - self.measured).abs() / self.measured.max(1e-9)
    }
}

/// As many groups as there are, each with a size of its own between the profile's.
pub fn compare(
    groups: &[Group],
    profile: &Profile,
    workload: &Workload,
    mixes: u32,
) -> Result<Error, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let mut drawn = StdRng::seed_from_u64(1);
    let mut found = Vec::new();
    for _ in 0..mixes {
        // Evenly over the powers, so that small ones are as frequent as large ones; not the profile's own sizes.
        let sizes: Vec<u32> = groups
            .iter()
            .map(|_| 2_f64.powf(drawn.random_range(6.0..15.0)) as u32)
            .collect();
        let most: Vec<u32> = groups.iter().map(|_| drawn.random_range(16..=512)).collect();
        found.push(LocalSet::new().block_on(&runtime, mix(groups, &sizes, &most, profile, workload))?);
    }
    let errors: Vec<f64> = found
        .iter()
        .flat_map(|mix| mix.servers.iter().map(Server::error))
        .collect();
    Ok(Error {
        worst: errors.iter().copied().fold(0.0, f64::max),
        median: median(errors),
        mixes: found,
    })
}

async fn mix(
    groups: &[Group],
    sizes: &[u32],
    most: &[u32],
    profile: &Profile,
    workload: &Workload,
) -> Result<Mix, String> {
    let parts: Vec<Workload> = sizes
        .iter()
        .zip(most)
        .map(|(size, most)| Workload {
            size: *size,
            outstanding: outstanding(*size, *most),
            connections: 1,
            ..workload.clone()
        })
        .collect();
    let loads: Vec<Load> = groups
        .iter()
        .zip(&parts)
        .map(|(group, part)| Load::start(std::slice::from_ref(&group.handle), part))
        .collect();
    let seen = observe(groups, &loads, &parts).await;
    let mut ended = Ok(());
    for load in loads {
        ended = ended.and(load.stop(PATIENCE).await);
    }
    let (rates, measured) = seen?;
    ended?;
    let mut predicted: BTreeMap<Process, f64> = BTreeMap::new();
    for ((group, size), rate) in groups.iter().zip(sizes).zip(&rates) {
        for (process, cores) in cores(profile, group, *size, *rate) {
            *predicted.entry(process).or_default() += cores;
        }
    }
    let part = |((group, size), rate): ((&Group, &u32), &f64)| Part {
        durability: group.durability,
        size_bytes: *size,
        acked_per_s: *rate,
    };
    let server = |(process, measured): (&Process, &f64)| Server {
        predicted: predicted[process],
        measured: *measured,
    };
    Ok(Mix {
        parts: groups.iter().zip(sizes).zip(&rates).map(part).collect(),
        servers: measured.iter().map(server).collect(),
    })
}

/// Appends/s of each group, and cores of each process, over one and the same window.
async fn observe(
    groups: &[Group],
    loads: &[Load],
    parts: &[Workload],
) -> Result<(Vec<f64>, BTreeMap<Process, f64>), String> {
    for load in loads {
        load.wait_attached(|_| ()).await?;
    }
    tokio::time::sleep(parts[0].warmup).await;
    let mut before = BTreeMap::new();
    for process in groups.iter().flat_map(|group| &group.chain) {
        before.entry(*process).or_insert(Counters::of(*process)?);
    }
    for load in loads {
        load.tally.borrow_mut().begin();
    }
    let began = std::time::Instant::now();
    tokio::time::sleep(parts[0].window).await;
    let window_s = began.elapsed().as_secs_f64();
    let mut cores = BTreeMap::new();
    for (process, before) in &before {
        let used = Counters::of(*process)?.since(before);
        cores.insert(*process, used.cpu_ns / 1e9 / window_s);
    }
    let mut rates = Vec::new();
    for load in loads {
        let tally = load.tally.borrow();
        if !tally.refused.is_empty() || !tally.unknown.is_empty() {
            return Err("appends failed: this is no measurement".to_string());
        }
        rates.push(tally.acked as f64 / window_s);
    }
    Ok((rates, cores))
}

/// What the profile says that a group's servers use.
fn cores(profile: &Profile, group: &Group, size_bytes: u32, rate_per_s: f64) -> Vec<(Process, f64)> {
    // Of a million appends a second, so that rounding to whole appends is nothing.
    const MILLION: u32 = 1_000_000;
    let sla: Sla = serde_json::from_value(json!({
        "durability": group.durability, "replication_degree": group.chain.len(),
        "request_size_bytes": size_bytes, "rate_per_s": MILLION,
    }))
    .expect("an SLA of these fields");
    let demands = profile.demands(&sla);
    let of = |(position, process): (usize, &Process)| {
        let cpu_ns_per_s = demands.at(position).0[0] as f64 / f64::from(MILLION) * rate_per_s;
        (*process, cpu_ns_per_s / 1e9)
    };
    group.chain.iter().enumerate().map(of).collect()
}
