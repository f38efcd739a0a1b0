//! The HTTP interface for the API. Calls: `docs/internals/coordinator.md`.
//!
//! - `connections`: TLS; `router`: paths to functions, and the guard before them
//! - `groups`, `partitions`, `guarantees`, `servers`, `join_tokens`, `fleet`, `quorum`, `events`: one function for each call
//! - `body`, `problem`: requests read, errors answered

mod body;
mod connections;
mod context;
mod events;
mod fleet;
mod groups;
mod guarantees;
mod join_tokens;
mod partitions;
mod problem;
mod quorum;
mod revocations;
mod router;
mod servers;

pub use connections::Connections;
pub use context::{Computed, Context};
pub use router::serve;
