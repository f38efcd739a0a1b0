//! The coordinator's decisions. One binary: each more is linked with all of the crate again.

mod engine;
mod failures;
mod lifecycle;
mod lost;
mod moves;
mod placement;
mod properties;
mod resize;
mod space;
mod suspicions;
mod world;
