//! A seed's decisions before anything happens: the fleet, its groups, how fast things are, and which faults are on.
//! Not every seed has every fault: a few at a time go deeper than all at once.

mod fault;
mod fleet;
mod group;
mod pick;
mod profile;

pub use fault::Fault;
pub use fleet::Plan;
pub use group::{CHURNING_CLIENTS, GroupPlan, KEPT_BATCHES};
pub use profile::Profile;
