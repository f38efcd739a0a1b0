//! The coordinator's state machine, pure: `apply(state, now, command) -> effects`.
//!
//! - [`apply`](mod@apply): commands, each a script of handlers' operations
//! - `step`: which handler may touch which tables
//! - [`handler`]: the operations, one concern each
//! - [`table`]: servers, groups, free resources, with their indexes
//! - [`entity`]: one server, one group, one event
//! - `partition_rates`: what partitions want, and what they should have; `migrations`: replicas that should move; `queries`: what the planner asks; `profile_check`: whether a cost profile may come into use
//! - [`validate`]: what must hold after every command
//!
//! Imports go down this list alone. No clock, disk, socket or randomness: the same commands with the same times give the
//! same state, so a restart recovers it, and so would every replica of the log.

mod apply;
pub mod entity;
mod handler;
mod machine;
mod migrations;
mod partition_rates;
mod profile_check;
mod queries;
mod step;
pub mod table;
mod validate;

pub use apply::{applied, apply, quote, quote_guarantee};
pub use entity::{
    Drain, Event, EventKind, Group, GroupStatus, History, JoinToken, LayoutChange, Move, Partitioned,
    Relocation, Server, lacking,
};
pub use machine::CoordinatorState;
pub use partition_rates::DividedRates;
pub use profile_check::{Overpromising, ProfileRefused, check_profile};
