//! A small model of one group: chain, coordinator, epochs and learners, explored in full within stated bounds by
//! stateright. `docs/internals/model.md` says which rule of `docs/internals/chain.md` each part is, and what is left
//! out.
//!
//! - [`bounds`]: how large the explored world is, and the bug planted in it
//! - [`state`]: all there is at one moment
//! - [`replica`]: the rules of a replica, one for one those of `quorate-chain`
//! - [`coordinator`]: the rules of the coordinator
//! - [`links`]: unreliable FIFO links
//! - [`past`]: what was committed, acked and denied so far, for the properties alone
//! - [`world`]: what may happen next
//! - [`properties`]: what must always hold, and what must be reached
//! - [`worlds`], [`explore`]: what is explored, and what came of it

pub mod bounds;
pub mod coordinator;
pub mod explore;
pub mod links;
pub mod past;
pub mod properties;
pub mod replica;
pub mod state;
pub mod world;
pub mod worlds;

pub use bounds::{Bounds, Bug};
pub use world::World;
