//! The tables of the state. Each keeps its indexes in step, so no caller can forget one.
//!
//! A snapshot contains the rows alone. `reindex` fills in the rest after a snapshot was read.
//!
//! - [`servers`]: the fleet, with indexes by credential, name and leftover data
//! - [`groups`]: the groups, with indexes by member and by project
//! - [`guarantees`]: guarantees of projects
//! - [`partitions`]: groups with partitions
//! - [`revocations`]: credentials whose tokens are refused
//! - [`fleets`]: the free resources of each region; derived from the two above
//! - [`join_tokens`], [`deleted_groups`], [`unreachable_pairs`], [`events`]

pub mod deleted_groups;
pub mod events;
pub mod fleets;
pub mod groups;
pub mod guarantees;
pub mod join_tokens;
pub mod partitions;
pub mod revocations;
pub mod servers;
pub mod unreachable_pairs;

pub use deleted_groups::DeletedGroups;
pub use events::Events;
pub use fleets::Fleets;
pub use groups::Groups;
pub use guarantees::{Guarantees, ProjectGuarantee};
pub use join_tokens::JoinTokens;
pub use partitions::Partitions;
pub use revocations::Revocations;
pub use servers::Servers;
pub use unreachable_pairs::UnreachablePairs;
