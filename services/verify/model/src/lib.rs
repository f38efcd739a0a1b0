//! A small model of one group: chain, coordinator, epochs and learners, explored in full within stated bounds by
//! stateright. `docs/internals/model.md` relates each part to a rule of `docs/internals/chain.md`, and lists the parts left
//! out.
//!
//! - [`bounds`]: the bounds of the explored world, and the bug planted in it
//! - [`state`]: the whole state at one moment, of [`ids`], [`config`], [`server`] and [`message`]
//! - [`replica`]: the rules of a replica, one for one those of `quorate-chain`
//! - [`coordinator`]: the rules of the coordinator
//! - [`links`]: unreliable FIFO links
//! - [`history`]: committed, acked and denied appends so far, for the properties alone
//! - [`actions`]: the actions that are possible in a state
//! - [`properties`]: properties that always hold, and states that must be reached
//! - [`model`]: all of it as a model of stateright
//! - [`worlds`], [`explore`]: the explored worlds, and the outcome

pub mod actions;
pub mod bounds;
pub mod config;
pub mod coordinator;
pub mod explore;
pub mod history;
pub mod ids;
pub mod links;
pub mod message;
mod model;
pub mod properties;
pub mod replica;
pub mod server;
pub mod state;
pub mod worlds;

pub use actions::GroupModel;
pub use bounds::{Bounds, Bug};
