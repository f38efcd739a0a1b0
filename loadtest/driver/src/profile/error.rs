//! Error of a profile: its predictions for mixed workloads, compared with their use. Pure.

use quorate_placement::Profile;
use quorate_types::{Durability, Sla};
use serde::Serialize;
use serde_json::json;

use super::cells::{Cell, OfRole};
use super::median;
use super::mixed::{Mix, Part};
use super::read_cells::{self, ReadCell};

#[derive(Debug, Serialize)]
pub struct ProfileError {
    /// Error of the servers' cores: median over mixes and servers of |predicted − measured| ÷ measured.
    pub median: f64,
    pub worst: f64,
    /// The largest measured ÷ predicted. Above the inverse of the profile's safety factor, a commitment is broken.
    pub understated: f64,
    /// The same for the bytes that servers write: the profile charges a bound, not a measurement.
    pub storage_understated: f64,
    /// Median error of the bytes between processes.
    pub network_median: f64,
    /// The largest measured ÷ predicted of cells without batches, over all roles. `None` without such cells.
    pub unbatched_understated: Option<f64>,
    /// The same of reads.
    pub reads_understated: Option<f64>,
    pub mixes: Vec<ComparedMix>,
}

#[derive(Debug, Serialize)]
pub struct ComparedMix {
    pub parts: Vec<Part>,
    /// Cores of each server.
    pub servers: Vec<Compared>,
    pub written_bytes_per_s: Vec<Compared>,
    pub loopback_bytes_per_s: Compared,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compared {
    pub predicted: f64,
    pub measured: f64,
}

impl Compared {
    fn error(&self) -> f64 {
        (self.predicted - self.measured).abs() / self.measured.max(1e-9)
    }

    fn understated(&self) -> f64 {
        self.measured / self.predicted.max(1e-9)
    }
}

/// Servers that write less than this write no data of groups.
const WRITTEN_BYTES_PER_S_MIN: f64 = 1e5;

pub fn judge(
    profile: &Profile,
    mixes: &[Mix],
    unbatched: &[Cell],
    reads: &[ReadCell],
) -> Result<ProfileError, String> {
    if mixes.is_empty() || mixes.iter().any(|mix| mix.servers.is_empty()) {
        return Err("there are no mixes to compare with".to_string());
    }
    let compared: Vec<ComparedMix> = mixes.iter().map(|mix| compare(profile, mix)).collect();
    let servers: Vec<Compared> = compared.iter().flat_map(|mix| mix.servers.clone()).collect();
    let written = compared.iter().flat_map(|mix| mix.written_bytes_per_s.clone());
    let written = written.filter(|one| one.measured > WRITTEN_BYTES_PER_S_MIN);
    let network = compared.iter().map(|mix| mix.loopback_bytes_per_s);
    let errors: Vec<f64> = servers.iter().map(Compared::error).collect();
    Ok(ProfileError {
        worst: errors.iter().copied().fold(0.0, f64::max),
        median: median(errors),
        understated: servers.iter().map(Compared::understated).fold(0.0, f64::max),
        storage_understated: written.map(|one| one.understated()).fold(0.0, f64::max),
        network_median: median(network.map(|one| one.error()).collect()),
        unbatched_understated: unbatched_understated(profile, unbatched),
        reads_understated: read_cells::understated(profile, reads)?,
        mixes: compared,
    })
}

fn unbatched_understated(profile: &Profile, cells: &[Cell]) -> Option<f64> {
    let ratios = cells.iter().flat_map(|cell| {
        let sla = sla(cell.durability, cell.roles.len(), cell.size_bytes);
        let predicted = costs(profile, &sla, cell.batch_entries);
        let ratio = |(role, cost): (&OfRole, Cost)| role.used.cpu_ns / cost.cpu_ns;
        cell.roles.iter().zip(predicted).map(ratio).collect::<Vec<_>>()
    });
    ratios.max_by(f64::total_cmp)
}

fn compare(profile: &Profile, mix: &Mix) -> ComparedMix {
    let mut predicted = vec![[0.0; 2]; mix.servers.len()];
    let mut loopback = 0.0;
    for part in &mix.parts {
        let costs = each_append(profile, part);
        for (server, cost) in part.chain.iter().zip(&costs) {
            predicted[*server][0] += cost.cpu_ns * part.acked_per_s / 1e9;
            predicted[*server][1] += cost.written_bytes * part.acked_per_s;
        }
        loopback += once(&costs) * part.acked_per_s;
    }
    let compare = |at: usize, measured: fn(&super::mixed::Server) -> f64| {
        let pair = |(predicted, server): (&[f64; 2], _)| Compared {
            predicted: predicted[at],
            measured: measured(server),
        };
        predicted.iter().zip(&mix.servers).map(pair).collect()
    };
    ComparedMix {
        parts: mix.parts.clone(),
        servers: compare(0, |server| server.cores),
        written_bytes_per_s: compare(1, |server| server.written_bytes_per_s),
        loopback_bytes_per_s: Compared {
            predicted: loopback,
            measured: mix.loopback_bytes_per_s,
        },
    }
}

/// A profile's cost of one append to one replica.
pub struct Cost {
    pub cpu_ns: f64,
    network_bytes: f64,
    written_bytes: f64,
}

/// Costs of each replica, head first, for the part's mean batch.
pub fn each_append(profile: &Profile, part: &Part) -> Vec<Cost> {
    let sla = sla(part.durability, part.chain.len(), part.size_bytes);
    costs(profile, &sla, part.batch_entries)
}

fn sla(durability: Durability, degree: usize, size_bytes: u32) -> Sla {
    let fields = json!({
        "durability": durability, "replication_degree": degree, "request_size_bytes": size_bytes, "rate_per_s": 1,
    });
    serde_json::from_value(fields).expect("an SLA of these fields")
}

fn costs(profile: &Profile, sla: &Sla, batch_entries: f64) -> Vec<Cost> {
    let full = profile.request_milli(sla).into_iter();
    let short = profile.short_milli(sla, batch_entries);
    let cost = |(full, short): ([u64; 3], [f64; 3])| {
        let [cpu_ps, network, storage] = std::array::from_fn(|i| full[i] as f64 + short[i]);
        Cost {
            cpu_ns: cpu_ps / 1e3,
            network_bytes: network / 1e3,
            written_bytes: storage / 1e6 * f64::from(profile.io_bytes()),
        }
    };
    full.zip(short).map(cost).collect()
}

/// Bytes between processes, each counted once, although a server is charged for sending and receiving. The head's
/// charge has its own copies; every follower sends one more.
fn once(costs: &[Cost]) -> f64 {
    let followers = &costs[1..costs.len().saturating_sub(1).max(1)];
    costs[0].network_bytes + followers.iter().map(|cost| cost.network_bytes / 2.0).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::super::mixed::Server;
    use super::*;

    fn part(durability: Durability, size_bytes: u32, chain: [usize; 3], acked_per_s: f64) -> Part {
        Part {
            durability,
            size_bytes,
            outstanding: 16,
            chain: chain.to_vec(),
            acked_per_s,
            batch_entries: 16.0,
        }
    }

    #[test]
    fn predictions_are_summed_by_server_and_judged() {
        let profile = Profile::default_profile();
        // 64 B: 1.5 µs at the head, 1.2 µs elsewhere; persistent 1.95 and 1.56.
        let parts = vec![
            part(Durability::InMemory, 64, [0, 1, 2], 100_000.0),
            part(Durability::Persistent, 64, [2, 0, 1], 10_000.0),
        ];
        let costs: Vec<Vec<f64>> = parts
            .iter()
            .map(|part| {
                each_append(&profile, part)
                    .iter()
                    .map(|cost| cost.cpu_ns)
                    .collect()
            })
            .collect();
        assert_eq!(costs[0], [1_500.0, 1_200.0, 1_200.0]);
        let first = 0.15 + costs[1][1] / 1e5;
        let server = |cores| Server {
            cores,
            written_bytes_per_s: 10_000.0 * 2.0 * 8_192.0,
        };
        let mix = Mix {
            servers: vec![server(2.0 * first), server(0.1), server(0.1)],
            // 96 bytes a copy with its part of the header, three copies, and two acknowledgements of 8.
            loopback_bytes_per_s: 110_000.0 * (3.0 * 96.0 + 2.0 * 8.0),
            parts,
            others_cores: 0.0,
        };
        let found = judge(&profile, std::slice::from_ref(&mix), &[], &[]).unwrap();
        assert!((found.mixes[0].servers[0].predicted - first).abs() < 1e-9);
        assert!(
            (found.understated - 2.0).abs() < 1e-9,
            "the first uses twice what is predicted"
        );
        assert!(found.worst >= 0.5 && found.median > 0.3);
        assert_eq!((found.storage_understated, found.network_median), (1.0, 0.0));
        assert!(judge(&profile, &[], &[], &[]).is_err());
    }
}
