//! The coordinator's decisions. One binary: each more is linked with all of the crate again.

mod accesses;
mod engine;
mod estimates;
mod failures;
mod fleet_version;
mod golden;
mod guarantees;
mod hangs;
mod lifecycle;
mod lost;
mod moves;
mod partitions;
mod placement;
mod properties;
mod quarantines;
mod quorum;
mod relocations;
mod replayed;
mod reports;
mod resize;
mod restored;
mod rig;
mod roll_call;
mod space;
mod suspicions;
mod world;
