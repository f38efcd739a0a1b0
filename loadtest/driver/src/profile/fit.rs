//! A profile file from measurements: the median of each cell, never less for a larger size, times a factor for servers
//! that several groups share.
//!
//! A cell has one group, which keeps a server's threads busy: each time one wakes, it has much to do. Groups that share
//! a server wake it for less each time, and share its caches. One factor covers that. It comes from mixes measured for
//! this alone (`mixed`): the upper quartile, over their servers, of the measured use divided by the cells' prediction.
//! So three of four servers of such mixes use no more than the profile predicts, and its safety factor covers the
//! fourth.

use quorate_placement::{Machine, Profile};
use quorate_types::{Durability, Role};
use serde_json::{Value, json};

use super::cells::Cell;
use super::error::each_append;
use super::median;
use super::mixed::Mix;
use super::read_cells::{ReadCell, curves};

/// Bytes of an acknowledgement's frame and segment headers. All other bytes beside payloads are charged to batches.
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

/// Share of the calibration mixes' servers that use no more than the profile predicts.
const QUANTILE: f64 = 0.75;

/// Measurements for a profile.
pub struct ProfileMeasurements {
    pub cells: Vec<Cell>,
    /// Cells of the same sizes, with one entry in each batch.
    pub unbatched: Vec<Cell>,
    pub mixes: Vec<Mix>,
    pub reads: Vec<ReadCell>,
}

/// The file's text, and the factor for shared servers. Only cells with one group on servers of one shard distinguish
/// roles.
pub fn profile(measured: &ProfileMeasurements, about: &About) -> Result<(String, f64), String> {
    let alone = of_cells(measured, 1.0, about)?;
    let profile = parse(&alone)?;
    let sharing = sharing(&profile, &measured.mixes)?;
    let shared = of_cells(measured, sharing, about)?;
    parse(&shared)?;
    Ok((shared, sharing))
}

fn parse(text: &str) -> Result<Profile, String> {
    Profile::parse(text).map_err(|error| format!("the measurements give no valid profile: {error}"))
}

/// The use of servers of several groups, divided by their groups' use alone; at least 1.
fn sharing(profile: &Profile, mixes: &[Mix]) -> Result<f64, String> {
    let mut ratios = Vec::new();
    for mix in mixes {
        let mut alone = vec![0.0; mix.servers.len()];
        for part in &mix.parts {
            for (server, cost) in part.chain.iter().zip(each_append(profile, part)) {
                alone[*server] += cost.cpu_ns * part.acked_per_s / 1e9;
            }
        }
        let used = mix.servers.iter().zip(&alone).filter(|(_, alone)| **alone > 0.0);
        ratios.extend(used.map(|(server, alone)| server.cores / alone));
    }
    if ratios.is_empty() {
        return Err("no mixes: the cost of sharing a server is unknown".to_string());
    }
    ratios.sort_by(f64::total_cmp);
    let at = ((ratios.len() as f64 * QUANTILE).ceil() as usize).clamp(1, ratios.len()) - 1;
    Ok(ratios[at].max(1.0))
}

fn of_one_group(cells: &[Cell]) -> Vec<&Cell> {
    let alone = cells.iter().filter(|cell| cell.shards == 1 && cell.groups == 1);
    alone.collect()
}

fn of_cells(measured: &ProfileMeasurements, sharing: f64, about: &About) -> Result<String, String> {
    let (single, unbatched) = (of_one_group(&measured.cells), of_one_group(&measured.unbatched));
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
        let mut curves: serde_json::Map<_, _> = roles
            .map(|(name, role)| (name.to_string(), curve(&cells, role, sharing)))
            .into_iter()
            .collect();
        let mut batch_ns = serde_json::Map::new();
        for (name, role) in roles {
            let ns = batch_ns_of(&cells, &unbatched, durability, role)?;
            batch_ns.insert(name.to_string(), json!((sharing * ns).ceil() as u32));
        }
        curves.insert("batch_ns".to_string(), Value::Object(batch_ns));
        cpu.insert(name.to_string(), Value::Object(curves));
    }
    cpu.insert("read".to_string(), curves(&measured.reads, sharing)?);
    let batch = median(single.iter().map(|cell| cell.batch_entries).collect())
        .round()
        .max(1.0);
    let over = |cell: &&Cell| {
        let beside = cell.loopback_bytes - COPIES * f64::from(cell.size_bytes);
        ((beside * cell.batch_entries - ACKS * ACK_BYTES) / COPIES).max(0.0)
    };
    let header = median(single.iter().map(over).collect());
    let text = json!({
        "format": 4,
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
    Ok(format!("{text:#}\n"))
}

/// CPU of a batch itself. An append costs a part for the append, and its share of a part for the batch. The median over
/// sizes counts, as a batch's part does not depend on its entries.
fn batch_ns_of(
    cells: &[&Cell],
    unbatched: &[&Cell],
    durability: Durability,
    role: Role,
) -> Result<f64, String> {
    let unbatched: Vec<&Cell> = unbatched
        .iter()
        .copied()
        .filter(|cell| cell.durability == durability)
        .collect();
    let of_role = |cells: &[&Cell], size: u32| {
        let used = cells
            .iter()
            .filter(|cell| cell.size_bytes == size)
            .flat_map(|cell| {
                let own = cell.roles.iter().filter(|one| one.role == role);
                own.map(|one| (one.used.cpu_ns, cell.batch_entries))
            });
        let (ns, entries): (Vec<f64>, Vec<f64>) = used.unzip();
        (median(ns), 1.0 / median(entries))
    };
    let mut each = Vec::new();
    for size in sizes(&unbatched) {
        let ((alone_ns, alone), (ns, share)) = (of_role(&unbatched, size), of_role(cells, size));
        let batch_ns = (alone_ns - ns) / (alone - share);
        // A size measured in one way only shows nothing, and neither do two cells with the same batches.
        each.extend(Some(batch_ns).filter(|ns| ns.is_finite() && alone > share));
    }
    if each.is_empty() {
        return Err(format!(
            "no {durability:?} size was measured with batches and without: the cost of a batch is unknown"
        ));
    }
    Ok(median(each).max(0.0))
}

fn sizes(cells: &[&Cell]) -> Vec<u32> {
    let mut sizes: Vec<u32> = cells.iter().map(|cell| cell.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Points with rising sizes. A larger size with a smaller measured cost gets the smaller size's cost.
fn curve(cells: &[&Cell], role: Role, sharing: f64) -> Value {
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
        let ns = |each: Vec<f64>| (sharing * median(each)).ceil() as u32;
        cpu = cpu.max(ns(used.iter().map(|used| used.cpu_ns).collect()));
        busiest = busiest.max(ns(used.iter().map(|used| used.busiest_ns).collect()));
        json!({"size_bytes": size, "cpu_ns": cpu, "busiest_ns": busiest.min(cpu)})
    };
    Value::Array(sizes(cells).into_iter().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::super::cells::OfRole;
    use super::super::mixed::{Part, Server};
    use super::*;
    use crate::processes::Used;
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

    /// The same with one entry in each batch: half a microsecond more at the head.
    fn alone(durability: Durability, size_bytes: u32, head_ns: f64) -> Cell {
        Cell {
            batch_entries: 1.0,
            ..cell(durability, size_bytes, head_ns + 500.0)
        }
    }

    /// 64 bytes were measured without batches too.
    fn fit(cells: Vec<Cell>, mixes: &[Mix]) -> Result<(String, f64), String> {
        let unbatched = [Durability::InMemory, Durability::Persistent].map(|one| alone(one, 64, 1_100.0));
        let measured = ProfileMeasurements {
            cells,
            unbatched: unbatched.to_vec(),
            mixes: mixes.to_vec(),
            reads: crate::profile::read_cells::some(),
        };
        profile(&measured, &about())
    }

    /// One in-memory group of 64 bytes, whose servers use as much as its cells predict, times `factor` each.
    fn mix(factor: [f64; 3]) -> Mix {
        let alone = [1_100.0, 880.0, 660.0];
        Mix {
            parts: vec![Part {
                durability: Durability::InMemory,
                size_bytes: 64,
                outstanding: 16,
                chain: vec![0, 1, 2],
                acked_per_s: 1e5,
                batch_entries: 8.0,
            }],
            servers: std::array::from_fn::<_, 3, _>(|n| Server {
                cores: alone[n] * 1e5 / 1e9 * factor[n],
                written_bytes_per_s: 0.0,
            })
            .to_vec(),
            loopback_bytes_per_s: 0.0,
            others_cores: 0.0,
        }
    }

    #[test]
    fn a_profile_charges_the_median_of_the_measurements() {
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
        let (text, _) = fit(cells, &[mix([1.0; 3])]).unwrap();
        let profile = Profile::parse(&text).unwrap();
        let sla: Sla = serde_json::from_value(json!({
            "durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}))
        .unwrap();
        let demands = profile.demands(&sla);
        // All of a thousand may come in batches of one, each for half a microsecond more at the head.
        assert_eq!(
            profile.request_milli(&sla)[0][0],
            1_100_000,
            "the median, not the mean"
        );
        assert_eq!(demands.at(0).0[0], 1_100_000 + 500_500);
        assert_eq!(demands.at(1).0[0], 880_000 + 400_750);
        assert_eq!(demands.at(2).0[0], 660_000 + 300_125);
        // 64 bytes and an eighth of the header of 100, twice, and an eighth of two acknowledgements. A batch of one has
        // seven eighths more.
        let beside = 2 * 12_500 + 2 * 8_250;
        assert_eq!(demands.at(0).0[1], 1_000 * (2 * 64) + beside + beside * 7);
        assert_eq!(
            profile.shard_peak_per_s(&sla),
            ((0.8 * 1e9 - 1_000.0 * 500.5) / 550.0) as u64,
            "the busiest thread, and a thousand batches of one"
        );
        // A size that measured cheaper than a smaller one costs as much as that.
        let large = Sla {
            request_size_bytes: 4_096,
            ..sla
        };
        assert_eq!(profile.request_milli(&large)[0][0], 2_000_000);
    }

    #[test]
    fn the_factor_for_sharing_is_the_upper_quartile_of_the_mixes_and_at_least_one() {
        let cells: Vec<Cell> = [Durability::InMemory, Durability::Persistent]
            .into_iter()
            .flat_map(|durability| {
                [(64, 1_100.0), (1_024, 2_000.0)].map(|(size, ns)| cell(durability, size, ns))
            })
            .collect();
        let mixes = [mix([1.0, 1.1, 1.2]), mix([1.3, 1.4, 1.5]), mix([1.6, 1.7, 9.0])];
        let (text, sharing) = fit(cells.clone(), &mixes).unwrap();
        assert!((sharing - 1.6).abs() < 1e-9, "the seventh of nine: {sharing}");
        let shared: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(shared["cpu"]["in_memory"]["head"][0]["cpu_ns"], 1_760);
        assert_eq!(shared["cpu"]["persistent"]["tail"][0]["busiest_ns"], 528);
        let (_, sharing) = fit(cells.clone(), &[mix([0.5; 3])]).unwrap();
        assert_eq!(sharing, 1.0);
        assert!(fit(cells, &[]).is_err());
    }

    #[test]
    fn the_cost_of_a_batch_is_separated_from_its_entries_and_charged_to_batches_of_one() {
        let both = [Durability::InMemory, Durability::Persistent];
        let cells: Vec<Cell> = both
            .into_iter()
            .flat_map(|one| [cell(one, 64, 1_100.0), cell(one, 1_024, 2_000.0)])
            .collect();
        let (text, _) = fit(cells.clone(), &[mix([2.0; 3])]).unwrap();
        let fitted: Value = serde_json::from_str(&text).unwrap();
        // Seven eighths of a batch are half a microsecond, and sharing doubles all.
        let batch_ns = &fitted["cpu"]["in_memory"]["batch_ns"];
        assert_eq!(batch_ns, &json!({"head": 1_143, "follower": 915, "tail": 686}));
        let found = super::super::error::judge(
            &Profile::parse(&text).unwrap(),
            &[mix([1.0; 3])],
            &[alone(Durability::Persistent, 1_024, 2_000.0)],
            &[],
        );
        let understated = found.unwrap().unbatched_understated.unwrap();
        assert!((understated - 0.5).abs() < 1e-3, "{understated}");
        let measured = |unbatched: Vec<Cell>| ProfileMeasurements {
            cells: cells.clone(),
            unbatched,
            mixes: vec![mix([1.0; 3])],
            reads: crate::profile::read_cells::some(),
        };
        for unbatched in [
            vec![],
            vec![alone(Durability::InMemory, 64, 1.0)],
            both.map(|one| alone(one, 65, 1.0)).to_vec(),
            both.map(|one| cell(one, 64, 1.0)).to_vec(),
        ] {
            let problem = profile(&measured(unbatched), &about()).unwrap_err();
            assert!(problem.contains("the cost of a batch is unknown"), "{problem}");
        }
    }

    #[test]
    fn cells_without_roles_give_no_profile() {
        let mut several = cell(Durability::InMemory, 64, 1.0);
        several.roles.clear();
        assert!(fit(vec![several], &[mix([1.0; 3])]).is_err());
        assert!(
            fit(vec![cell(Durability::InMemory, 64, 1.0)], &[mix([1.0; 3])]).is_err(),
            "persistent is missing"
        );
    }
}
