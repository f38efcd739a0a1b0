//! The HTTP interface for the API. Calls: `docs/internals/coordinator.md`.
//!
//! - `router`: paths to functions, and the guard before them
//! - `groups`, `servers`, `join_tokens`, `fleet`, `events`: one function for each call
//! - `body`, `problem`: requests read, errors answered

mod body;
mod context;
mod events;
mod fleet;
mod groups;
mod join_tokens;
mod problem;
mod router;
mod servers;

pub use context::Context;
pub use router::serve;
