//! The protocol piece by piece: build a state, give it an event, compare what it wants done.

mod acks;
mod agreement;
mod beginning;
mod cut_off;
mod durability;
mod fencing;
mod following;
mod learners;
mod log;
mod notices;
mod ordering;
mod pace;
mod reads;
mod recovery;
mod rig;
mod rounds;
mod sessions;
mod trim;
