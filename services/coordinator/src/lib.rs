//! The coordinator's process. Its decisions are in `crates/coordinator-core`.
//!
//! - [`shell`]: sockets, HTTP, clock, keys around them
//! - [`disk`]: the log on a disk
//! - [`options`], [`exit`]: flags, exit codes

pub mod disk;
pub mod exit;
pub mod options;
pub mod shell;
