//! A customer's request, and the answer. JSON shapes: `docs/internals/coordinator.md`.

use serde::{Deserialize, Serialize};

use crate::config::Role;
use crate::cost::ResourceVector;
use crate::durability::Durability;
use crate::latency::Latency;
use crate::limits;
use crate::space::{Space, Terms};

/// The admission request (Filo §3, equation 1): durability mode, degree, request size, throughput.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sla {
    pub durability: Durability,
    pub replication_degree: u8,
    /// Fewest replicas with which appends go on; `None`: a majority of the degree.
    #[serde(default)]
    pub min_replicas: Option<u8>,
    pub request_size_bytes: u32,
    /// Appends of `request_size_bytes` each second.
    pub rate_per_s: u64,
    /// Entries of `request_size_bytes` that readers get each second, from all replicas together; 0: reads have what is
    /// spare.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_rate_per_s: u64,
    #[serde(default = "default_region")]
    pub region: String,
    #[serde(default = "default_retention_bytes")]
    pub retention_bytes: u64,
    /// Entries older than this are discarded, however few bytes there are; `None`: age discards none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_age_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Latency::is_standard")]
    pub latency: Latency,
}

fn is_zero(rate_per_s: &u64) -> bool {
    *rate_per_s == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn moves_nothing(moves: &usize) -> bool {
    *moves == 0
}

fn default_region() -> String {
    "local".to_string()
}

fn default_retention_bytes() -> u64 {
    limits::RETENTION_BYTES_DEFAULT
}

impl Sla {
    /// The part of it that the space of its replicas follows from.
    pub fn terms(&self) -> Terms {
        Terms {
            durability: self.durability,
            retention_bytes: self.retention_bytes,
            request_size_bytes: self.request_size_bytes,
            rate_per_s: self.rate_per_s,
        }
    }

    /// The promised rates, for people.
    pub fn rates_in_words(&self) -> String {
        let reads = match self.read_rate_per_s {
            0 => String::new(),
            reads_per_s => format!(" and {reads_per_s} reads/s"),
        };
        let (appends_per_s, size_bytes) = (self.rate_per_s, self.request_size_bytes);
        format!("{appends_per_s} appends/s{reads} of {size_bytes} bytes")
    }

    /// Fewest live replicas with which the group accepts appends.
    pub fn min_replicas(&self) -> u8 {
        self.min_replicas.unwrap_or(self.replication_degree / 2 + 1)
    }

    /// The part of the reads that each replica serves. As few replicas as accept appends serve all reads.
    pub fn reads_per_replica_per_s(&self) -> u64 {
        self.read_rate_per_s
            .div_ceil(u64::from(self.min_replicas().max(1)))
    }

    /// The part of the SLA of a partitioned group that one partition has: rates are divided evenly, and earlier partitions have
    /// the rest; the retention is divided.
    pub fn part(&self, partition: u16, partitions: u16) -> Self {
        let rate_per_s = even_part(self.rate_per_s, partition, partitions);
        self.part_at(rate_per_s, partition, partitions)
    }

    /// The same with another rate.
    pub fn part_at(&self, rate_per_s: u64, partition: u16, partitions: u16) -> Self {
        let of = |whole: u64| even_part(whole, partition, partitions);
        Self {
            rate_per_s,
            read_rate_per_s: of(self.read_rate_per_s),
            retention_bytes: self.retention_bytes / u64::from(partitions),
            ..self.clone()
        }
    }

    /// The first field at fault and why, for an SLA that cannot be divided among so many partitions.
    pub fn validate_partitions(&self, partitions: u16) -> Result<(), (&'static str, String)> {
        if !(1..=limits::PARTITIONS_MAX).contains(&partitions) {
            return Err(("partitions", format!("must be 1 to {}", limits::PARTITIONS_MAX)));
        }
        self.validate()?;
        let count = u64::from(partitions);
        if self.rate_per_s < count {
            let message = format!("must be at least {count}, one for each partition");
            return Err(("rate_per_s", message));
        }
        if self.retention_bytes / count < limits::RETENTION_BYTES_MIN {
            let least = limits::RETENTION_BYTES_MIN * count;
            return Err((
                "retention_bytes",
                format!("must be at least {least} for {count} partitions"),
            ));
        }
        Ok(())
    }

    /// The first field at fault and why, for an SLA that no fleet could serve.
    pub fn validate(&self) -> Result<(), (&'static str, String)> {
        if !(1..=limits::REPLICATION_DEGREE_MAX).contains(&self.replication_degree) {
            return Err((
                "replication_degree",
                format!("must be 1 to {}", limits::REPLICATION_DEGREE_MAX),
            ));
        }
        if !(1..=self.replication_degree).contains(&self.min_replicas()) {
            return Err(("min_replicas", "must be 1 to replication_degree".to_string()));
        }
        if !(1..=limits::ENTRY_BYTES_MAX).contains(&self.request_size_bytes) {
            return Err((
                "request_size_bytes",
                format!("must be 1 to {}", limits::ENTRY_BYTES_MAX),
            ));
        }
        if !(1..=limits::RATE_PER_S_MAX).contains(&self.rate_per_s) {
            return Err(("rate_per_s", format!("must be 1 to {}", limits::RATE_PER_S_MAX)));
        }
        if self.read_rate_per_s > limits::RATE_PER_S_MAX {
            return Err((
                "read_rate_per_s",
                format!("must be 0 to {}", limits::RATE_PER_S_MAX),
            ));
        }
        if self.retention_bytes < limits::RETENTION_BYTES_MIN {
            return Err((
                "retention_bytes",
                format!("must be at least {}", limits::RETENTION_BYTES_MIN),
            ));
        }
        let ages = limits::RETENTION_AGE_S_MIN..=limits::RETENTION_AGE_S_MAX;
        if self.retention_age_s.is_some_and(|age_s| !ages.contains(&age_s)) {
            let (min, max) = (limits::RETENTION_AGE_S_MIN, limits::RETENTION_AGE_S_MAX);
            return Err(("retention_age_s", format!("must be {min} to {max}, or null")));
        }
        Ok(())
    }
}

fn even_part(whole: u64, partition: u16, partitions: u16) -> u64 {
    let (each, rest) = (whole / u64::from(partitions), whole % u64::from(partitions));
    each + u64::from(u64::from(partition) < rest)
}

/// A dry run of admission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quote {
    pub admissible: bool,
    /// Demand of each replica, head first.
    pub demand: Vec<ReplicaDemand>,
    pub total_demand: TotalDemand,
    /// The resource of which the group would take the largest share of the unallocated capacity.
    pub dominant_resource: ScarceResource,
    pub refusal: Option<Refusal>,
    pub profile_version: String,
    /// p99 of commit latency at the head that the profile was measured with, for this size and durability; `None` where it
    /// was not.
    pub commit_p99_us: Option<u64>,
    /// Different named failure domains of the servers that the replicas would get now; 0 in a refusal.
    pub failure_domains: usize,
    /// Replicas that move to other servers first, one after the other; the SLA begins after the last. 0: it begins at once.
    #[serde(default, skip_serializing_if = "moves_nothing")]
    pub moves: usize,
    /// The partitions of a group that has some, in order. `demand` is then that of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartDemand>,
}

/// A partition's part of the SLA, and the demand of all its replicas together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartDemand {
    pub sla: Sla,
    pub demand: TotalDemand,
}

/// The demand vector of one replica, with its role in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaDemand {
    pub role: Role,
    #[serde(flatten)]
    pub demand: ResourceVector,
    #[serde(flatten)]
    pub space: Space,
}

/// The demand of all replicas of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TotalDemand {
    #[serde(flatten)]
    pub demand: ResourceVector,
    #[serde(flatten)]
    pub space: Space,
}

impl std::iter::Sum for TotalDemand {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let none = Self {
            demand: ResourceVector::new(0.0, 0.0, 0.0),
            space: Space::default(),
        };
        parts.fold(none, |sum, part| Self {
            demand: sum.demand.plus(part.demand),
            space: Space {
                memory_bytes: sum.space.memory_bytes + part.space.memory_bytes,
                disk_bytes: sum.space.disk_bytes + part.space.disk_bytes,
            },
        })
    }
}

/// The reason why an SLA was not admitted, and the largest one that would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: RefusalReason,
    pub scarce_resource: ScarceResource,
    /// For people: the amount asked for, and the amount there is.
    pub message: String,
    /// The same SLA with a rate or a retention that would be admitted now; `None` when none was found.
    pub largest_sla_that_fits: Option<Sla>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    InsufficientCapacity,
    /// One group is served by one shard of a server; no fleet is large enough.
    BeyondShardPeak,
    TooFewServers,
    /// Servers have room, but as many groups as a server may host.
    TooManyGroups,
    UnknownRegion,
    /// The project's groups would reserve more than its guarantee allows them.
    BeyondGuarantee,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScarceResource {
    Cpu,
    Network,
    StorageIo,
    Memory,
    Disk,
    Servers,
    Shard,
    /// Places of groups: servers host as many as they may.
    Groups,
    /// Tokens of the project's guarantee.
    Guarantee,
}

impl ScarceResource {
    /// For people.
    pub fn in_words(self) -> &'static str {
        match self {
            ScarceResource::Cpu => "CPU",
            ScarceResource::Network => "network",
            ScarceResource::StorageIo => "storage IO",
            ScarceResource::Memory => "memory",
            ScarceResource::Disk => "disk",
            ScarceResource::Servers => "servers",
            ScarceResource::Shard => "time of one shard",
            ScarceResource::Groups => "places of groups",
            ScarceResource::Guarantee => "tokens of the project's guarantee",
        }
    }

    /// The rates in the order of [`crate::cost::RESOURCES`], then the space.
    pub const OF_SERVER: [ScarceResource; 5] = [
        ScarceResource::Cpu,
        ScarceResource::Network,
        ScarceResource::StorageIo,
        ScarceResource::Memory,
        ScarceResource::Disk,
    ];
}
