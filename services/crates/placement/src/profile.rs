//! The cost profile: what one append costs each role (Filo §6.1.1). Format: `profiles/README.md`.

use quorate_types::cost::{AppendCost, Budget};
pub use quorate_types::machine::Machine;
use quorate_types::{Durability, Role, Sla};
use serde::{Deserialize, Serialize};

use crate::amounts::Amounts;

/// A profile file, validated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    format: u32,
    pub version: String,
    pub provisional: bool,
    pub source: String,
    /// Where and of what it was measured; an estimate has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers_version: Option<String>,
    pub safety_factor: f64,
    shard_cores: f64,
    network: Network,
    storage: Storage,
    cpu: Cpu,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    batch_header_bytes: u32,
    ack_bytes: u32,
    entries_per_batch: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Storage {
    io_bytes: u32,
    writes: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cpu {
    in_memory: Curves,
    persistent: Curves,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Curves {
    head: Vec<Point>,
    follower: Vec<Point>,
    tail: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    size_bytes: u32,
    cpu_ns: u32,
    /// Of it, what falls to the busiest thread: that is what bounds one group. All of it when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    busiest_ns: Option<u32>,
}

/// The profile file cannot be used: which field, and why.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cost profile: {field}: {problem}")]
pub struct ProfileError {
    pub field: String,
    pub problem: String,
}

/// What each position of a group's chain is charged, for its whole degree.
///
/// A degraded chain is charged by position as if it were whole, so a replacement that joins as the tail
/// changes nothing for the others; only losing a head makes a replica dearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleDemands(Vec<Amounts>);

impl RoleDemands {
    /// By position, head first.
    pub fn all(&self) -> &[Amounts] {
        &self.0
    }

    pub fn at(&self, position: usize) -> Amounts {
        self.0[position]
    }

    /// What a replacement is elected for: the end of the chain.
    pub fn tail(&self) -> Amounts {
        *self.0.last().expect("a degree is at least 1")
    }
}

/// The formats that this version reads. The second has `machine`, `servers_version` and `busiest_ns`.
const FORMATS: std::ops::RangeInclusive<u32> = 1..=2;
/// From this one on a profile says where it was measured.
const FORMAT_WITH_MACHINE: u32 = 2;

// What no server is, so that whatever passes can be multiplied.
const SHARD_CORES_MAX: f64 = 1_024.0;
const BYTES_MAX: u32 = 1 << 30;
const ENTRIES_MAX: u32 = 1 << 20;
const WRITES_MAX: u32 = 64;
/// One append: a second of CPU.
const CPU_NS_MAX: u32 = 1_000_000_000;
/// And beyond the largest measured size, ten.
const MILLI_MAX: i128 = 10_000_000_000_000;

impl Profile {
    /// The profile that is used when none is named: an estimate, and marked as one.
    pub fn default_profile() -> Self {
        Self::parse(include_str!("../profiles/default.json")).expect("the default profile is valid")
    }

    /// Parses and validates a profile file; the error names the field at fault.
    pub fn parse(json: &str) -> Result<Self, ProfileError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let profile: Self = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|e| error(e.path().to_string(), e.into_inner().to_string()))?;
        deserializer
            .end()
            .map_err(|e| error("(end of file)", e.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    fn validate(&self) -> Result<(), ProfileError> {
        let check =
            |ok: bool, field: &str, problem: &str| if ok { Ok(()) } else { Err(error(field, problem)) };
        check(
            FORMATS.contains(&self.format),
            "format",
            "this version reads formats 1 and 2",
        )?;
        let measured = self.machine.is_some() && self.servers_version.is_some();
        check(
            self.provisional || self.format < FORMAT_WITH_MACHINE || measured,
            "machine",
            "a profile that is no estimate must have machine and servers_version",
        )?;
        check(
            (1..=64).contains(&self.version.len()),
            "version",
            "must have 1 to 64 characters",
        )?;
        check(
            !self.source.trim().is_empty(),
            "source",
            "must say where the numbers come from",
        )?;
        let safe = self.safety_factor > 0.0 && self.safety_factor <= 1.0;
        check(safe, "safety_factor", "must be above 0 and at most 1")?;
        let cores = self.shard_cores > 0.0 && self.shard_cores <= SHARD_CORES_MAX;
        check(cores, "shard_cores", "must be above 0 and at most 1024")?;
        let (network, storage) = (&self.network, &self.storage);
        for (field, value, least, most) in [
            (
                "network.batch_header_bytes",
                network.batch_header_bytes,
                0,
                BYTES_MAX,
            ),
            ("network.ack_bytes", network.ack_bytes, 0, BYTES_MAX),
            (
                "network.entries_per_batch",
                network.entries_per_batch,
                1,
                ENTRIES_MAX,
            ),
            ("storage.io_bytes", storage.io_bytes, 512, BYTES_MAX),
            ("storage.writes", storage.writes, 1, WRITES_MAX),
        ] {
            let problem = format!("must be {least} to {most}");
            check((least..=most).contains(&value), field, &problem)?;
        }
        for (mode, curves) in [
            ("in_memory", &self.cpu.in_memory),
            ("persistent", &self.cpu.persistent),
        ] {
            for (role, points) in [
                ("head", &curves.head),
                ("follower", &curves.follower),
                ("tail", &curves.tail),
            ] {
                validate_curve(&format!("cpu.{mode}.{role}"), points)?;
            }
        }
        Ok(())
    }

    /// Why the profile is not that of a server with this machine and version, if it is not. Nothing is known of an
    /// estimate, and of a server that does not say what it runs on only its version.
    pub fn foreign(&self, machine: Option<&Machine>, version: &str) -> Option<String> {
        if let (Some(own), Some(machine)) = (&self.machine, machine)
            && own != machine
        {
            return Some(format!(
                "it was measured on {} × {}, and this is {} × {}",
                own.cores, own.cpu, machine.cores, machine.cpu
            ));
        }
        let other = self.servers_version.as_ref().filter(|own| *own != version)?;
        Some(format!(
            "servers of version {other} were measured, and this is {version}"
        ))
    }

    /// Whether it can be told from another machine's: an estimate is nobody's, and the first format does not say.
    pub fn knows_its_machine(&self) -> bool {
        self.provisional || self.machine.is_some()
    }

    /// How many bytes are one operation of storage.
    pub fn io_bytes(&self) -> u32 {
        self.storage.io_bytes
    }

    /// The demand vectors of an SLA's replicas, head first: cost of one append times the rate.
    pub fn demands(&self, sla: &Sla) -> RoleDemands {
        let degree = usize::from(sla.replication_degree);
        let demand = |position: usize| {
            let cost = self.append_milli(sla.durability, role_at(position, degree), sla.request_size_bytes);
            // Thousandths of tokens an append, times appends a second: tokens a second, rounded up.
            Amounts(cost.map(|milli| milli.saturating_mul(sla.rate_per_s).div_ceil(1_000)))
        };
        RoleDemands((0..degree).map(demand).collect())
    }

    /// Cost of one request of each replica, head first, in thousandths of tokens: what work conservation counts in.
    pub fn request_milli(&self, sla: &Sla) -> Vec<[u64; 3]> {
        let degree = usize::from(sla.replication_degree);
        let cost =
            |position| self.append_milli(sla.durability, role_at(position, degree), sla.request_size_bytes);
        (0..degree).map(cost).collect()
    }

    /// The largest rate at which one shard can serve the group, whatever the fleet has.
    pub fn shard_peak_per_s(&self, sla: &Sla) -> u64 {
        let degree = usize::from(sla.replication_degree);
        let dearest_ps = (0..degree)
            .map(|position| {
                let points = self.curve(sla.durability, role_at(position, degree));
                milli_at(points, sla.request_size_bytes, false, |point| {
                    (point.size_bytes, point.busiest_ns())
                })
            })
            .max()
            .expect("a degree is at least 1");
        (self.shard_cores * self.safety_factor * 1e12 / dearest_ps as f64).floor() as u64
    }

    /// The budget of the group's token buckets: the head's cost function, the declared rate, and what a request costs
    /// the other replicas.
    pub fn budget(&self, sla: &Sla) -> Budget {
        Budget {
            replica_milli: self.request_milli(sla),
            ..Budget::for_rate(sla.rate_per_s, sla.request_size_bytes, self.append_cost(sla))
        }
    }

    /// The head's cost as a line through the declared size, where it is exact.
    fn append_cost(&self, sla: &Sla) -> AppendCost {
        let role = role_at(0, usize::from(sla.replication_degree));
        let cost_of = |size_bytes| self.append_milli(sla.durability, role, size_bytes);
        let declared = cost_of(sla.request_size_bytes);
        let points = self.curve(sla.durability, role);
        let mut fixed_milli = cost_of(1);
        // The curve's first segment, drawn on to size 0, is what an append costs without its bytes.
        fixed_milli[0] = milli_at(&points[..2], 0, true, |point| (point.size_bytes, point.cpu_ns))
            .min(declared[0])
            .max(1);
        fixed_milli[1] -= u64::from(copies(role)) * 1_000;
        let per_byte =
            |i: usize| (declared[i] - fixed_milli[i].min(declared[i])) / u64::from(sla.request_size_bytes);
        let per_byte_milli = std::array::from_fn(per_byte);
        // What the division left over goes to the fixed part, so that the declared size costs what it costs.
        let size = u64::from(sla.request_size_bytes);
        let fixed_milli = std::array::from_fn(|i| declared[i] - per_byte_milli[i] * size);
        AppendCost {
            fixed_milli,
            per_byte_milli,
        }
    }

    /// Cost of one append in thousandths of tokens: ps of CPU, 1/1000 bytes, 1/1 000 000 operations.
    fn append_milli(&self, durability: Durability, role: Role, size_bytes: u32) -> [u64; 3] {
        let cpu_ps = milli_at(self.curve(durability, role), size_bytes, false, |point| {
            (point.size_bytes, point.cpu_ns)
        });
        let network = &self.network;
        let spread = |bytes: u32| u64::from(bytes) * 1_000 / u64::from(network.entries_per_batch);
        let copy_milli = u64::from(size_bytes) * 1_000 + spread(network.batch_header_bytes);
        let network_milli =
            u64::from(copies(role)) * copy_milli + u64::from(acks(role)) * spread(network.ack_bytes);
        let storage_milli = match durability {
            Durability::InMemory => 0,
            Durability::Persistent => {
                let operations = size_bytes.div_ceil(self.storage.io_bytes);
                u64::from(operations) * u64::from(self.storage.writes) * 1_000_000
            }
        };
        [cpu_ps, network_milli, storage_milli]
    }

    fn curve(&self, durability: Durability, role: Role) -> &[Point] {
        let curves = match durability {
            Durability::InMemory => &self.cpu.in_memory,
            Durability::Persistent => &self.cpu.persistent,
        };
        match role {
            Role::Head | Role::Sole => &curves.head,
            Role::Follower => &curves.follower,
            Role::Tail => &curves.tail,
            Role::Learner | Role::None => unreachable!("a demand is for a place in the chain"),
        }
    }
}

/// The role of a position in a whole chain.
pub fn role_at(position: usize, degree: usize) -> Role {
    match position {
        0 if degree == 1 => Role::Sole,
        0 => Role::Head,
        _ if position + 1 == degree => Role::Tail,
        _ => Role::Follower,
    }
}

/// How often the payload crosses this role's network interface.
fn copies(role: Role) -> u32 {
    match role {
        Role::Head | Role::Follower => 2,
        _ => 1,
    }
}

/// How often an acknowledgement does: the tail's to the head, the head's to the client.
fn acks(role: Role) -> u32 {
    match role {
        Role::Head => 2,
        Role::Follower => 0,
        _ => 1,
    }
}

/// Thousandths of what `point` gives for an append of this size: interpolated; the last segment goes on, the first when
/// `extend_down`.
fn milli_at<P>(points: &[P], size_bytes: u32, extend_down: bool, point: fn(&P) -> (u32, u32)) -> u64 {
    let (first_size, first) = point(&points[0]);
    if size_bytes <= first_size && !extend_down {
        return u64::from(first) * 1_000;
    }
    let segment = points.windows(2).find(|pair| size_bytes <= point(&pair[1]).0);
    let pair = segment.unwrap_or(&points[points.len() - 2..]);
    let ((low_size, low), (high_size, high)) = (point(&pair[0]), point(&pair[1]));
    let rise_milli = (i64::from(high) - i64::from(low)) * 1_000;
    let run = i64::from(high_size - low_size);
    let beyond = i64::from(size_bytes) - i64::from(low_size);
    let milli = i128::from(low) * 1_000 + i128::from(rise_milli) * i128::from(beyond) / i128::from(run);
    u64::try_from(milli.clamp(1, MILLI_MAX)).expect("it is clamped to 64 bits")
}

impl Point {
    fn busiest_ns(&self) -> u32 {
        self.busiest_ns.unwrap_or(self.cpu_ns)
    }
}

fn validate_curve(field: &str, points: &[Point]) -> Result<(), ProfileError> {
    if points.len() < 2 {
        return Err(error(field, "needs at least two points"));
    }
    for (i, point) in points.iter().enumerate() {
        if !(1..=BYTES_MAX).contains(&point.size_bytes) {
            return Err(error(
                format!("{field}[{i}].size_bytes"),
                "must be 1 to 1073741824",
            ));
        }
        if !(1..=CPU_NS_MAX).contains(&point.cpu_ns) {
            return Err(error(format!("{field}[{i}].cpu_ns"), "must be 1 to 1000000000"));
        }
        if i > 0 && point.size_bytes <= points[i - 1].size_bytes {
            return Err(error(
                format!("{field}[{i}].size_bytes"),
                "must be above the point before",
            ));
        }
        if i > 0 && point.cpu_ns < points[i - 1].cpu_ns {
            return Err(error(
                format!("{field}[{i}].cpu_ns"),
                "must not be below the point before",
            ));
        }
        let busiest = point.busiest_ns();
        if busiest == 0 || busiest > point.cpu_ns {
            return Err(error(
                format!("{field}[{i}].busiest_ns"),
                "must be above 0, and at most cpu_ns",
            ));
        }
        if i > 0 && busiest < points[i - 1].busiest_ns() {
            return Err(error(
                format!("{field}[{i}].busiest_ns"),
                "must not be below the point before",
            ));
        }
    }
    Ok(())
}

fn error(field: impl Into<String>, problem: impl Into<String>) -> ProfileError {
    ProfileError {
        field: field.into(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sla(durability: Durability, degree: u8, size: u32, rate: u64) -> Sla {
        let json = serde_json::json!({
            "durability": durability, "replication_degree": degree, "request_size_bytes": size, "rate_per_s": rate
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_default_is_valid_and_marked_as_an_estimate() {
        let profile = Profile::default_profile();
        assert!(profile.provisional && profile.source.contains("Estimate"));
    }

    #[test]
    fn demands_follow_roles_sizes_and_durability() {
        let profile = Profile::default_profile();
        let demands = profile.demands(&sla(Durability::InMemory, 3, 64, 1_000));
        // 1.5 µs, 1.2 µs, 1.2 µs; 64 + 128/4 bytes a copy, 32/4 an ack.
        assert_eq!(demands.at(0), Amounts([1_500_000, 1_000 * (2 * 96 + 2 * 8), 0]));
        assert_eq!(demands.at(1), Amounts([1_200_000, 1_000 * 2 * 96, 0]));
        assert_eq!(demands.at(2), Amounts([1_200_000, 1_000 * (96 + 8), 0]));
        let sole = profile.demands(&sla(Durability::Persistent, 1, 64, 1_000));
        assert_eq!(sole.all(), [Amounts([1_950_000, 1_000 * (96 + 8), 2_000_000])]);
        for (size, operations) in [(8_192, 2), (8_193, 4), (16_384, 4), (1 << 20, 256)] {
            let demands = profile.demands(&sla(Durability::Persistent, 3, size, 1));
            assert_eq!(demands.tail().0[2], operations * 1_000, "{size}");
        }
        // Interpolated between 64 and 256, and beyond 32768.
        assert_eq!(
            profile.demands(&sla(Durability::InMemory, 3, 164, 1_000)).at(0).0[0],
            1_600_000
        );
        assert_eq!(
            profile.demands(&sla(Durability::InMemory, 3, 132_768, 1)).at(0).0[0],
            134_204
        );
        assert_eq!(
            profile.demands(&sla(Durability::InMemory, 3, 1, 1)).at(0).0[0],
            1_500
        );
    }

    #[test]
    fn one_shard_bounds_a_group() {
        let profile = Profile::default_profile();
        assert_eq!(
            profile.shard_peak_per_s(&sla(Durability::InMemory, 3, 64, 1)),
            533_333
        );
    }

    #[test]
    fn the_busiest_thread_bounds_a_group_and_all_threads_are_charged() {
        let mut json: serde_json::Value =
            serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
        let sla = sla(Durability::InMemory, 3, 64, 1_000);
        let plain = Profile::parse(&json.to_string()).unwrap();
        for role in ["head", "follower", "tail"] {
            for point in json["cpu"]["in_memory"][role].as_array_mut().unwrap() {
                point["busiest_ns"] = (point["cpu_ns"].as_u64().unwrap() / 2).into();
            }
        }
        let halved = Profile::parse(&json.to_string()).unwrap();
        assert_eq!(halved.demands(&sla), plain.demands(&sla));
        assert_eq!(halved.shard_peak_per_s(&sla), 1_066_666);
        json["cpu"]["in_memory"]["tail"][0]["busiest_ns"] = 1_201.into();
        let problem = Profile::parse(&json.to_string()).unwrap_err();
        assert_eq!(problem.field, "cpu.in_memory.tail[0].busiest_ns");
    }

    #[test]
    fn a_measured_profile_knows_its_machine_and_servers() {
        let mut json: serde_json::Value =
            serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
        let here = Machine::of_cpuinfo("processor\t: 0\nmodel name\t: Some: CPU 7\n", 16);
        assert_eq!((here.cpu.as_str(), here.cores), ("Some: CPU 7", 16));
        assert_eq!(
            Profile::default_profile().foreign(Some(&here), "1.0"),
            None,
            "an estimate is nobody's"
        );
        json["format"] = 2.into();
        json["provisional"] = false.into();
        assert_eq!(Profile::parse(&json.to_string()).unwrap_err().field, "machine");
        json["machine"] = serde_json::json!({"cpu": "Some: CPU 7", "cores": 16});
        json["servers_version"] = "1.0".into();
        let measured = Profile::parse(&json.to_string()).unwrap();
        assert_eq!(measured.foreign(Some(&here), "1.0"), None);
        assert_eq!(
            measured.foreign(None, "1.0"),
            None,
            "an older server does not say"
        );
        assert!(
            measured
                .foreign(Some(&here), "1.1")
                .unwrap()
                .contains("version 1.0")
        );
        let other = Machine { cores: 8, ..here };
        assert!(
            measured
                .foreign(Some(&other), "1.0")
                .unwrap()
                .contains("16 × Some: CPU 7")
        );
        let again: Profile = serde_json::from_str(&serde_json::to_string(&measured).unwrap()).unwrap();
        assert_eq!(again, measured);
    }

    #[test]
    fn a_budget_passes_the_declared_rate_and_prices_other_sizes() {
        let profile = Profile::default_profile();
        for durability in [Durability::InMemory, Durability::Persistent] {
            for size in [1, 64, 1_000, 8_192, 100_000, 1 << 20] {
                let sla = sla(durability, 3, size, 7_919);
                let budget = profile.budget(&sla);
                let demand = profile.demands(&sla).at(0);
                let tokens = budget.tokens_per_s_milli.map(|milli| milli.div_ceil(1_000));
                assert_eq!(
                    Amounts(tokens),
                    demand,
                    "what is promised is what is reserved: {durability:?} {size}"
                );
                let small = budget.cost.of(1, 1);
                let large = budget.cost.of(1, 1 << 20);
                assert!(
                    (0..2).all(|i| small[i] <= large[i] && large[i] >= (1 << 20)),
                    "{small:?} {large:?}"
                );
            }
        }
        // Declared 1 MiB: a small entry costs little, though not nothing, of each resource.
        let cost = profile.budget(&sla(Durability::Persistent, 3, 1 << 20, 10)).cost;
        let (small, declared) = (cost.of(1, 64), cost.of(1, 1 << 20));
        assert!(
            (0..3).all(|i| small[i] > 0 && small[i] * 100 < declared[i]),
            "{small:?} {declared:?}"
        );
    }

    #[test]
    fn a_bad_profile_names_the_field() {
        let good: serde_json::Value = serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
        let cases = [
            ("/format", serde_json::json!(3), "format"),
            ("/safety_factor", serde_json::json!(1.5), "safety_factor"),
            ("/shard_cores", serde_json::json!(0), "shard_cores"),
            ("/network/ack_bytes", serde_json::json!(-1), "network.ack_bytes"),
            (
                "/network/entries_per_batch",
                serde_json::json!(0),
                "network.entries_per_batch",
            ),
            ("/storage/io_bytes", serde_json::json!("8k"), "storage.io_bytes"),
            ("/cpu/in_memory/head", serde_json::json!([]), "cpu.in_memory.head"),
            (
                "/cpu/persistent/tail/2/size_bytes",
                serde_json::json!(64),
                "cpu.persistent.tail[2].size_bytes",
            ),
            (
                "/cpu/persistent/tail/1/cpu_ns",
                serde_json::json!(1),
                "cpu.persistent.tail[1].cpu_ns",
            ),
            ("/source", serde_json::json!(" "), "source"),
            ("/storage/writes", serde_json::json!(u32::MAX), "storage.writes"),
            ("/shard_cores", serde_json::json!(1e300), "shard_cores"),
            (
                "/cpu/in_memory/head/0/cpu_ns",
                serde_json::json!(u32::MAX),
                "cpu.in_memory.head[0].cpu_ns",
            ),
        ];
        for (pointer, value, field) in cases {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert_eq!(Profile::parse(&bad.to_string()).unwrap_err().field, field);
        }
        let mut bad = good.clone();
        bad["network"]["colour"] = serde_json::json!("red");
        assert!(
            Profile::parse(&bad.to_string())
                .unwrap_err()
                .problem
                .contains("colour")
        );
        assert!(Profile::parse("{}").is_err() && Profile::parse("").is_err());
    }
}
