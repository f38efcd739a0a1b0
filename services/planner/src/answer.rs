//! The forms of answers in JSON. Vectors are in the units of the instance.

use schemars::JsonSchema;
use serde::Serialize;

use crate::demand::{DemandAnswer, DemandRequest};
use crate::instance::Instance;
use crate::share::{ShareAnswer, ShareRequest};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Placement")]
pub struct PlacementAnswer {
    pub online: bool,
    /// Failed replicas, in the order in which they were considered.
    pub replaced: Vec<Replaced>,
    pub placed: Vec<PlacedApplicant>,
    pub refused: Vec<RefusedApplicant>,
    pub servers: Vec<Left>,
    /// Allocated part of the servers that are not auxiliary: cpu, network, storage IO.
    pub allocated_ratio: [f64; 3],
    pub replicas: u64,
    /// Processor time of placement, without finding SLAs that would fit.
    pub elapsed_us: f64,
    /// `elapsed_us` for each replica of all applicants.
    pub us_per_replica: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Replaced {
    pub id: String,
    /// Null if no server has room.
    pub server: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Placed")]
pub struct PlacedApplicant {
    pub id: String,
    /// The head first.
    pub servers: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Refused")]
pub struct RefusedApplicant {
    pub id: String,
    /// The replica that found no server, in chain order.
    pub replica: usize,
    /// The resource that most servers lack for it: cpu, network, storage_io, or servers.
    pub scarce_resource: String,
    /// Requests/s that would have been placed instead; off-line, after all others were placed.
    pub largest_sla_per_s: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Left {
    pub id: String,
    pub left: [f64; 3],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Conservation")]
pub struct ConservationAnswer {
    pub algorithm: String,
    pub policy: String,
    pub tenants: Vec<GrantedTenant>,
    pub servers: Vec<Left>,
    /// Free before: cpu, network, storage IO of all servers.
    pub free_before: [f64; 3],
    /// Granted part of `free_before`.
    pub granted_ratio: [f64; 3],
    /// Tenants that use less than their reservation and could not return to it before another gives way.
    pub tenants_without_room_to_return: u64,
    /// Messages between servers; of the central algorithms, a vector from each server and a grant to it.
    pub messages: u64,
    pub rounds: u32,
    /// Processor time of all servers together, or of the central computation.
    pub elapsed_us: f64,
    /// Processor time of the slowest server of a distributed algorithm. The same as `elapsed_us` of a central one.
    pub slowest_server_us: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Granted")]
pub struct GrantedTenant {
    pub id: String,
    /// Requests/s above the reservation.
    pub utility_per_s: u64,
    /// Share of the free resources (Filo's Equation 5).
    pub dominant_share: f64,
}

/// The content of `docs/reference/planner.schema.json`.
#[derive(Serialize)]
pub struct Schemas {
    instance: schemars::Schema,
    placement: schemars::Schema,
    conservation: schemars::Schema,
    demand_request: schemars::Schema,
    demand: schemars::Schema,
    share_request: schemars::Schema,
    share: schemars::Schema,
}

pub fn schema() -> Schemas {
    Schemas {
        instance: schemars::schema_for!(Instance),
        placement: schemars::schema_for!(PlacementAnswer),
        conservation: schemars::schema_for!(ConservationAnswer),
        demand_request: schemars::schema_for!(DemandRequest),
        demand: schemars::schema_for!(DemandAnswer),
        share_request: schemars::schema_for!(ShareRequest),
        share: schemars::schema_for!(ShareAnswer),
    }
}
