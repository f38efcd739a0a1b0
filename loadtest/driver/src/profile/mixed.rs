//! Mixed workloads, as on a fleet: several groups at once, of several sizes and both durabilities. They are only
//! measured here; a profile is calibrated on some of them (`fit`) and judged by others (`error`).

use std::collections::BTreeMap;
use std::time::Instant;

use quorate_types::Durability;
use rand::rngs::StdRng;
use rand::seq::index;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;

use super::MeasuredGroup;
use super::cells::outstanding;
use crate::cpu::CpuSeconds;
use crate::load::{Load, PATIENCE};
use crate::processes::{Counters, Process, Used, loopback_bytes};
use crate::workload::Workload;

/// One measured mix. Rates are means over the window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mix {
    pub parts: Vec<Part>,
    /// Every server that a part's chain names.
    pub servers: Vec<Server>,
    /// Bytes over the loopback interface, each copy once.
    pub loopback_bytes_per_s: f64,
    /// Cores used meanwhile by other processes and the machine's host: they disturb the figures.
    pub others_cores: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    pub durability: Durability,
    pub size_bytes: u32,
    pub outstanding: u32,
    /// The servers of its replicas, head first.
    pub chain: Vec<usize>,
    pub acked_per_s: f64,
    pub batch_entries: f64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Server {
    pub cores: f64,
    pub written_bytes_per_s: f64,
}

/// The group of a mix's part, and its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Drawn {
    group: usize,
    size_bytes: u32,
    outstanding: u32,
}

/// Fewest groups of a mix.
const PARTS_MIN: usize = 2;

/// Draws mixes; another seed draws others. Sizes are uniform over the powers, so that small ones are as frequent as
/// large ones, and hardly ever the profile's own.
fn draw(seed: u64, mixes: u32, groups: usize) -> Vec<Vec<Drawn>> {
    let mut drawn = StdRng::seed_from_u64(seed);
    let mut mix = || {
        let count = drawn.random_range(PARTS_MIN.min(groups)..=groups);
        let mut chosen = index::sample(&mut drawn, groups, count).into_vec();
        chosen.sort_unstable();
        let part = |group| {
            let size_bytes = 2_f64.powf(drawn.random_range(6.0..15.0)) as u32;
            Drawn {
                group,
                size_bytes,
                outstanding: outstanding(size_bytes, drawn.random_range(16..=512)),
            }
        };
        chosen.into_iter().map(part).collect()
    };
    (0..mixes).map(|_| mix()).collect()
}

/// The mixes to draw and to measure.
pub struct MixesPlan {
    pub seed: u64,
    pub mixes: u32,
    /// Numbers from 0 of the mixes to measure, in that order; empty: all.
    pub only: Vec<u32>,
}

impl MixesPlan {
    fn draw(&self, groups: usize) -> Result<Vec<Vec<Drawn>>, String> {
        let drawn = draw(self.seed, self.mixes, groups);
        if self.only.is_empty() {
            return Ok(drawn);
        }
        let one = |number: &u32| drawn.get(*number as usize).cloned();
        let chosen: Option<_> = self.only.iter().map(one).collect();
        chosen.ok_or_else(|| format!("--only: mixes are counted from 0, and there are {}", self.mixes))
    }
}

pub fn measure_mixes(
    groups: &[MeasuredGroup],
    workload: &Workload,
    plan: &MixesPlan,
    mut tell: impl FnMut(&Mix),
) -> Result<Vec<Mix>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let mut found = Vec::new();
    for drawn in plan.draw(groups.len())? {
        let mix = LocalSet::new().block_on(&runtime, mix(groups, &drawn, workload))?;
        tell(&mix);
        found.push(mix);
    }
    Ok(found)
}

async fn mix(groups: &[MeasuredGroup], drawn: &[Drawn], workload: &Workload) -> Result<Mix, String> {
    let load = |one: &Drawn| {
        let own = Workload {
            size: one.size_bytes,
            outstanding: one.outstanding,
            connections: 1,
            ..workload.clone()
        };
        Load::start(std::slice::from_ref(&groups[one.group].handle), &own)
    };
    let loads: Vec<Load> = drawn.iter().map(load).collect();
    let seen = observe(groups, drawn, &loads, workload).await;
    let mut ended = Ok(());
    for load in loads {
        ended = ended.and(load.stop(PATIENCE).await);
    }
    let mix = seen?;
    ended?;
    Ok(mix)
}

async fn observe(
    groups: &[MeasuredGroup],
    drawn: &[Drawn],
    loads: &[Load],
    workload: &Workload,
) -> Result<Mix, String> {
    for load in loads {
        load.wait_attached(|_| ()).await?;
    }
    tokio::time::sleep(workload.warmup).await;
    let chains = drawn.iter().flat_map(|one| &groups[one.group].chain);
    let mut before = BTreeMap::new();
    for process in chains {
        before.entry(*process).or_insert(Counters::of(*process)?);
    }
    let pids: Vec<u32> = before.keys().map(|process| process.0).collect();
    let (machine, bytes) = (CpuSeconds::now(&pids)?, loopback_bytes());
    for load in loads {
        load.tally.borrow_mut().begin();
    }
    let began = Instant::now();
    tokio::time::sleep(workload.window).await;
    let window_s = began.elapsed().as_secs_f64();
    let bytes = loopback_bytes().wrapping_sub(bytes);
    let mut servers = Vec::new();
    for (process, before) in &before {
        servers.push(server(Counters::of(*process)?.since(before), window_s));
    }
    let machine = CpuSeconds::now(&pids)?.since(&machine);
    let mut parts = Vec::new();
    for (one, load) in drawn.iter().zip(loads) {
        parts.push(part(one, &groups[one.group], load, &pids, window_s)?);
    }
    Ok(Mix {
        parts,
        servers,
        loopback_bytes_per_s: bytes as f64 / window_s,
        others_cores: (machine.machine - machine.servers - machine.client).max(0.0) / window_s,
    })
}

fn server(used: Used, window_s: f64) -> Server {
    Server {
        cores: used.cpu_ns / 1e9 / window_s,
        written_bytes_per_s: used.written_bytes / window_s,
    }
}

fn part(
    drawn: &Drawn,
    group: &MeasuredGroup,
    load: &Load,
    pids: &[u32],
    window_s: f64,
) -> Result<Part, String> {
    let tally = load.tally.borrow();
    tally.check_all_acked(tally.acked)?;
    let place = |process: &Process| {
        let at = pids.iter().position(|pid| *pid == process.0);
        at.expect("the whole chain is counted")
    };
    Ok(Part {
        durability: group.durability,
        size_bytes: drawn.size_bytes,
        outstanding: drawn.outstanding,
        chain: group.chain.iter().map(place).collect(),
        acked_per_s: tally.acked as f64 / window_s,
        batch_entries: tally.acked as f64 / tally.batches.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_seed_draws_other_mixes_and_some_can_be_measured_again() {
        let (own, again, other) = (draw(1, 50, 6), draw(1, 50, 6), draw(2, 50, 6));
        assert_eq!(own, again);
        assert!(own.iter().all(|mix| !other.contains(mix)), "no mix is in both");
        let counts: std::collections::BTreeSet<usize> = own.iter().map(Vec::len).collect();
        assert_eq!(counts, (2..=6).collect(), "from two groups to all of them");
        for part in own.iter().flatten() {
            assert!((64..32 << 10).contains(&part.size_bytes) && (16..=512).contains(&part.outstanding));
        }
        let only = |only: &[u32]| {
            MixesPlan {
                seed: 1,
                mixes: 50,
                only: only.to_vec(),
            }
            .draw(6)
        };
        assert_eq!(only(&[]).unwrap(), own);
        assert_eq!(only(&[7, 3]).unwrap(), [own[7].clone(), own[3].clone()]);
        assert!(only(&[50]).is_err());
        assert!(
            own.iter()
                .all(|mix| mix.windows(2).all(|two| two[0].group < two[1].group))
        );
    }
}
