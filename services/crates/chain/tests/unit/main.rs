//! The protocol piece by piece: build a state, give it an event, compare its commands.

mod acks;
mod agreement;
mod commit_notices;
mod durability;
mod fencing;
mod following;
mod isolation;
mod learners;
mod log;
mod ordering;
mod pace;
mod reads;
mod recovery;
mod reset;
mod rig;
mod ring_passes;
mod sessions;
mod trim;
