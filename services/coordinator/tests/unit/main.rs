//! The pure parts of the coordinator, and its log on disk: no sockets, no sleeping. One binary: each more is linked
//! with all of the coordinator again.

mod engine;
mod failures;
mod lifecycle;
mod log;
mod lost;
mod moves;
mod placement;
mod properties;
mod resize;
mod suspicions;
mod world;
