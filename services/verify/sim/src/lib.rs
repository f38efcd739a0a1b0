//! The simulator: a whole fleet — coordinator, servers, disks, links, clients — in one thread, from one seed, on the
//! real pure crates (`docs/internals/simulator.md`).
//!
//! Each layer imports only those above it in this list:
//!
//! - [`plan`]: decisions of a seed; [`trace`], [`counts`]: records of a run
//! - `disk`: a server's journal; `ledger`: all that was ever committed, and what clients know of it
//! - `fleet`: the state of all parts, and questions about it
//! - `invariants`: one property per file
//! - `links`, `client`, `server`, `coordinator`: behaviour of the parts
//! - `faults`: injected faults
//! - `run`: one seed, event by event
//! - [`runner`]: many seeds

mod client;
mod coordinator;
pub mod counts;
mod disk;
mod faults;
mod fleet;
mod invariants;
mod ledger;
mod links;
pub mod plan;
#[cfg(debug_assertions)]
pub mod planted;
mod run;
pub mod runner;
mod server;
pub mod trace;
