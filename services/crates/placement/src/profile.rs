//! The cost profile: the cost of one append for each role, and of one read (Filo §6.1.1). Format: `profiles/README.md`.

use quorate_types::cost::{Budget, EntryCost, ShortBatch};
use quorate_types::limits::SINGLE_ENTRY_APPENDS_PER_S;
pub use quorate_types::machine::Machine;
use quorate_types::{Durability, Role, Sla, Space};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

use crate::amounts::Amounts;
pub use crate::curve::ProfileError;
use crate::curve::{BYTES_MAX, CPU_NS_MAX, Point, error, milli_at, validate_curve};
use crate::latency::Latencies;
use crate::reads::{ReadCosts, ReadCurves};

/// A profile file, validated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    format: u32,
    pub version: String,
    pub provisional: bool,
    pub source: String,
    /// The machine it was measured on, and the version of its servers; an estimate has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers_version: Option<String>,
    pub safety_factor: f64,
    shard_cores: f64,
    network: Network,
    storage: Storage,
    cpu: Cpu,
    /// Commit latencies at the head of a server that carries what admission may promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<Latencies>,
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
    /// Reads do not depend on durability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<ReadCurves>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Curves {
    head: Vec<Point>,
    follower: Vec<Point>,
    tail: Vec<Point>,
    /// The cost of a batch itself. The points include it, spread over `network.entries_per_batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_ns: Option<BatchNs>,
}

/// CPU of a batch beside its entries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchNs {
    head: u32,
    follower: u32,
    tail: u32,
}

/// The demand of each position of a group's chain, for its whole degree.
///
/// A degraded chain is charged by position as if it were whole. So a replacement that joins as the tail changes nothing for
/// the others; only the loss of a head makes a replica dearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleDemands(Vec<Amounts>);

impl RoleDemands {
    /// The demands by position, head first.
    pub fn all(&self) -> &[Amounts] {
        &self.0
    }

    pub fn at(&self, position: usize) -> Amounts {
        self.0[position]
    }

    /// The same with this space for each replica.
    pub fn with_space(self, space: Space) -> Self {
        Self(self.0.into_iter().map(|one| one.with_space(space)).collect())
    }

    /// Whether they are of a version that admitted no memory and no disk: each replica takes some memory.
    pub fn lacks_space(&self) -> bool {
        self.0.iter().any(|one| one.space().memory_bytes == 0)
    }

    /// The demand of the chain's end, for which replacements are elected.
    pub fn tail(&self) -> Amounts {
        *self.0.last().expect("a degree is at least 1")
    }
}

/// The formats that this version reads. The second has `machine`, `servers_version` and `busiest_ns`, the third
/// `batch_ns`, the fourth `cpu.read`.
const FORMATS: std::ops::RangeInclusive<u32> = 1..=4;
/// Profiles name the machine they were measured on from this format on.
const FORMAT_WITH_MACHINE: u32 = 2;
/// Profiles name the cost of a batch itself from this format on; in older ones batches cost nothing.
const FORMAT_WITH_BATCHES: u32 = 3;
/// Measured profiles have the cost of reads from this format on. With older ones reads cost what the default profile
/// estimates.
const FORMAT_WITH_READS: u32 = 4;

// Bounds beyond any server, so that products of accepted numbers do not overflow.
const SHARD_CORES_MAX: f64 = 1_024.0;
const ENTRIES_MAX: u32 = 1 << 20;
const WRITES_MAX: u32 = 64;

impl Profile {
    /// The profile in use when none is named: an estimate, marked as one.
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
            "this version reads formats 1 to 4",
        )?;
        let measured = self.machine.is_some() && self.servers_version.is_some();
        check(
            self.provisional || self.format < FORMAT_WITH_MACHINE || measured,
            "machine",
            "a measured profile must have machine and servers_version",
        )?;
        check(
            (1..=64).contains(&self.version.len()),
            "version",
            "must have 1 to 64 characters",
        )?;
        check(
            !self.source.trim().is_empty(),
            "source",
            "must name the origin of the numbers",
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
            validate_batch(&format!("cpu.{mode}.batch_ns"), curves.batch_ns, self.format)?;
        }
        self.validate_reads()?;
        self.latency.as_ref().map_or(Ok(()), Latencies::validate)
    }

    fn validate_reads(&self) -> Result<(), ProfileError> {
        match &self.cpu.read {
            Some(curves) => curves.validate(),
            None if self.format < FORMAT_WITH_READS => Ok(()),
            None => Err(error(
                "cpu.read",
                "format 4 needs it: measure with `make profile`",
            )),
        }
    }

    /// Why the profile does not match a server with this machine and version, if it does not. An estimate matches all
    /// servers. A server that does not name its machine is judged by its version alone.
    pub fn mismatch(&self, machine: Option<&Machine>, version: &str) -> Option<String> {
        if let (Some(own), Some(machine)) = (&self.machine, machine)
            && own != machine
        {
            return Some(format!("it was measured on {own}, and this is {machine}"));
        }
        let other = self.servers_version.as_ref().filter(|own| *own != version)?;
        Some(format!(
            "servers of version {other} were measured, and this is {version}"
        ))
    }

    /// Whether a mismatch can be found: an estimate matches all servers, and the first format names no machine.
    pub fn knows_its_machine(&self) -> bool {
        self.provisional || self.machine.is_some()
    }

    /// The bytes of one storage operation.
    pub fn io_bytes(&self) -> u32 {
        self.storage.io_bytes
    }

    /// The demand vectors of an SLA's replicas, head first: cost of one append times the rate, in batches as they were
    /// measured. [`SINGLE_ENTRY_APPENDS_PER_S`] of them may come alone. Each replica has its part of the reads. The latency
    /// class adds its headroom.
    pub fn demands(&self, sla: &Sla) -> RoleDemands {
        let degree = usize::from(sla.replication_degree);
        let space = sla.terms().space();
        let reads = self.reads().reserved_milli(sla);
        let demand = |position: usize| {
            let appends = self.reserved_milli(sla, role_at(position, degree));
            let taken = |i: usize| {
                let milli = appends[i].saturating_add(reads[i]);
                milli.div_ceil(1_000).saturating_mul(sla.latency.headroom())
            };
            Amounts::new(std::array::from_fn(taken), space)
        };
        RoleDemands((0..degree).map(demand).collect())
    }

    /// The cost of reads; the default profile's where this one is older.
    fn reads(&self) -> ReadCosts<'_> {
        static ESTIMATE: LazyLock<Option<ReadCurves>> = LazyLock::new(|| Profile::default_profile().cpu.read);
        let curves = self.cpu.read.as_ref().or(ESTIMATE.as_ref());
        ReadCosts {
            curves: curves.expect("the default profile has reads"),
            page_header_bytes: self.network.batch_header_bytes,
            page_entries: self.network.entries_per_batch,
            io_bytes: self.storage.io_bytes,
        }
    }

    /// The rate of appends that one replica reserves, in thousandths of tokens each second.
    fn reserved_milli(&self, sla: &Sla, role: Role) -> [u64; 3] {
        let cost = self.append_milli(sla.durability, role, sla.request_size_bytes);
        let alone = self.short_batch(sla.durability, role).of(1);
        let alone_per_s = sla.rate_per_s.min(SINGLE_ENTRY_APPENDS_PER_S);
        std::array::from_fn(|i| {
            let entries = cost[i].saturating_mul(sla.rate_per_s);
            entries.saturating_add(alone[i].saturating_mul(alone_per_s))
        })
    }

    /// The additional cost of a batch with fewer entries than the measured ones.
    fn short_batch(&self, durability: Durability, role: Role) -> ShortBatch {
        let Some(batch_ns) = self.curves(durability).batch_ns else {
            return ShortBatch::default();
        };
        let entries = self.network.entries_per_batch;
        let each = |milli: u64| milli / u64::from(entries);
        let cpu_ns = match role {
            Role::Head | Role::Sole => batch_ns.head,
            Role::Follower => batch_ns.follower,
            _ => batch_ns.tail,
        };
        let network = self.network.batch_milli(role);
        ShortBatch {
            entries,
            lacking_milli: [each(u64::from(cpu_ns) * 1_000), each(network), 0],
        }
    }

    /// The additional cost of an append in batches of `batch_entries`, beside [`Profile::request_milli`]. One entry for each
    /// replica, head first, in thousandths of tokens.
    pub fn short_milli(&self, sla: &Sla, batch_entries: f64) -> Vec<[f64; 3]> {
        let degree = usize::from(sla.replication_degree);
        let each = |position| {
            let short = self.short_batch(sla.durability, role_at(position, degree));
            let lacking = (f64::from(short.entries) - batch_entries).max(0.0);
            short
                .lacking_milli
                .map(|milli| milli as f64 * lacking / batch_entries)
        };
        (0..degree).map(each).collect()
    }

    /// The cost of one request for each replica, head first, in thousandths of tokens: the unit of burst capacity.
    pub fn request_milli(&self, sla: &Sla) -> Vec<[u64; 3]> {
        let degree = usize::from(sla.replication_degree);
        let cost =
            |position| self.append_milli(sla.durability, role_at(position, degree), sla.request_size_bytes);
        (0..degree).map(cost).collect()
    }

    /// The largest rate at which one shard can serve the group, whatever the fleet has. Its reads and the additional cost
    /// of appends that may come alone are subtracted first.
    pub fn shard_peak_per_s(&self, sla: &Sla) -> u64 {
        let degree = usize::from(sla.replication_degree);
        let whole_ps = self.shard_cores * self.safety_factor * 1e12 / sla.latency.headroom() as f64;
        let shard_ps = (whole_ps - self.reads().reserved_milli(sla)[0] as f64).max(0.0);
        let peak_per_s = |position: usize| {
            let role = role_at(position, degree);
            let points = self.curve(sla.durability, role);
            let append_ps = milli_at(points, sla.request_size_bytes, false, |point| {
                (point.size_bytes, point.busiest_ns())
            }) as f64;
            let alone_ps = self.short_batch(sla.durability, role).of(1)[0] as f64;
            // A shard that cannot pass so many has all of them come alone.
            let all_alone = shard_ps / (append_ps + alone_ps);
            let alone_per_s = SINGLE_ENTRY_APPENDS_PER_S as f64;
            match all_alone < alone_per_s {
                true => all_alone,
                false => (shard_ps - alone_ps * alone_per_s) / append_ps,
            }
        };
        let least = (0..degree).map(peak_per_s).fold(f64::INFINITY, f64::min);
        least.floor() as u64
    }

    /// p99 of commit latency at a loaded head, for requests of the SLA's size; `None`: it was not measured.
    pub fn commit_p99_us(&self, sla: &Sla) -> Option<u64> {
        let latency = self.latency.as_ref()?;
        latency.p99_us(sla.durability, sla.request_size_bytes)
    }

    /// The budget of the group's token buckets: the head's cost function and reserved rate, and the cost of a request for
    /// the other replicas.
    pub fn budget(&self, sla: &Sla) -> Budget {
        let degree = usize::from(sla.replication_degree);
        let head = role_at(0, degree);
        let reserved = |position| self.reserved_milli(sla, role_at(position, degree));
        let has_batches = self.curves(sla.durability).batch_ns.is_some();
        Budget {
            tokens_per_s_milli: self.reserved_milli(sla, head),
            replica_milli: self.request_milli(sla),
            // A profile without batches reserves the rate everywhere: the budget is that of earlier versions.
            replica_reserved_milli: (0..degree).filter(|_| has_batches).map(reserved).collect(),
            short_batch: self.short_batch(sla.durability, head),
            reads: Some(Box::new(self.reads().budget(sla))),
            ..Budget::for_rate(sla.rate_per_s, sla.request_size_bytes, self.append_cost(sla))
        }
    }

    /// The head's cost as a line through the declared size, at which it is exact.
    fn append_cost(&self, sla: &Sla) -> EntryCost {
        let role = role_at(0, usize::from(sla.replication_degree));
        let cost_of = |size_bytes| self.append_milli(sla.durability, role, size_bytes);
        let declared = cost_of(sla.request_size_bytes);
        let points = self.curve(sla.durability, role);
        let mut fixed_milli = cost_of(1);
        // The curve's first segment, extended to size 0, is the cost of an append without its bytes.
        fixed_milli[0] = milli_at(&points[..2], 0, true, |point| (point.size_bytes, point.cpu_ns))
            .min(declared[0])
            .max(1);
        fixed_milli[1] -= u64::from(copies(role)) * 1_000;
        let per_byte =
            |i: usize| (declared[i] - fixed_milli[i].min(declared[i])) / u64::from(sla.request_size_bytes);
        let per_byte_milli = std::array::from_fn(per_byte);
        // The remainder of the division goes to the fixed part, so the line is exact at the declared size.
        let size = u64::from(sla.request_size_bytes);
        let fixed_milli = std::array::from_fn(|i| declared[i] - per_byte_milli[i] * size);
        EntryCost {
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

    fn curves(&self, durability: Durability) -> &Curves {
        match durability {
            Durability::InMemory => &self.cpu.in_memory,
            Durability::Persistent => &self.cpu.persistent,
        }
    }

    fn curve(&self, durability: Durability, role: Role) -> &[Point] {
        let curves = self.curves(durability);
        match role {
            Role::Head | Role::Sole => &curves.head,
            Role::Follower => &curves.follower,
            Role::Tail => &curves.tail,
            Role::Learner | Role::None => unreachable!("a demand is for a place in the chain"),
        }
    }
}

impl Network {
    /// One batch's headers and acknowledgements, in thousandths of bytes.
    fn batch_milli(&self, role: Role) -> u64 {
        let headers = u64::from(copies(role)) * u64::from(self.batch_header_bytes);
        let acks = u64::from(acks(role)) * u64::from(self.ack_bytes);
        (headers + acks) * 1_000
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

/// The number of times the payload crosses this role's network interface.
fn copies(role: Role) -> u32 {
    match role {
        Role::Head | Role::Follower => 2,
        _ => 1,
    }
}

/// The same for acknowledgements: the tail's to the head, the head's to the client.
fn acks(role: Role) -> u32 {
    match role {
        Role::Head => 2,
        Role::Follower => 0,
        _ => 1,
    }
}

fn validate_batch(field: &str, batch_ns: Option<BatchNs>, format: u32) -> Result<(), ProfileError> {
    match batch_ns {
        None if format >= FORMAT_WITH_BATCHES => {
            Err(error(field, "format 3 needs it: measure with `make profile`"))
        }
        Some(_) if format < FORMAT_WITH_BATCHES => Err(error(field, "is of format 3")),
        Some(ns) if [ns.head, ns.follower, ns.tail].iter().any(|ns| *ns > CPU_NS_MAX) => {
            Err(error(field, "must be 0 to 1000000000 for each role"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
