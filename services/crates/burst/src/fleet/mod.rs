//! The exact shares of a whole fleet, computed in one place each interval (`docs/internals/allocation.md`, "Who computes").
//!
//! - [`fleet_shares`]: reports of servers in, rates for all of them out, by default C-DRF's
//! - [`fleet_policy`]: the policies among which the operator chooses
//! - [`fleet_drf`]: a server's part in an interval for which it was told rates
//!
//! Told rates are advice. Each server commits to no more of them than fits beside its earlier commitments, and a head uses no
//! more than all servers of its group committed to. So the rates in use are feasible whatever was lost, late or wrong.

pub mod fleet_drf;
pub mod fleet_policy;
pub mod fleet_shares;

pub use fleet_drf::FleetDrf;
pub use fleet_shares::{FleetShares, Round, SharingGroup};
