//! A profile file of measured cells: the median of each, and never less for a larger size.

use quorate_placement::{Machine, Profile};
use quorate_types::{Durability, Role};
use serde_json::{Value, json};

use super::cells::Cell;
use super::median;

/// Bytes of an acknowledgement's frame and segment headers; the rest of what is measured beside payloads falls to
/// batches.
const ACK_BYTES: f64 = 66.0;
/// A chain of three: client to head to follower to tail; and tail to head to client.
const COPIES: f64 = 3.0;
const ACKS: f64 = 2.0;

pub struct About {
    pub version: String,
    pub source: String,
    pub machine: Machine,
    pub servers_version: String,
    pub safety_factor: f64,
}

/// The file's text. Only cells with one group on servers of one shard tell roles apart.
pub fn profile(cells: &[Cell], about: &About) -> Result<String, String> {
    let single: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.shards == 1 && cell.groups == 1)
        .collect();
    let mut cpu = serde_json::Map::new();
    for (name, durability) in [
        ("in_memory", Durability::InMemory),
        ("persistent", Durability::Persistent),
    ] {
        let cells: Vec<&Cell> = single
            .iter()
            .copied()
            .filter(|cell| cell.durability == durability)
            .collect();
        if cells.iter().any(|cell| cell.roles.len() != COPIES as usize) {
            return Err("groups must have degree 3: head, follower and tail".to_string());
        }
        let roles = [
            ("head", Role::Head),
            ("follower", Role::Follower),
            ("tail", Role::Tail),
        ];
        let curves = roles.map(|(name, role)| (name.to_string(), curve(&cells, role)));
        cpu.insert(name.to_string(), Value::Object(curves.into_iter().collect()));
    }
    let batch = median(single.iter().map(|cell| cell.batch_entries).collect())
        .round()
        .max(1.0);
    let over = |cell: &&Cell| {
        let beside = cell.loopback_bytes - COPIES * f64::from(cell.size_bytes);
        ((beside * cell.batch_entries - ACKS * ACK_BYTES) / COPIES).max(0.0)
    };
    let header = median(single.iter().map(over).collect());
    let text = json!({
        "format": 2,
        "version": about.version,
        "provisional": false,
        "source": about.source,
        "machine": about.machine,
        "servers_version": about.servers_version,
        "safety_factor": about.safety_factor,
        "shard_cores": 1.0,
        "network": {
            "batch_header_bytes": header.ceil() as u32,
            "ack_bytes": ACK_BYTES as u32,
            "entries_per_batch": batch as u32,
        },
        "storage": {"io_bytes": 8_192, "writes": 2},
        "cpu": cpu,
    });
    let text = format!("{text:#}\n");
    Profile::parse(&text).map_err(|error| format!("what was measured makes no profile: {error}"))?;
    Ok(text)
}

/// Points with rising sizes. A larger size that measured cheaper costs what the smaller one did.
fn curve(cells: &[&Cell], role: Role) -> Value {
    let mut sizes: Vec<u32> = cells.iter().map(|cell| cell.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (mut cpu, mut busiest) = (1, 1);
    let point = |size: u32| {
        let own = cells.iter().filter(|cell| cell.size_bytes == size);
        let used: Vec<_> = own
            .flat_map(|cell| {
                cell.roles
                    .iter()
                    .filter(|one| one.role == role)
                    .map(|one| one.used)
            })
            .collect();
        cpu = cpu.max(median(used.iter().map(|used| used.cpu_ns).collect()).ceil() as u32);
        busiest = busiest.max(median(used.iter().map(|used| used.busiest_ns).collect()).ceil() as u32);
        json!({"size_bytes": size, "cpu_ns": cpu, "busiest_ns": busiest.min(cpu)})
    };
    Value::Array(sizes.into_iter().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::super::cells::OfRole;
    use super::super::processes::Used;
    use super::*;
    use quorate_types::Sla;

    fn cell(durability: Durability, size_bytes: u32, head_ns: f64) -> Cell {
        let used = |part: f64| Used {
            cpu_ns: head_ns * part,
            busiest_ns: head_ns * part / 2.0,
            written_bytes: 0.0,
        };
        let roles = [(Role::Head, 1.0), (Role::Follower, 0.8), (Role::Tail, 0.6)];
        Cell {
            durability,
            size_bytes,
            shards: 1,
            groups: 1,
            acked_per_s: 1e5,
            batch_entries: 8.0,
            p50_us: 1,
            p99_us: 2,
            roles: roles
                .into_iter()
                .map(|(role, part)| OfRole {
                    role,
                    used: used(part),
                })
                .collect(),
            servers: Vec::new(),
            // Three copies with headers of 100 bytes for eight, and two acknowledgements for eight.
            loopback_bytes: 3.0 * f64::from(size_bytes) + (300.0 + 2.0 * ACK_BYTES) / 8.0,
            flushes: 0.0,
            others_cores: 0.0,
        }
    }

    fn about() -> About {
        About {
            version: "v".into(),
            source: "a test".into(),
            machine: Machine {
                cpu: "c".into(),
                cores: 2,
            },
            servers_version: "0".into(),
            safety_factor: 0.8,
        }
    }

    #[test]
    fn a_profile_charges_the_median_of_what_was_measured() {
        let mut cells = Vec::new();
        for durability in [Durability::InMemory, Durability::Persistent] {
            for (size, ns) in [
                (64, 1_000.0),
                (64, 1_100.0),
                (64, 9_000.0),
                (1_024, 2_000.0),
                (4_096, 1_900.0),
            ] {
                cells.push(cell(durability, size, ns));
            }
        }
        let text = profile(&cells, &about()).unwrap();
        let profile = Profile::parse(&text).unwrap();
        let sla: Sla = serde_json::from_value(json!({
            "durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}))
        .unwrap();
        let demands = profile.demands(&sla);
        assert_eq!(demands.at(0).0[0], 1_100_000, "the median, not the mean");
        assert_eq!(demands.at(1).0[0], 880_000);
        assert_eq!(demands.at(2).0[0], 660_000);
        // 64 bytes and an eighth of the header of 100, twice, and two acknowledgements' eighth.
        assert_eq!(demands.at(0).0[1], 1_000 * (2 * 64) + 2 * 12_500 + 2 * 8_250);
        assert_eq!(
            profile.shard_peak_per_s(&sla),
            (0.8 * 1e9 / 550.0) as u64,
            "the busiest thread"
        );
        // What measured cheaper than a smaller size costs as much as that.
        let large = Sla {
            request_size_bytes: 4_096,
            ..sla
        };
        assert_eq!(profile.demands(&large).at(0).0[0], 2_000_000);
    }

    #[test]
    fn what_tells_no_roles_makes_no_profile() {
        let mut several = cell(Durability::InMemory, 64, 1.0);
        several.roles.clear();
        assert!(profile(&[several], &about()).is_err());
        assert!(
            profile(&[cell(Durability::InMemory, 64, 1.0)], &about()).is_err(),
            "persistent is missing"
        );
    }
}
