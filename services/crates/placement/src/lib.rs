//! Admission and placement, pure: the cost of an SLA, and the servers that take its replicas.
//!
//! - [`profile`]: the measured cost profile that turns an SLA into demand vectors and a budget
//! - [`amounts`]: exact integer amounts of a server's resources
//! - [`demand`]: a replica's own demand, and its part of a project's shared guarantee
//! - [`fleet`]: servers with their free resources; Filo's ElectServer
//! - [`admission`]: Filo's Algorithm 1 for one applicant and for a batch
//! - [`batch_search`]: a batch improved in passes that remove applicants and place others (`quorate-planner` only)
//! - [`quote`]: admission with a reason for a refusal and an SLA that would fit

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

pub mod admission;
pub mod amounts;
pub mod batch_search;
mod curve;
pub mod demand;
pub mod fleet;
mod index;
mod latency;
pub mod profile;
pub mod quote;
mod reads;

pub use admission::{Applicant, NotPlaced, Replacement, heaviest_first, place_batch, place_one, replace};
pub use amounts::{Amounts, RESOURCES};
pub use batch_search::{Search, place_batch_searching};
pub use demand::{Demand, ServerCharges, SharedDemand, SharedGuarantee, demand_at, demands_with};
pub use fleet::{Choice, Fleet, Pool};
pub use profile::{Machine, Profile, ProfileError, RoleDemands};
pub use quote::{
    Asked, admit, in_place, largest, largest_rate_that_fits, largest_sla_that_fits, place_again, quote,
    scarce_for,
};
