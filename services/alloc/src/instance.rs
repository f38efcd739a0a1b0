//! The instance as it is written. Vectors are `[cpu, network, storage IO]`: cores, bytes/s, operations/s.

use quorate_types::Durability;
use schemars::JsonSchema;
use serde::Deserialize;

/// Servers, applicants who want a place, failed replicas that need one, tenants who have one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    pub servers: Vec<Server>,
    /// Share of each server that is left unallocated for replacements.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 0.999))]
    pub recovery_headroom: f64,
    #[serde(default)]
    pub applicants: Vec<Applicant>,
    #[serde(default)]
    pub failed: Vec<Failed>,
    #[serde(default)]
    pub tenants: Vec<Tenant>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub id: String,
    /// What may be promised: cores, bytes/s in and out, operations/s.
    #[schemars(length(equal = 3), inner(range(min = 0.0, max = 1e9)))]
    pub capacity: Vec<f64>,
    /// Replicas of one applicant are put into different ones when possible.
    pub failure_domain: Option<String>,
    /// Kept for failed replicas.
    #[serde(default)]
    pub auxiliary: bool,
}

/// `replicas` with `sla_per_s`, or `sla`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Applicant {
    pub id: String,
    /// Demand of each replica at the whole SLA, the head first.
    #[schemars(inner(length(equal = 3), inner(range(min = 0.0, max = 1e9))))]
    pub replicas: Option<Vec<Vec<f64>>>,
    /// Requests/s that `replicas` are the demand of: the largest rate that fits is told in the same.
    #[schemars(range(min = 1))]
    pub sla_per_s: Option<u64>,
    pub sla: Option<Sla>,
}

/// Costs come from the profile.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sla {
    #[schemars(with = "DurabilityName")]
    pub durability: Durability,
    #[schemars(range(min = 1, max = 7))]
    pub replication_degree: u8,
    #[schemars(range(min = 1))]
    pub request_size_bytes: u32,
    #[schemars(range(min = 1))]
    pub rate_per_s: u64,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub enum DurabilityName {
    InMemory,
    Persistent,
}

/// A failed replica: it is placed before any applicant, on auxiliary servers too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub id: String,
    #[schemars(length(equal = 3), inner(range(min = 0.0, max = 1e9)))]
    pub demand: Vec<f64>,
    /// The servers that its group still has.
    pub members: Vec<String>,
}

/// `request` with `reserved_per_s`, or `sla`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    pub id: String,
    /// Its servers, the head first.
    pub placement: Vec<String>,
    /// Cost of one request at each of them: core-seconds, bytes, operations.
    #[schemars(inner(length(equal = 3), inner(range(min = 0.0, max = 1e9))))]
    pub request: Option<Vec<Vec<f64>>>,
    /// Requests/s that it was promised.
    pub reserved_per_s: Option<u64>,
    pub sla: Option<Sla>,
    /// Requests/s of its reservation that it uses now; all of them when missing.
    pub used_per_s: Option<u64>,
    /// Requests/s that it wants above its reservation; none when missing.
    #[serde(default)]
    pub extra: Extra,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Extra {
    #[default]
    None,
    /// As much as there is.
    All,
    PerS(u64),
}
