//! The form of an instance in JSON. Vectors are `[cpu, network, storage IO]`: cores, bytes/s, operations/s.

use quorate_types::limits::{ENTRY_BYTES_MAX, RATE_PER_S_MAX, REPLICATION_DEGREE_MAX, RETENTION_BYTES_MIN};
use quorate_types::{Durability, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{self, RATE_MAX_PER_S};

/// Servers, applicants that want a place, failed replicas that need one, tenants that have one. In each list an id names
/// one thing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    pub servers: Vec<ServerForm>,
    /// Share of each server that is left unallocated for replacements.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 0.999))]
    pub recovery_headroom: f64,
    #[serde(default)]
    pub applicants: Vec<ApplicantForm>,
    #[serde(default)]
    pub failed: Vec<FailedForm>,
    #[serde(default)]
    pub tenants: Vec<TenantForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub struct ServerForm {
    pub id: String,
    /// The amounts that may be promised: cores, bytes/s in and out, operations/s.
    #[schemars(schema_with = "limits::amounts")]
    pub capacity: Vec<f64>,
    /// Memory for replicas; no limit when missing.
    pub memory_bytes: Option<u64>,
    /// Disk for replicas; no limit when missing.
    pub disk_bytes: Option<u64>,
    /// Replicas of one applicant are put into different ones when possible.
    pub failure_domain: Option<String>,
    /// Reserved for failed replicas.
    #[serde(default)]
    pub auxiliary: bool,
}

impl ServerForm {
    pub fn room(&self) -> Room {
        Room {
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk_bytes,
        }
    }
}

/// `replicas` with `sla_per_s`, or `sla`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Applicant")]
pub struct ApplicantForm {
    pub id: String,
    /// Demand of each replica at the whole SLA, the head first.
    #[schemars(schema_with = "limits::replica_amounts")]
    pub replicas: Option<Vec<Vec<f64>>>,
    /// Requests/s that `replicas` are the demand of. An answer's largest rate that fits is in the same unit.
    #[schemars(range(min = 1, max = RATE_MAX_PER_S))]
    pub sla_per_s: Option<u64>,
    pub sla: Option<SlaForm>,
}

/// Costs come from the profile.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sla")]
pub struct SlaForm {
    #[schemars(with = "DurabilityName")]
    pub durability: Durability,
    #[schemars(range(min = 1, max = REPLICATION_DEGREE_MAX))]
    pub replication_degree: u8,
    #[schemars(range(min = 1, max = ENTRY_BYTES_MAX))]
    pub request_size_bytes: u32,
    #[schemars(range(min = 1, max = RATE_PER_S_MAX))]
    pub rate_per_s: u64,
    /// Reads from all replicas together; 0 when missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = RATE_PER_S_MAX))]
    pub read_rate_per_s: u64,
    /// 256 MiB when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = RETENTION_BYTES_MIN))]
    pub retention_bytes: Option<u64>,
}

fn is_zero(rate_per_s: &u64) -> bool {
    *rate_per_s == 0
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
#[schemars(rename = "Failed")]
pub struct FailedForm {
    pub id: String,
    #[schemars(schema_with = "limits::amounts")]
    pub demand: Vec<f64>,
    /// The servers that its group still has.
    pub members: Vec<String>,
}

/// `request` with `reserved_per_s`, or `sla`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tenant")]
pub struct TenantForm {
    pub id: String,
    /// Its servers, the head first.
    pub placement: Vec<String>,
    /// Cost of one request at each of them: core-seconds, bytes, operations.
    #[schemars(schema_with = "limits::replica_amounts")]
    pub request: Option<Vec<Vec<f64>>>,
    /// Requests/s that the tenant was promised. The reservations on a server must fit its capacity together.
    #[schemars(range(max = RATE_MAX_PER_S))]
    pub reserved_per_s: Option<u64>,
    pub sla: Option<SlaForm>,
    /// Requests/s of its reservation that the tenant uses now; all of them when missing.
    #[schemars(range(max = RATE_MAX_PER_S))]
    pub used_per_s: Option<u64>,
    /// Requests/s that the tenant wants above its reservation; none when missing.
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
    PerS(#[schemars(range(max = RATE_MAX_PER_S))] u64),
}
