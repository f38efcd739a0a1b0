//! Answers as they are written. Vectors are in the units of the instance.

use schemars::JsonSchema;
use serde::Serialize;

use crate::instance::Instance;

#[derive(Debug, Serialize, JsonSchema)]
pub struct Placement {
    pub online: bool,
    /// In the order in which they were considered.
    pub replaced: Vec<Replaced>,
    pub placed: Vec<Placed>,
    pub refused: Vec<Refused>,
    pub servers: Vec<Left>,
    /// Of what the servers that are not auxiliary have: cpu, network, storage IO.
    pub allocated_ratio: [f64; 3],
    pub replicas: u64,
    /// Processor time of placement, without finding SLAs that would fit.
    pub elapsed_us: f64,
    /// Of it, for each replica of all applicants.
    pub us_per_replica: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Replaced {
    pub id: String,
    /// Null: no server has room.
    pub server: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Placed {
    pub id: String,
    /// The head first.
    pub servers: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Refused {
    pub id: String,
    /// The replica that found no server, in chain order.
    pub replica: usize,
    /// What most servers lack for it: cpu, network, storage_io, or servers.
    pub scarce_resource: String,
    /// Requests/s that would have been placed instead; off-line: after all others were placed.
    pub largest_sla_per_s: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Left {
    pub id: String,
    pub left: [f64; 3],
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Conservation {
    pub algorithm: String,
    pub policy: String,
    pub tenants: Vec<Granted>,
    pub servers: Vec<Left>,
    /// What was free before: cpu, network, storage IO of all servers.
    pub free_before: [f64; 3],
    /// Of it, what was granted.
    pub granted_ratio: [f64; 3],
    /// Tenants who use less than their reservation and could not return to it before somebody gives way.
    pub tenants_without_room_to_return: u64,
    /// Between servers; of the central algorithms: a vector from and a grant to each server.
    pub messages: u64,
    pub rounds: u32,
    /// Processor time of all servers together, or of the central computation.
    pub elapsed_us: f64,
    /// What a distributed algorithm takes: its slowest server. The same as `elapsed_us` of a central one.
    pub slowest_server_us: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Granted {
    pub id: String,
    /// Requests/s above the reservation.
    pub utility_per_s: u64,
    /// Of the free resources (Filo's Equation 5).
    pub dominant_share: f64,
}

/// What `docs/reference/alloc.schema.json` holds.
#[derive(Serialize)]
pub struct Schemas {
    instance: schemars::Schema,
    placement: schemars::Schema,
    conservation: schemars::Schema,
}

pub fn schema() -> Schemas {
    Schemas {
        instance: schemars::schema_for!(Instance),
        placement: schemars::schema_for!(Placement),
        conservation: schemars::schema_for!(Conservation),
    }
}
