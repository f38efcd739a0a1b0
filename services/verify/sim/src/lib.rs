//! The simulator: a whole fleet — coordinator, servers, disks, links, clients — in one thread, from one seed, on the
//! real pure crates (`docs/internals/simulator.md`).
//!
//! - [`plan`]: what a seed decides; [`world`], [`schedule`]: what happens, in time
//! - [`server`], [`disk`], [`links`], [`coordinator`], [`client`]: the parts
//! - [`faults`]: what goes wrong
//! - [`ledger`]: what was ever committed, and what clients were told; [`invariants`]: one property per file
//! - [`runner`]: many seeds; [`trace`]: what happened in one

pub mod client;
pub mod coordinator;
pub mod counts;
pub mod disk;
pub mod faults;
pub mod invariants;
pub mod ledger;
pub mod links;
mod lives;
pub mod pipe;
pub mod plan;
#[cfg(feature = "planted")]
pub mod planted;
pub mod runner;
pub mod schedule;
pub mod server;
pub mod trace;
pub mod world;
